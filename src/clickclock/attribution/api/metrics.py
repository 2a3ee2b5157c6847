"""The numbers of all collector processes as Prometheus reads them.

Never counts anything itself. Invariant: a sample is the sum over all processes, except where the label names one.

>>> text([]).splitlines()[0]
'# HELP clickclock_clicks_total Clicks on disk, by the profile.'
"""

import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version

from clickclock.attribution.files.counters import FAMILIES, Family, Snapshot, sample
from clickclock.foundation.commit import commit

_STARTED = "clickclock_start_time_seconds"
_BUILD = "clickclock_collector_build_info"


def text(processes: Iterable[Snapshot]) -> str:
    """The page that Prometheus asks for."""
    processes = list(processes)
    lines: list[str] = []
    for family in FAMILIES:
        lines += [f"# HELP {family.name} {family.meaning}", f"# TYPE {family.name} {family.kind}"]
        numbers = {
            value: sum(process.numbers.get(sample(family.name, value), 0) for process in processes)
            for value in family.values
        }
        lines += _histogram(family, numbers) if family.bounds else _plain(family, numbers)
    lines += [f"# HELP {_STARTED} When the process began, in seconds since 1970.", f"# TYPE {_STARTED} gauge"]
    lines += [f'{_STARTED}{{slot="{each.slot}"}} {each.started_ms / 1000:.3f}' for each in processes if each.pid]
    return "\n".join([*lines, *_build()]) + "\n"


@cache
def _build() -> tuple[str, str, str]:
    labels = f'version="{version("clickclock")}",commit="{commit() or "unknown"}",python="{platform.python_version()}"'
    about = f"# HELP {_BUILD} 1, with what runs here."
    return about, f"# TYPE {_BUILD} gauge", f"{_BUILD}{{{labels}}} 1"


def _plain(family: Family, numbers: dict[str, int]) -> list[str]:
    return [f"{sample(family.name, value)} {number}" for value, number in numbers.items()]


def _histogram(family: Family, numbers: dict[str, int]) -> list[str]:
    lines: list[str] = []
    count = 0
    for value in family.values[:-1]:
        count += numbers[value]
        lines.append(f'{family.name}_bucket{{le="{value}"}} {count}')
    return [*lines, f"{family.name}_sum {numbers['sum'] * family.unit:.9f}", f"{family.name}_count {count}"]
