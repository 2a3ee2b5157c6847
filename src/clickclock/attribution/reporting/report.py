"""A report: what is asked of a result version, and the arithmetic of what is answered.

Never reads the lake: it is given what was counted. Invariants: amounts are whole minor units until they are written,
and amounts of two currencies are never added, nor divided by each other; of one model, a click is counted in one row
of each group; a derived figure can be computed again from its own row.

>>> Asked(by=(Dimension.CHANNEL, Dimension.MODEL)).groups
(<Dimension.CHANNEL: 'channel'>,)
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

import msgspec

from clickclock.attribution.orders.money import DIGITS, to_text
from clickclock.attribution.reporting.figures import OF_A_CLICK, OF_HOLDOUT, OF_MODELS, Against, Dimension, Figure, Form
from clickclock.attribution.reporting.parameters import no_such
from clickclock.attribution.reporting.result import Result
from clickclock.foundation.errors import Invalid, Malformed, NotFound
from clickclock.foundation.record import rfc3339

ROWS_MAX: Final = 100_000
"""More is no report that anybody reads; the lake's tables are there for it."""
CONVERSION_DIGITS: Final = 6
"""Shares are binary fractions: three thirds make 1 again at so many digits, in whatever order they were added."""
ROAS_DIGITS: Final = 4
NOTHING: Final = "There is nothing to report: no click, no order and no cost fits what was asked."
_APART: Final = (
    "Some groups have several currencies: their clicks and people, which have none, are in rows of their own."
)
_MIXED: Final = (
    "Some rows add up orders of several kinds, such as purchases and leads; ask by kind, or for one kind, to tell them "
    "apart."
)
_FOREIGN: Final = (
    "Some costs are in another currency than the orders of their group: those rows have no ROAS and no CPA; import "
    "such costs in the currency of the orders."
)
_WHOLE: Final = (
    "Some costs are of more than their row says, of a channel without a campaign for example: those rows have no ROAS "
    "and no CPA; ask by fewer dimensions."
)
_UNMET: Final = (
    "Costs of these channels meet no click: {}. Import costs under the channel's name in this report, or give the "
    "clicks a channel rule of that name."
)
_UNMET_MAX: Final = 10
"""A note names so many channels; all of them are rows of the report."""
_SELLERLESS: Final = "Costs are of no seller: a report by sellers, or about one, leaves them out."
_NARROWER: Final = frozenset({"channel", "campaign", "ad_set", "ad", "customer", "kind", "reason", *OF_A_CLICK})
"""Costs without one of these are of all its values, and not of what has none."""

Row = dict[str, Any]
Key = tuple[Any, ...]


class NoVersion(NotFound):
    """There is no such result version; `clickclock attribution versions` lists those that there are."""

    code = "noVersion"


class TooManyRows(Invalid):
    """The report is too long; ask for fewer dimensions, fewer days or one client."""

    code = "tooManyRows"


_NOTHING: Final = {Figure.CLICKS: 0, Figure.VIEWS: 0, Figure.PEOPLE: 0, Figure.ORDERS: 0, Figure.CONVERSIONS: 0.0}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a report is to tell."""

    by: tuple[Dimension, ...] = (Dimension.CHANNEL,)
    figures: tuple[Figure, ...] = tuple(Figure)
    models: tuple[str, ...] = ()
    """None named: every model if it is a dimension, otherwise `last`, or the version's first if it has none."""
    since: date | None = None
    until: date | None = None
    """The last day."""
    client_id: str | None = None
    within: tuple[str, ...] | None = None
    """The clients that may be seen, None for all."""
    seller_id: str | None = None
    channel: str | None = None
    kind: str | None = None
    """The kind of orders."""
    currency: str | None = None
    version: int | None = None
    """The latest if not given."""
    form: Form = Form.JSON
    compare: Against | None = None
    holdout: tuple[str, ...] = ()
    """The countries in which ads were off; then the answer is what the others let expect there."""
    every_day: bool = False
    """Whether each group has a row on each day, also where nothing happened."""
    raw: bool = False
    """Whether CSV has every name as it came, also where a spreadsheet would take it for a formula."""

    @property
    def groups(self) -> tuple[Dimension, ...]:
        """The dimensions that are columns of what is counted; models are counted side by side."""
        return tuple(each for each in self.by if each is not Dimension.MODEL)

    @property
    def of_clicks(self) -> tuple[Dimension, ...]:
        """The dimensions that only the clicks themselves say."""
        return tuple(each for each in self.groups if each in OF_A_CLICK)

    @property
    def has_days(self) -> bool:
        """Whether it matters on which day a click was."""
        return Dimension.DAY in self.by or self.since is not None or self.until is not None

    @property
    def has_clicks(self) -> bool:
        """Whether clicks are reported."""
        return not {Figure.CLICKS, Figure.PEOPLE}.isdisjoint(self.figures)

    @property
    def has_views(self) -> bool:
        """Whether views are reported."""
        return Figure.VIEWS in self.figures

    @property
    def has_costs(self) -> bool:
        """Whether costs can be told."""
        is_of_sellers = self.seller_id is not None or Dimension.SELLER in self.by
        return not is_of_sellers and not {Figure.COST, Figure.ROAS, Figure.CPA}.isdisjoint(self.figures)

    @property
    def filters(self) -> dict[str, str]:
        """The filters, by the interface's names."""
        given = {"clientId": self.client_id, "sellerId": self.seller_id}
        given |= {"channel": self.channel, "kind": self.kind, "currency": self.currency}
        return {name: value for name, value in given.items() if value is not None}

    def choose(self, models: Sequence[str]) -> tuple[str, ...]:
        """The models to tell, of those that the version has. Raises `Malformed`."""
        return chosen(self.models, models, is_every=Dimension.MODEL in self.by or self.compare is Against.MODELS)


