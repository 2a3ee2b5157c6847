"""`/metrics`: what the scanner found and how the loops do, for Prometheus.

Never asks the store, so that it answers while the store is away. Invariant: a code that was not found is there as 0.

>>> [name for name, _ in FAMILIES][0]
'clickclock_findings'
"""

from collections import Counter
from collections.abc import Iterable

from clickclock.scheduler.engine import Engine
from clickclock.scheduler.insight.finding import RULES

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FAMILIES = (
    ("clickclock_findings", "What is wrong now, counted, by its code."),
    ("clickclock_scan_timestamp_seconds", "When that was looked for, in seconds since 1970."),
    ("clickclock_scan_duration_seconds", "How long the look took."),
    ("clickclock_loop_overdue_seconds", "How long a loop is over the time in which it meant to step."),
)
"""Every metric, all of them gauges, with its meaning."""


def exposition(engine: Engine) -> str:
    """All numbers, in the text format; what the first look has not found yet is not there."""
    numbers: dict[str, list[str]] = {name: [] for name, _ in FAMILIES}
    scan = engine.scanner.last
    if scan is not None:
        counts: Counter[str] = Counter()
        for each in scan.findings:
            counts[each.code] += each.count
        numbers["clickclock_findings"] = [
            f'{{code="{code}",severity="{rule.severity}"}} {counts[code]}' for code, rule in RULES.items()
        ]
        numbers["clickclock_scan_timestamp_seconds"] = [f" {scan.at.timestamp():.3f}"]
        numbers["clickclock_scan_duration_seconds"] = [f" {scan.took_s:.6f}"]
    numbers["clickclock_loop_overdue_seconds"] = [
        f'{{loop="{each.name}"}} {each.overdue_s:.3f}' for each in engine.loops()
    ]
    return "".join(_family(name, meaning, numbers[name]) for name, meaning in FAMILIES)


def _family(name: str, meaning: str, numbers: Iterable[str]) -> str:
    lines = [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", *(f"{name}{number}" for number in numbers)]
    return "\n".join(lines) + "\n"
