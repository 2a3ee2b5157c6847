"""Orders credited by all models, from the lake to committed credits: `python -m tests.bench attribution`.

The real command (`clickclock attribution run`), its start included, as it is installed (without pandas), with the
settings that it has by itself: DuckDB, two threads, 2 GB for the engine. First everything; then one more day, of which
one click in a hundred happened earlier, and everything again, from clicks and orders alone, three times in turn; then
the plain way with pandas; and once more everything with what is known of clicks (`--full`). The rows of all have to be
the same, those of pandas, too: two programs that were written apart credit the same.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clickclock.attribution.lake import CREDITS, FITTED, IDENTITIES, UNCONVERTED, Lake, credits_table
from tests.bench.attribution_rows import World, fill
from tests.bench.report import Goal, Report

DAYS = 30
ORDERS_PER_CLICK = 1 / 20
TURNS = 3
"""A day lasts a few seconds, and such a machine is a tenth faster or slower from one minute to the next."""
TABLES = ("clicks", "orders")
KEYS = {
    CREDITS: ("order_month", "client_id", "order_id", "place"),
    UNCONVERTED.name: ("month", "client_id", "person", "path"),
    IDENTITIES.name: ("code",),
}
SAID = ["client_id", "order_id", "amount_minor", "refunded_minor", "status", "seller_id", "reason", "touches", "place"]
SAID += ["click_id", "click_at", "click_seller_id", "channel", "campaign", "ad_set", "ad", "atag", "asvt"]
"""What rows of credits say beside what models give, and pandas says as well."""


@dataclass(frozen=True)
class Used:
    """What a process used, and what it said."""

    wall_s: float
    cpu_s: float
    peak_gb: float
    said: dict[str, Any]


def run(folder: Path, *, quick: bool) -> Report:
    """Ten million clicks and 500,000 orders (--quick: a million and 50,000)."""
    clicks = 1_000_000 if quick else 10_000_000
    report = Report(f"attribution: {clicks:,} clicks and {int(clicks * ORDERS_PER_CLICK):,} orders, all models")
    credit_all(report, folder / "all", clicks, Goal(most=60), Goal(most=100), Goal(most=3))
    lake = Lake(folder / "all" / "lake")
    day = World(clicks=clicks // DAYS, orders=int(clicks * ORDERS_PER_CLICK) // DAYS, days=1, first_day=DAYS)
    fill(lake, day)
    turns = [_turn(folder / "all", folder / str(number)) for number in range(TURNS)]
    in_order = sorted(turns, key=lambda turn: turn.ratio)
    turn = in_order[TURNS // 2]
    report.add("one more day: wall", "s", turn.more.wall_s, Goal(most=12))
    report.add("one more day: peak memory", "GB", max(each.more.peak_gb for each in turns))
    # Behind the day: it takes the files out of the system's memory, and whoever comes next waits for the disk.
    _beside_pandas(report, turns[-1].afresh, folder / "pandas", turns[-1].whole)
    again = command("attribution", "run", "--full", "--data-dir", turn.day.url.removesuffix("/lake"))
    report.add("one more day: CPU ÷ that of all anew", "ratio", turn.ratio, Goal(most=0.15))
    report.add("one more day: CPU", "s", turn.more.cpu_s, None, {"all anew": turn.whole.cpu_s, "--full": again.cpu_s})
    kinds = [each.said["result"]["kind"] for each in (turn.more, turn.whole, again)]
    if kinds != ["incremental", "full", "full"]:
        report.faults.append(f"the runs were {', '.join(kinds)}")
    for other, used in ((turn.afresh, turn.whole), (turn.day, again)):
        differing = _apart(_differing, (turn.day.url, turn.more.said["result"]), (other.url, used.said["result"]))
        report.faults += [f"{name}: an incremental run and a full one differ" for name in differing]
    report.notes.append(f"one more day: {day.clicks:,} clicks, {day.orders:,} orders; rows are those of full runs")
    ratios = ", ".join(f"{each.ratio:.3f}" for each in in_order)
    report.notes.append(f"one more day, and all anew behind it, {TURNS} times: CPU ratios {ratios}; told is the middle")
    return report


@dataclass(frozen=True)
class Turn:
    """One more day, and behind it everything again: not the first run, for a machine's speed changes meanwhile."""

    day: Lake
    more: Used
    afresh: Lake
    whole: Used

    @property
    def ratio(self) -> float:
        """The CPU of the day ÷ that of everything."""
        return self.more.cpu_s / self.whole.cpu_s


def _turn(before: Path, folder: Path) -> Turn:
    day = folder / "day"
    shutil.copytree(before, day, copy_function=os.link)
    more = command("attribution", "run", "--data-dir", str(day))
    afresh = _afresh(Lake(before / "lake"), folder / "afresh")
    return Turn(Lake(day / "lake"), more, afresh, command("attribution", "run", "--data-dir", str(folder / "afresh")))


def _afresh(lake: Lake, folder: Path) -> Lake:
    """A lake with the same clicks and orders, and nothing that a run has made."""
    for name in TABLES:
        shutil.copytree(f"{lake.url}/{name}", folder / "lake" / name, copy_function=os.link)
    return Lake(folder / "lake")