def chosen(asked: tuple[str, ...], models: Sequence[str], *, is_every: bool = False) -> tuple[str, ...]:
    """The models to tell: those that are asked for, or all of them, or the usual one. Raises `Malformed`."""
    strange = [name for name in asked if name not in models]
    if strange:
        raise Malformed(faults=[no_such("model", name, models, "model", " in this version") for name in strange])
    if asked or not models:
        return asked
    if is_every:
        return tuple(models)
    return ("last",) if "last" in models else (models[0],)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: rows of plain values, amounts as decimals."""

    asked: Asked
    version: int
    created_at: datetime
    models: tuple[str, ...]
    rows: list[Row]
    notes: list[str]

    @property
    def columns(self) -> list[str]:
        """What every row has, in this order: the key, the model, the currency, the figures."""
        if self.asked.holdout:
            return [*map(str, self.asked.groups), "currency", *OF_HOLDOUT]
        if self.asked.compare is Against.MODELS:
            return [*map(str, self.asked.groups), "currency", *OF_MODELS]
        suffixes = ("",) if self.asked.compare is None else ("", "_before", "_change")
        figures = [f"{each}{suffix}" for each in self.asked.figures for suffix in suffixes]
        return [*map(str, self.asked.groups), "model", "currency", *figures]

    def wire(self) -> dict[str, Any]:
        """This report as the interface writes it."""
        asked = self.asked
        return {
            "version": self.version,
            "createdAt": rfc3339(self.created_at),
            "by": [camel(each) for each in asked.by],
            "models": list(self.models),
            "from": asked.since and asked.since.isoformat(),
            "to": asked.until and asked.until.isoformat(),
            "compare": asked.compare,
            "holdout": list(asked.holdout),
            "filters": asked.filters,
            "notes": self.notes,
            "rows": [{camel(name): as_text(value) for name, value in row.items()} for row in self.rows],
        }


COUNTS: Final = ("clicks", "views", "people", "orders", "kinds", "revenue", "cost")


class Counted(msgspec.Struct):
    """The figures of one group and currency; None where there is nothing to count."""

    clicks: int | None = None
    views: int | None = None
    people: int | None = None
    orders: int | None = None
    kinds: int | None = None
    """Of how many kinds the orders are, where they are added up."""
    revenue: int | None = None
    cost: int | None = None
    of_models: tuple[tuple[int, int, float], ...] = ()
    """Of each model in turn: credit, refunds, conversions; none where there is no order."""


def find(results: Sequence[Result], version: int | None) -> Result:
    """The version that was asked for, or the latest. Raises `NoVersion`."""
    if not results:
        raise NoVersion("There is no result version yet; make one: clickclock attribution run")
    if version is None:
        return results[-1]
    for result in results:
        if result.version == version:
            return result
    raise NoVersion(f"There is no result version {version}; there are 1 to {results[-1].version}.")


def arrange(
    asked: Asked, models: Sequence[str], counted: Iterable[tuple[Key, str | None, Counted]]
) -> tuple[list[Row], list[str]]:
    """The rows of a report, sorted by key, currency and model, and what there is to say about them.

    `counted` has each key and currency once; what has no currency is what was counted of clicks.
    """
    groups: dict[Key, dict[str | None, Counted]] = {}
    for key, currency, counts in counted:
        groups.setdefault(key, {})[currency] = counts
    told = {each for by_currency in groups.values() for each in by_currency if each is not None}
    sole = asked.currency or (next(iter(told)) if len(told) == 1 else None)
    rows: list[Row] = []
    notes: set[str] = set() if asked.has_costs or Figure.COST not in asked.figures else {_SELLERLESS}
    for key in sorted(groups, key=rank):
        by_currency = groups[key]
        is_apart = _place_clicks(by_currency, sole)
        names = dict(zip((str(each) for each in asked.groups), key, strict=True))
        is_whole = any(names.get(each, "") is None for each in _NARROWER)
        has_orders = any(counts.of_models for counts in by_currency.values())
        for currency in sorted(by_currency, key=lambda each: (each is None, each)):
            counts = by_currency[currency]
            is_foreign = has_orders and not counts.of_models
            if counts.cost is not None and (is_foreign or is_whole):
                notes.add(_FOREIGN if is_foreign else _WHOLE)
            for place, model in enumerate(models):
                figures = _figures(counts, place, currency, is_comparable=not (is_foreign or is_whole))
                if not is_apart:
                    figures |= {each: figures[each] or nothing for each, nothing in _NOTHING.items()}
                row = {**names, "model": model, "currency": currency}
                rows.append(row | {str(figure): figures[figure] for figure in asked.figures})
        if is_apart:
            notes.add(_APART)
        if any((counts.kinds or 0) > 1 for counts in by_currency.values()):
            notes.add(_MIXED)
    if unmet := _unmet(asked, groups):
        notes.add(_UNMET.format(", ".join(unmet)))
    return rows, [NOTHING] if not rows else sorted(notes)


def _unmet(asked: Asked, groups: Mapping[Key, Mapping[str | None, Counted]]) -> list[str]:
    """Channels that have costs and no click at all, as far as the report can say so; some of them if there are many."""
    if Dimension.CHANNEL not in asked.groups or Figure.CLICKS not in asked.figures:
        return []
    place = asked.groups.index(Dimension.CHANNEL)
    costly = {key[place] for key, found in groups.items() if any(counts.cost is not None for counts in found.values())}
    clicked = {key[place] for key, found in groups.items() if any(counts.clicks for counts in found.values())}
    return sorted(costly - clicked)[:_UNMET_MAX]


def _place_clicks(by_currency: dict[str | None, Counted], sole: str | None) -> bool:
    """Put a group's clicks where its one currency is, if it has one, or the report has; whether they stay apart."""
    clicks = by_currency.get(None)
    home = sole or (next((each for each in by_currency if each), None) if len(by_currency) == 2 else None)  # noqa: PLR2004 (it and None)
    if clicks is None or home is None:
        return clicks is not None and len(by_currency) > 1
    del by_currency[None]
    there = by_currency.setdefault(home, Counted())
    there.clicks, there.views, there.people = clicks.clicks, clicks.views, clicks.people
    return False


