"""One library of attribution models on one file of paths: `python -m tests.bench.peer_models LIBRARY WHAT FILE`.

Prints one line of JSON: the CPU time of the call and of nothing else, by how much the process grew for it, and the
conversions of each channel. The file was read before, and the library has run once, on a few rows. WHAT is
`heuristics` or `markov-N`.
"""

import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

Credit = dict[str, float]
Call = Callable[[], Credit]
COLUMNS = ("path", "total_conversions", "total_conversion_value", "total_null")
HEURISTICS = ("first", "last", "linear")


def clickclock(table: pd.DataFrame, what: str) -> Call:
    """Ours. The heuristics share what was read of the table, as they do in ChannelAttribution."""
    models: Any = import_module("clickclock.attribution.models")

    def heuristics() -> Credit:
        paths = models.read_paths(table)
        *_, linear = (models.credit_table(models.choose(name, {}), paths) for name in HEURISTICS)
        return {channel: share.conversions for channel, share in linear.items()}

    def markov() -> Credit:
        credited = models.attribute(table, "markov", order=int(what[-1]))
        return dict(zip(credited["channel"], credited["conversions"], strict=True))

    return heuristics if what == "heuristics" else markov


def channel_attribution(table: pd.DataFrame, what: str) -> Call:
    """The package of that name, in C++; its Markov is a simulation."""
    package: Any = import_module("ChannelAttribution")
    path, conversions, value, nulls = COLUMNS

    def heuristics() -> Credit:
        found = package.heuristic_models(table, path, conversions, var_value=value, flg_pro=False)
        return dict(zip(found["channel_name"], found["linear_touch_conversions"], strict=True))

    def markov() -> Credit:
        options: dict[str, Any] = {"order": int(what[-1]), "verbose": False, "flg_pro": False}
        found = package.markov_model(table, path, conversions, var_value=value, var_null=nulls, **options)
        return dict(zip(found["channel_name"], found["total_conversions"], strict=True))

    return heuristics if what == "heuristics" else markov


def marketing_attribution_models(table: pd.DataFrame, what: str) -> Call:
    """The package of that name (DP6's), on Polars; of Markov it has the order 1, and no value."""
    package: Any = import_module("mam.core")
    assert what == "markov-1", what
    path, conversions, _, nulls = COLUMNS
    parts = [
        table.loc[table[column] > 0, [path]].assign(occurrences=table[column], converted=converted)
        for column, converted in ((conversions, True), (nulls, False))
    ]
    grouped = pd.concat(parts, ignore_index=True)

    def markov() -> Credit:
        named = {
            "channels_colname": path,
            "journey_with_conv_colname": "converted",
            "occurrences_colname": "occurrences",
        }
        found = package.MAM(df=grouped, format_type="grouped_journey", **named).run_markov().to_pandas()
        channel, credit = found.columns[:2]
        return dict(zip(found[channel], found[credit], strict=True))

    return markov


LIBRARIES = {
    "clickclock": clickclock,
    "ChannelAttribution": channel_attribution,
    "marketing-attribution-models": marketing_attribution_models,
}


def _memory_mb(name: str) -> float:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 / 1e6 if found else float("nan")


def main(library: str, what: str, file: str) -> None:
    """Measure one call."""
    warnings.simplefilter("ignore")
    answers = os.dup(1)
    os.dup2(2, 1)  # some of them print
    table = pd.read_csv(file)
    LIBRARIES[library](table.head(100), what)()  # what is loaded only when it is first used
    call = LIBRARIES[library](table, what)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before_mb, begun_s = _memory_mb("VmRSS"), time.process_time()
    credit = call()
    told = {"cpu_s": time.process_time() - begun_s, "grown_mb": _memory_mb("VmHWM") - before_mb, "credit": credit}
    os.write(answers, json.dumps(told).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