def credit_all(report: Report, folder: Path, clicks: int, wall: Goal, cpu: Goal, memory: Goal) -> None:
    """A lake with so many clicks, and the first run over it."""
    fill(Lake(folder / "lake"), World(clicks=clicks, orders=int(clicks * ORDERS_PER_CLICK), days=DAYS))
    used = command("attribution", "run", "--data-dir", str(folder))
    result = used.said["result"]
    report.add("all: wall", "s", used.wall_s, wall)
    report.add("all: CPU", "s", used.cpu_s, cpu)
    report.add("all: peak memory", "GB", used.peak_gb, memory)
    report.notes.append(f"{result['credited']:,} orders are credited to {result['touchpoints']:,} touchpoints")


def command(*words: str) -> Used:
    """Run `clickclock` with these words and `--json`."""
    return _process([sys.executable, "-m", "tests.bench.as_installed", *words, "--json"])


def _process(words: list[str]) -> Used:
    begun_s = time.perf_counter()
    # What is installed is compiled; here it is when it has run once.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}")
    cpu_s = usage.ru_utime + usage.ru_stime
    return Used(time.perf_counter() - begun_s, cpu_s, usage.ru_maxrss * 1024 / 1e9, json.loads(said))


def _apart(compare: Callable[..., list[str]], *given: object) -> list[str]:
    """Apart from us: the peak memory of a process begins with that of the one which started it."""
    with ProcessPoolExecutor(1, get_context("spawn")) as apart:
        return apart.submit(compare, *given).result()


def _differing(one: tuple[str, dict[str, Any]], other: tuple[str, dict[str, Any]]) -> list[str]:
    """The tables of which two result versions, each with its lake's URL, have different rows."""
    return [name for name in KEYS if not _rows(name, *one).equals(_rows(name, *other))]


def _rows(name: str, url: str, said: dict[str, Any]) -> pa.Table:
    lake = Lake(url)
    if name == CREDITS:
        (result,) = (each for each in lake.results() if each.version == said["version"])
        facts, models = credits_table(()).whole.names, sorted(chain(*lake.models(result)))
        table = pa.concat_tables(lake.credits(result, None, facts, models))
    else:
        table = pa.Table.from_batches(lake.scan(name, version=said[f"{name}Version"]))
    columns = sorted(table.column_names)
    return table.select(columns).sort_by([(key, "ascending") for key in KEYS[name]]).combine_chunks()


def _beside_pandas(report: Report, lake: Lake, folder: Path, ours: Used) -> None:
    folder.mkdir()
    words = [*(f"{lake.url}/{name}" for name in TABLES), str(folder)]
    theirs = _process([sys.executable, "-m", "tests.bench.peer_pandas", *words])
    report.add("all, beside pandas: wall", "s", ours.wall_s, Goal(factor=0.2, of="pandas"), {"pandas": theirs.wall_s})
    report.add("all, beside pandas: CPU", "s", ours.cpu_s, None, {"pandas": theirs.cpu_s})
    report.add("all, beside pandas: peak memory", "GB", ours.peak_gb, None, {"pandas": theirs.peak_gb})
    differing = _apart(_unlike_pandas, lake.url, folder)
    report.faults += [f"pandas has other {name}" for name in differing]
    rows = f"{theirs.said['orders']:,} orders by {theirs.said['rows']:,} rows"
    report.notes.append(f"pandas credits {rows}" + ("" if differing else "; every row, credit and refund is ours"))


def _unlike_pandas(url: str, folder: Path) -> list[str]:
    """What pandas has otherwise: numbers have to be equal, shares and what was learnt up to rounding."""
    lake = Lake(url)
    result = lake.results()[-1]
    models = lake.models(result)[0]
    exact = [*SAID, *(f"{model}_{part}" for model in models for part in ("credit", "refund"))]
    tables = pa.concat_tables(lake.credits(result, None, SAID, models)), pq.read_table(folder / "credits")
    ours, theirs = (
        table.sort_by([(key, "ascending") for key in ("client_id", "order_id", "place")]) for table in tables
    )
    found = [name for name in exact if not ours[name].equals(theirs[name].cast(ours[name].type))]
    rounded = {
        f"{model}_share": [pc.fill_null(table[f"{model}_share"], 0).to_numpy() for table in (ours, theirs)]
        for model in models
    }
    key = ["client_id", "order_month", "model", "channel"]
    fitted = (
        pa.Table.from_batches(lake.scan(FITTED.name, version=result.fitted_version)),
        pq.read_table(folder / "fitted"),
    )
    learnt = [table.sort_by([(name, "ascending") for name in key]) for table in fitted]
    found += [name for name in key if not learnt[0][name].equals(learnt[1][name].cast(pa.string()))]
    rounded["worth"] = [table["worth"].to_numpy() for table in learnt]
    return found + [name for name, (one, other) in rounded.items() if not np.allclose(one, other, 1e-6, 1e-9)]