def as_text(value: Any) -> Any:
    """A value as JSON and CSV have it: amounts and days as text."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if isinstance(value, date) else value


def _figures(counts: Counted, place: int, currency: str | None, *, is_comparable: bool) -> dict[Figure, Any]:
    figures: dict[Figure, Any] = dict.fromkeys(Figure)
    figures |= {Figure.CLICKS: counts.clicks, Figure.VIEWS: counts.views, Figure.PEOPLE: counts.people}
    if currency is None:
        return figures
    credit, refunds, conversions = counts.of_models[place] if counts.of_models else (0, 0, 0.0)
    figures |= {Figure.ORDERS: counts.orders or 0, Figure.CONVERSIONS: round(conversions, CONVERSION_DIGITS)}
    figures[Figure.REVENUE] = _amount(counts.revenue or 0, currency)
    figures[Figure.CREDIT] = _amount(credit, currency)
    figures[Figure.REFUNDS] = _amount(refunds, currency)
    if counts.cost is None:
        return figures
    figures[Figure.COST] = _amount(counts.cost, currency)
    if is_comparable and counts.cost:
        figures[Figure.ROAS] = _rounded(Decimal(credit - refunds) / counts.cost, ROAS_DIGITS)
    if is_comparable and figures[Figure.CONVERSIONS]:
        each = figures[Figure.COST] / Decimal(str(figures[Figure.CONVERSIONS]))
        figures[Figure.CPA] = _rounded(each, DIGITS[currency])
    return figures


def _rounded(value: Decimal, digits: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def _amount(minor: int, currency: str) -> Decimal:
    return Decimal(to_text(minor, currency))


def rank(key: Key) -> list[tuple[bool, Any]]:
    """Values without a name come last."""
    return [(part is None, part) for part in key]


def place_of(row: Row, keys: Sequence[str], models: Sequence[str]) -> list[tuple[bool, Any]]:
    """What rows of a report are sorted by: their key, their currency and their model. `keys` end with these two."""
    *names, model, currency = (row[each] for each in keys)
    return [*rank((*names, currency)), (False, models.index(model))]


def camel(name: str) -> str:
    """A column as JSON calls it.

    >>> camel("ad_set"), camel("credit_before")
    ('adSet', 'creditBefore')
    """
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
