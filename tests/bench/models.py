"""How fast the attribution models are, and how right: `python -m tests.bench models`.

On two tables of paths: PathData, which the attribution libraries publish results for, and one of 500,000 paths that are
made up. Each number is of a process of its own, without its start and the reading of the file. And on 500,000 orders
with 4 million touchpoints: the weights and the credits of eight models, to the minor unit.
"""

import csv
import gzip
import json
import subprocess
import sys
import time
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from clickclock.attribution.crediting.columns.credit_columns import split_many
from clickclock.attribution.models import ByChannel, ColumnarModel, Journeys, choose, weights
from clickclock.attribution.models.journeys import offsets_of
from tests.bench.peer_models import COLUMNS
from tests.bench.report import Goal, Report

PATHDATA = Path(__file__).parents[1] / "data" / "pathdata" / "pathdata.csv.gz"
CHANNELS = ("google", "meta", "onsite", "mail", "direct", "affiliate", "tiktok", "bing", "organic", "push", "sms", "tv")
POPULAR = np.array([30, 18, 12, 10, 9, 6, 5, 4, 3, 1.5, 1, 0.5]) / 100
SIMULATED, EXACT = "ChannelAttribution", "marketing-attribution-models"
PACKAGES = {SIMULATED: "ChannelAttribution", EXACT: "mam"}
ORDERS, TOUCHES = 500_000, 4_000_000
ROUNDS = 3


def write_paths(file: Path, count: int) -> None:
    """A table of paths: of geometric length, six touchpoints in the mean; everybody has a channel that comes often."""
    chance = np.random.default_rng(7)
    touches = np.minimum(chance.geometric(1 / 6, count), 120)
    total = int(touches.sum())
    mine = np.repeat(chance.choice(len(CHANNELS), count, p=POPULAR), touches)
    channel = np.where(chance.random(total) < 0.45, mine, chance.choice(len(CHANNELS), total, p=POPULAR))
    words = np.array(CHANNELS)[channel].tolist()
    offsets = offsets_of(touches).tolist()
    paths = [" > ".join(words[start:end]) for start, end in pairwise(offsets)]
    conversions = (chance.random(count) < 0.25) * chance.geometric(0.6, count)
    value = np.round(conversions * chance.gamma(2, 20, count), 2)
    nulls = np.where(conversions == 0, chance.geometric(0.5, count), chance.integers(0, 2, count))
    with file.open("w", newline="") as opened:
        table = csv.writer(opened)
        table.writerow(COLUMNS)
        table.writerows(zip(paths, conversions.tolist(), value.tolist(), nulls.tolist(), strict=True))


def measured(library: str, what: str, file: Path) -> list[dict[str, Any]]:
    """What a library told of a few rounds."""
    command = [sys.executable, "-m", "tests.bench.peer_models", library, what, str(file)]
    return [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(ROUNDS)]


def compare(report: Report, name: str, file: Path, here: list[str]) -> None:
    """Ours beside the others, on one table."""
    beside = {
        "heuristics": (SIMULATED, "first, last, linear", Goal(factor=1, of=SIMULATED)),
        "markov-1": (EXACT, "Markov, order 1", Goal(factor=0.2, of=EXACT)),
        "markov-3": (SIMULATED, "Markov, order 3", Goal(factor=round(1 / 1.5, 3), of=SIMULATED)),
    }
    for what, (peer, title, goal) in beside.items():
        ours = measured("clickclock", what, file)
        theirs = measured(peer, what, file) if peer in here else []
        others = {peer: [each["cpu_s"] for each in theirs]}
        report.add(f"{name}: {title}", "CPU-s", [each["cpu_s"] for each in ours], goal, others)
        if what == "markov-1":
            grown = {peer: [each["grown_mb"] for each in theirs]}
            bound = Goal(factor=0.1, of=EXACT)
            report.add(f"{name}: {title}, memory", "MB", [each["grown_mb"] for each in ours], bound, grown)
        if theirs:
            exact, found = ours[0]["credit"], theirs[0]["credit"]
            off = {channel: abs(found.get(channel, 0) / exact[channel] - 1) for channel in exact if exact[channel]}
            worst = max(off, key=off.__getitem__)
            report.notes.append(
                f"{name}, {title}: the {worst} of {peer} is {off[worst]:.2%} off ours, the exact answer"
            )
    for order in (2, 4):
        cpu_s = [each["cpu_s"] for each in measured("clickclock", f"markov-{order}", file)]
        report.add(f"{name}: Markov, order {order}", "CPU-s", cpu_s)


def credit_orders(report: Report) -> None:
    """The weights and the credits of eight models, over orders with journeys of which some are very long."""
    chance = np.random.default_rng(1)
    drawn = np.maximum(chance.lognormal(1.4, 1.1, ORDERS), 1)
    touches = np.maximum((drawn * TOUCHES / drawn.sum()).astype(np.int64), 1)
    offsets = offsets_of(touches)
    total = int(offsets[-1])
    number = np.repeat(np.arange(ORDERS), touches)
    times_ms = chance.integers(0, 30 * 86_400_000, total)
    times_ms = times_ms[np.lexsort((times_ms, number))]
    channel = chance.choice(len(CHANNELS), total, p=POPULAR)
    journeys = Journeys(offsets, channel, CHANNELS, times_ms, times_ms[offsets[1:] - 1] + 60_000)
    amounts = chance.integers(100, 30_000, ORDERS)
    names = ("first", "last", "last_non_direct", "linear", "time_decay", "position", "shapley")
    models = [choose(name, {}) for name in names]
    learnt = ByChannel(dict(zip(CHANNELS, chance.random(len(CHANNELS)).tolist(), strict=True)))
    begun_s = time.process_time()
    for model in (*models, learnt):
        assert isinstance(model, ColumnarModel)
        parts = split_many(amounts, weights(model, journeys), offsets)
        if not np.array_equal(journeys.reduced(np.add, parts), amounts):
            report.faults.append(f"the credits of {model} do not sum to the amounts")
    title = f"{ORDERS:,} orders, {total:,} touchpoints: credits of {len(models) + 1} models"
    report.add(title, "CPU-s", time.process_time() - begun_s, Goal(most=8))


def run(folder: Path, *, quick: bool) -> Report:
    """PathData, 500,000 paths (--quick: 50,000), and 500,000 orders."""
    count = 50_000 if quick else 500_000
    report = Report(f"models: PathData, {count:,} paths, and {ORDERS:,} orders")
    here = [peer for peer, package in PACKAGES.items() if find_spec(package) is not None]
    report.notes += [f"{peer} is left out: pip install {peer}" for peer in PACKAGES if peer not in here]
    pathdata, made_up = folder / "pathdata.csv", folder / "paths.csv"
    pathdata.write_bytes(gzip.decompress(PATHDATA.read_bytes()))
    write_paths(made_up, count)
    compare(report, "PathData", pathdata, here)
    compare(report, f"{count:,} paths", made_up, here)
    credit_orders(report)
    return report
