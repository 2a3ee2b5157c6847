r"""Numbers for Prometheus: counters, gauges and histograms in one process, and the text that they become.

Never takes a lock: all of a family's numbers are changed on one thread. Invariants: a family has as many cells as its
labels have had values, so whoever adds a label bounds its values; a histogram's buckets are cumulative, the last
is +Inf.

>>> family = Family("clickclock_starts_total", "counter", "Starts.", ("state",))
>>> family.add(2, "failed")
>>> print(text([family]), end="")
# HELP clickclock_starts_total Starts.
# TYPE clickclock_starts_total counter
clickclock_starts_total{state="failed"} 2
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
Kind = Literal["counter", "gauge", "histogram"]


class _Buckets:
    """How one histogram's values are spread."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


@dataclass(slots=True)
class Family:
    """All numbers of one name. `bounds` are a histogram's, in its unit."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    numbers: dict[tuple[str, ...], float] = field(default_factory=dict)
    spreads: dict[tuple[str, ...], _Buckets] = field(default_factory=dict)

    def add(self, count: float, *values: str) -> None:
        """Count."""
        self.numbers[values] = self.numbers.get(values, 0) + count

    def set(self, number: float, *values: str) -> None:
        """The present value."""
        self.numbers[values] = number

    def observe(self, value: float, *values: str) -> None:
        """Put a value into its bucket."""
        spread = self.spreads.get(values)
        if spread is None:
            spread = self.spreads[values] = _Buckets(self.bounds)
        spread.observe(value)


def text(families: Iterable[Family]) -> str:
    """The page that Prometheus asks for, in its text format."""
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.meaning}"
    yield f"# TYPE {family.name} {family.kind}"
    for values, number in family.numbers.items():
        yield f"{family.name}{_labels(family.labels, values)} {_shown(number)}"
    for values, spread in family.spreads.items():
        count = 0
        for bound, more in zip((*spread.bounds, "+Inf"), spread.counts, strict=True):
            count += more
            yield f"{family.name}_bucket{_labels((*family.labels, 'le'), (*values, str(bound)))} {count}"
        yield f"{family.name}_sum{_labels(family.labels, values)} {spread.sum:.9g}"
        yield f"{family.name}_count{_labels(family.labels, values)} {count}"


def _shown(number: float) -> str:
    return str(int(number)) if number == int(number) and abs(number) < 2**53 else f"{number:.6f}"


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
