"""What a benchmark found: measures of ours and of the others beside them, and the table they print as.

Never asserts a time: a goal is shown beside what was measured, met or not. Invariant: only a fault (something lost,
doubled, or that did not run) makes the whole run fail.

>>> Goal(most=2.5).met(Measure("median", "ms", 2.0))
True
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Goal:
    """A bound: a number, a multiple of a peer in the same run, or either of them (`or_`)."""

    most: float | None = None
    least: float | None = None
    factor: float = 1.0
    of: str | None = None
    any_of: bool = False
    """Whether one of `most` and `factor × of` is enough; otherwise all bounds hold."""

    def met(self, measure: "Measure") -> bool | None:
        """Whether `measure` keeps to it; None where the peer is missing and nothing else decides."""
        held: list[bool] = []
        if self.most is not None:
            held.append(measure.ours <= self.most)
        if self.least is not None:
            held.append(measure.ours >= self.least)
        if self.of is not None and self.of in measure.others:
            held.append(measure.ours <= self.factor * measure.others[self.of])
        if not held:
            return None
        return any(held) if self.any_of else all(held)

    def __str__(self) -> str:
        parts = [f"≤ {self.most:g}"] if self.most is not None else []
        parts += [f"≥ {self.least:g}"] if self.least is not None else []
        parts += [f"≤ {self.factor:g} × {self.of}"] if self.of is not None else []
        return (" or " if self.any_of else " and ").join(parts)


@dataclass(frozen=True)
class Measure:
    """One number of ours, with the same number of others (peers, raw limits) from the same run."""

    name: str
    unit: str
    ours: float
    others: dict[str, float] = field(default_factory=dict)
    goal: Goal | None = None


@dataclass
class Report:
    """What one benchmark found. `faults` are sentences about what was lost, doubled or did not run."""

    title: str
    measures: list[Measure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    with_ratios: bool = True
    who: str = "clickclock"
    """Whose numbers stand in the first column."""

    def add(
        self,
        name: str,
        unit: str,
        ours: float | Sequence[float],
        goal: Goal | None = None,
        others: Mapping[str, float | Sequence[float]] = MappingProxyType({}),
    ) -> None:
        """Add a measure; of several rounds, the median. A peer with no rounds is left out."""
        self.measures.append(
            Measure(
                name,
                unit,
                middle(ours),
                {name: middle(rounds) for name, rounds in others.items() if not _is_empty(rounds)},
                goal,
            )
        )

    def as_json(self) -> dict[str, Any]:
        """For `--json`: the measures with their goals in words and whether they were met."""
        return {
            **asdict(self),
            "measures": [
                {
                    "name": each.name,
                    "unit": each.unit,
                    "ours": each.ours,
                    "others": each.others,
                    "goal": each.goal and str(each.goal),
                    "met": each.goal and each.goal.met(each),
                }
                for each in self.measures
            ],
        }

    def show(self, console: Console) -> None:
        """Print the table: a column for each other, and ours over it in brackets."""
        peers = list(dict.fromkeys(name for each in self.measures for name in each.others))
        table = Table(title=self.title, title_justify="left", title_style="bold")
        table.add_column("measure")
        for name in ("unit", self.who, *(f"{peer} (ours ÷ it)" if self.with_ratios else peer for peer in peers)):
            table.add_column(name, justify="left" if name == "unit" else "right")
        table.add_column("goal")
        for each in self.measures:
            cells = [self._cell(each, peer) for peer in peers]
            table.add_row(each.name, each.unit, number(each.ours), *cells, _goal(each))
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}", highlight=False)
        for fault in self.faults:
            console.print(f"  FAULT: {fault}", style="bold red", highlight=False)
        console.print()

    def as_markdown(self) -> str:
        """The same as a section of a page."""
        peers = list(dict.fromkeys(name for each in self.measures for name in each.others))
        columns = ["", self.who, *peers, "goal"]
        rows = [columns, ["---", "--:", *("--:" for _ in peers), "---"]]
        for each in self.measures:
            ours = f"{number(each.ours)} {each.unit}".replace(" 1/", "/")
            rows.append([each.name, ours, *(self._cell(each, peer) for peer in peers), _in_words(each)])
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        said = "\n".join([*(f"- {note}" for note in self.notes), *(f"- **FAULT**: {fault}" for fault in self.faults)])
        name, _, title = self.title.partition(": ")
        return "\n\n".join(part for part in (f"## {name}", f"{title[:1].upper()}{title[1:]}.", table, said) if part)

    def _cell(self, measure: Measure, peer: str) -> str:
        other = measure.others.get(peer)
        if other is None:
            return ""
        return f"{number(other)} ({measure.ours / other:.2f})" if self.with_ratios and other else number(other)


def number(value: float) -> str:
    """Three digits that matter.

    >>> number(0.012345), number(4.5678), number(23456.7)
    ('0.0123', '4.57', '23,457')
    """
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def middle(rounds: float | Sequence[float]) -> float:
    """A number as it is; of several, the median."""
    return float(rounds) if isinstance(rounds, int | float) else float(median(rounds))


def percentile(values: Sequence[float], share: float) -> float:
    """The value at or below which `share` of `values` lie (nearest rank); NaN of none."""
    if not values:
        return float("nan")
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, max(0, -int(-share * len(ranked) // 1) - 1))]


def _is_empty(rounds: float | Sequence[float]) -> bool:
    return not isinstance(rounds, int | float) and not rounds


def _in_words(measure: Measure) -> str:
    if measure.goal is None:
        return ""
    met = measure.goal.met(measure)
    return f"{measure.goal}{'' if met is None else ': met' if met else ': **missed**'}"


def _goal(measure: Measure) -> str:
    if measure.goal is None:
        return ""
    met = measure.goal.met(measure)
    return f"{measure.goal}  {'' if met is None else '[green]met[/green]' if met else '[yellow]not met[/yellow]'}"
