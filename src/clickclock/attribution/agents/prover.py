"""The lake → a proof of credit for one order, as it was in a result version.

Never believes what a run computed: journeys and credits are computed anew, from the rows that the run read and by the
rules that it had. Invariant: whoever asks twice about one version gets the same answer, as long as the lake has it.

The lake has no index. Of all touches a few columns of numbers are read, and of raw clicks the days on which the person
clicked.

>>> Prover(Lake("/tmp/lake"), BUILT_IN).prove("shop", "7")["differs"]   # doctest: +SKIP
[]
"""

import json
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cached_property, reduce
from itertools import chain, groupby
from operator import itemgetter, or_
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.clicks.absent import present
from clickclock.attribution.clicks.ad import CLICK_ID_COLUMNS, COLUMNS, ONCE, says
from clickclock.attribution.clicks.click import Flag
from clickclock.attribution.clicks.identifier import CUSTOMER, NAMESPACES, STRENGTHS
from clickclock.attribution.clicks.traffic import FLOOD_MS
from clickclock.attribution.crediting.columns import months
from clickclock.attribution.crediting.columns.unconverted import PATH_SEPARATOR
from clickclock.attribution.crediting.policy import Policy
from clickclock.attribution.crediting.touchpoint import Touch, first_use
from clickclock.attribution.lake import (
    ADS,
    CLICKS,
    CREDITS,
    DAY,
    EVENTS,
    IDENTITIES,
    ORDER_MONTH,
    ORDERS,
    TOUCHES,
    UNCONVERTED,
    VIEW_ADS,
    VIEW_TOUCHES,
    VIEWS,
    Lake,
    Table,
    credits_table,
)
from clickclock.attribution.models import Factory, JourneyModel, PathRow, by_channel, choose
from clickclock.attribution.orders.amendment import IDENTIFYING, Amendment, judge
from clickclock.attribution.orders.order import Order, fold
from clickclock.attribution.registering.identification import (
    NAME,
    Identification,
    of_order,
    of_query,
    standing,
    withdrawn,
)
from clickclock.attribution.reporting.proof import Evidence, Guards, Identifier, Seen, differences, identifiers, prove
from clickclock.attribution.reporting.proof_document import document
from clickclock.attribution.reporting.report import find
from clickclock.attribution.reporting.result import Result
from clickclock.foundation.errors import NotFound
from clickclock.foundation.instant import EPOCH, ms_of

KINDS: Final = tuple(NAMESPACES)
_OF_AD: Final = (*COLUMNS, *CLICK_ID_COLUMNS, *ONCE)
_SAID: Final = ("id", *KINDS, *_OF_AD, "other", "event_time", "event_time_sent", "flags")
"""The columns of a raw click that a proof shows."""
_FACTS: Final = credits_table(()).whole.names

Row = dict[str, Any]


class NoOrder(NotFound):
    """There is no such order in this result version; if it is new, run attribution first."""

    code = "noOrder"


class Prover:
    """Proofs from one lake."""

    def __init__(self, lake: Lake, models: Mapping[str, Factory]) -> None:
        """`models` are all that there are, by name."""
        self._lake = lake
        self._models = models

    def prove(self, client_id: str, order_id: str, version: int | None = None) -> Row:
        """The proof as JSON, of the latest version if none is given. Raises `NoVersion`, `NoOrder`, `VersionGone`."""
        result = find(self._lake.results(), version)
        case = _Case(self._lake, result, client_id)
        amendments = case.amendments([order_id])
        if not amendments:
            raise NoOrder
        order = fold(amendments)
        person = case.person(order)
        evidence = case.evidence(person)
        seen = [*_seen(evidence), *case.identifications(person)]
        orders = case.orders(order, seen)
        named = {found.code for each in (*orders, *seen) for found in each.identifiers}
        month = months.name(int(months.months(np.array([order.placed_ms]), case.policy.zone)[0]))
        proof = prove(
            amendments,
            order,
            month=month,
            policy=case.policy,
            models=case.models(month, self._models),
            evidence=evidence,
            orders=[*orders, *seen[len(evidence) :]],
            guards=Guards(case.shared(named), case.crowded(named)),
        )
        return document(proof, result, differences(proof, case.credits(order)))


class _Case:
    """What the lake knows of one client in one version."""

    def __init__(self, lake: Lake, result: Result, client_id: str) -> None:
        self._lake = lake
        self._result = result
        self._client_id = client_id
        self._settings = json.loads(result.settings)
        told = self._settings["policies"]
        self._mine = pc.field("client_id") == client_id
        self.policy = Policy.model_validate(told["clients"].get(client_id, told["default"]))

    def amendments(self, order_ids: Collection[str]) -> list[Amendment]:
        """The amendments of these orders, judged anew; an unreadable one counts as none."""
        of_order = pc.field("order_id").isin(pa.array(order_ids, pa.string()))
        judged = [
            judge(row["raw"], _us(row["received_at"]) // 1000, entry_id=row["id"], is_kept=True)
            for row in self._rows(ORDERS.name, self._mine & of_order, ["id", "received_at", "raw"])
        ]
        return [each for each in judged if isinstance(each, Amendment)]

    def shared(self, codes: Collection[int]) -> dict[int, int]:
        """Which of these codes are nobody's, with the number of their links."""
        rows = self._rows(IDENTITIES.name, _is_one_of(codes) & pc.field("is_shared"), ["code", "links"])
        return {row["code"]: row["links"] for row in rows}

    def crowded(self, codes: Collection[int]) -> dict[int, int]:
        """Which of these codes are devices that link nobody, with the number of their visitors."""
        rows = self._rows(IDENTITIES.name, _is_one_of(codes) & ~pc.field("is_shared"))
        # A version from before this rule has no such column.
        return {row["code"]: row["visitors"] for row in rows if row.get("visitors") is not None}

    def person(self, order: Order) -> list[int]:
        """All codes of the order's person; none if it is nobody's."""
        named = self._identifiers({kind: getattr(order, kind) for kind in IDENTIFYING})
        shared = self.shared([each.code for each in named])
        start = next((each.code for each in named if each.code not in shared), None)
        if start is None:
            return []
        own = list(self._rows(IDENTITIES.name, (pc.field("code") == start) & ~pc.field("is_shared")))
        person: int = own[0]["person"] if own else start
        others = self._rows(IDENTITIES.name, (pc.field("person") == person) & ~pc.field("is_shared"))
        return [person, *(row["code"] for row in others)]

    def evidence(self, person: list[int]) -> list[Evidence]:
        """Every click of a person, and every view that has a window."""
        clicks = self._evidence(person, CLICKS, TOUCHES, ADS)
        if not self.policy.view_windows:
            return clicks
        views = self._evidence(person, VIEWS, VIEW_TOUCHES, VIEW_ADS)
        hours = self.policy.view_window_hours
        return clicks + [each for each in views if hours(each.touch.channel, each.touch.seller_id)]

    def _evidence(self, person: list[int], raw: Table, table: Table, described: Table) -> list[Evidence]:
        of_person = reduce(or_, (pc.field(kind).isin(person) for kind in KINDS))
        touches = self._of(person, list(self._rows(table.name, of_person))) if person else []
        if not touches:
            return []
        is_view = raw is VIEWS
        ads = {row["ad"]: row for row in self._rows(described.name, _in("ad", touches))}
        clicks = self._raw(raw, touches)
        spenders, floods = ({}, set[str]()) if is_view else self._neighbours(touches)
        codes = set(person)
        return [
            Evidence(
                _touch(touch, ads[touch["ad"]], codes, spenders.get(touch["click_id"]), touch["id"] in floods, is_view),
                Seen(touch["id"], "click", self._identifiers(clicks[touch["id"]])),
                present(clicks[touch["id"]], "gclid") or present(clicks[touch["id"]], "uclid"),
                has_network=touch["network"] is not None,
                said=_said(clicks[touch["id"]], ads[touch["ad"]]["channel"]),
                sent_ms=_sent_ms(clicks[touch["id"]]),
            )
            for touch in touches
        ]

    def _of(self, person: list[int], touches: list[Row]) -> list[Row]:
        """The touches whose first identifier that is not shared is the person's. Others may have its crowded device."""
        shared = self.shared({touch[kind] for touch in touches for kind in KINDS} - {None})
        own = ([touch[kind] for kind in KINDS if touch[kind] not in {None, *shared}] for touch in touches)
        return [touch for touch, codes in zip(touches, own, strict=True) if codes[0] in person]

    def identifications(self, person: Collection[int]) -> list[Seen]:
        """What the client said of the person's visitors and devices, and still stands."""
        seen = (
            Seen(each.entry_id, "identification", self._identifiers(pair))
            for each in standing(self._said if person else ())
            for pair in each.links
        )
        return [each for each in seen if any(found.code in person for found in each.identifiers)]

    @cached_property
    def _said(self) -> list[Identification]:
        """All that the client said of its customers."""
        rows = self._rows(EVENTS.name, self._mine & (pc.field("name") == NAME), ["id", "received_at", "raw"])
        said = (of_query(row["raw"], _us(row["received_at"]) // 1000, entry_id=row["id"]) for row in rows)
        return [each for each in said if isinstance(each, Identification)]

    def orders(self, order: Order, others: list[Seen]) -> list[Seen]:
        """The order, and every other that shares an identifier with it, with these others, or with one of those."""
        seen = {order.order_id: self._seen_on(order)}
        known: set[Identifier] = set()
        while fresh := {each for those in (*chain(*seen.values()), *others) for each in those.identifiers} - known:
            known |= fresh
            codes = {each.code for each in fresh}
            leading = codes - self.shared(codes).keys() - self.crowded(codes).keys()
            values = pa.array([each.value for each in fresh if each.code in leading], pa.string())
            device_id = pc.ascii_lower(pc.field("device_id"))
            of_known = pc.field("cli_ubid").isin(values) | device_id.isin(pc.ascii_lower(values))
            of_known |= pc.field(CUSTOMER).isin(values)
            rows = self._rows(ORDERS.name, self._mine & of_known, ["order_id"])
            found = {row["order_id"] for row in rows} - seen.keys()
            said = defaultdict(list)
            for each in self.amendments(found):
                said[each.order_id].append(each)
            for order_id, amendments in said.items():
                seen[order_id] = self._seen_on(fold(amendments))
        return list(chain(*seen.values()))

    def _seen_on(self, order: Order) -> list[Seen]:
        """What an order links: its browser and its device, and one of them with its customer."""
        own: Row = {"cli_ubid": order.cli_ubid, "device_id": order.device_id}
        pairs: list[Row] = [own, of_order(order, withdrawn(self._said))]
        if order.cli_ubid is None and order.device_id is None:
            pairs = [{CUSTOMER: order.customer_id}]
        return [Seen(order.order_id, "order", self._identifiers(pair)) for pair in pairs if pair]

    def models(self, month: str, known: Mapping[str, Factory]) -> dict[str, JourneyModel]:
        """The version's models; those that look at many paths, as the month taught them."""
        chosen = {model: choose(model, settings, known) for model, settings in self._settings["models"].items()}
        is_table = any(not isinstance(model, JourneyModel) for model in chosen.values())
        paths = list(self._paths(month)) if is_table else []
        return {
            name: model if isinstance(model, JourneyModel) else by_channel(model, paths)
            for name, model in chosen.items()
        }

    def credits(self, order: Order) -> Iterator[Row]:
        """What the version says of an order."""
        where = self._mine & (pc.field("order_id") == order.order_id)
        models = list(chain(*self._lake.models(self._result)))
        for rows in self._lake.credits(self._result, where, _FACTS, models):
            yield from rows.to_pylist()

    def _paths(self, month: str) -> Iterator[PathRow]:
        """The paths of a month, each with how often it converted and how often it did not."""
        where = self._mine & (pc.field(ORDER_MONTH) == month) & (pc.field("place") > 0)
        schema = pa.schema([("order_id", pa.string()), ("place", pa.int32()), ("channel", pa.string())])
        touchpoints = pa.Table.from_batches(self._batches(CREDITS, where, schema.names), schema)
        touchpoints = touchpoints.sort_by([("order_id", "ascending"), ("place", "ascending")])
        pairs = zip(touchpoints["order_id"].to_pylist(), touchpoints["channel"].to_pylist(), strict=True)
        conversions = Counter(tuple(channel for _, channel in each) for _, each in groupby(pairs, itemgetter(0)))
        nulls: Counter[tuple[str, ...]] = Counter()
        for batch in self._batches(UNCONVERTED.name, self._mine & (pc.field("month") == month), ["path"]):
            nulls.update(tuple(path.split(PATH_SEPARATOR)) for path in batch["path"].to_pylist())
        for path in conversions.keys() | nulls.keys():
            yield PathRow(path, conversions[path], 0, nulls[path])

    def _raw(self, table: Table, touches: list[Row]) -> dict[str, Row]:
        """The raw rows of these touches, by id, from the days on which they came."""
        by_day = defaultdict(list)
        for touch in touches:
            by_day[touch[DAY]].append(touch)
        where = reduce(
            or_,
            (
                (pc.field(DAY) == day)
                & (pc.field("received_at") >= _instant(min(each["received_us"] for each in those)))
                & (pc.field("received_at") <= _instant(max(each["received_us"] for each in those)))
                & _in("id", those)
                for day, those in by_day.items()
            ),
        )
        return {row["id"]: row for row in self._rows(table.name, where, list(_SAID))}

    def _neighbours(self, touches: list[Row]) -> tuple[dict[int, str], set[str]]:
        """The first user of each click id; and which clicks are a flood on one ad from one network."""
        times_ms = [touch["time_ms"] for touch in touches]
        near = (
            _in("network", touches)
            & _in("ad", touches)
            & (pc.field("time_ms") >= min(times_ms) - FLOOD_MS)
            & (pc.field("time_ms") <= max(times_ms))
        )
        uses: dict[int, list[Row]] = defaultdict(list)
        clicked: dict[tuple[int, int], list[int]] = defaultdict(list)
        columns = ["id", "time_ms", "received_us", "click_id", "parameters", "network", "ad"]
        for row in self._rows(TOUCHES.name, _in("click_id", touches) | near, columns):
            if row["click_id"] is not None:
                uses[row["click_id"]].append(row)
            clicked[row["network"], row["ad"]].append(row["time_ms"])
        for those in clicked.values():
            those.sort()
        floods = set()
        for touch in touches:
            if touch["network"] is not None:
                at_ms, those = touch["time_ms"], clicked[touch["network"], touch["ad"]]
                count = bisect_right(those, at_ms) - bisect_left(those, at_ms - FLOOD_MS)
                if count > self.policy.clicks_per_network_and_ad_max:
                    floods.add(touch["id"])
        return {click_id: first_use(rows) for click_id, rows in uses.items()}, floods

    def _identifiers(self, values: Mapping[str, str | None]) -> tuple[Identifier, ...]:
        return identifiers(self._client_id, values, self.policy)

    def _rows(self, table: str, where: pc.Expression, columns: list[str] | None = None) -> Iterator[Row]:
        for batch in self._batches(table, where, columns):
            yield from batch.to_pylist()

    def _batches(self, table: str, where: pc.Expression, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows that fit, of the version of the table that the result stands for."""
        version = self._result.reads(table)
        return iter(()) if version is None else self._lake.scan(table, where, columns, version)


def _said(click: Row, channel: str) -> dict[str, str]:
    """What a raw click says of its ad."""
    return says(channel, dict(click["other"] or ()) | {name: click[name] for name in _OF_AD})


def _sent_ms(click: Row) -> int | None:
    """The time that the client named."""
    sent = click["event_time_sent"] or click["event_time"]
    return None if sent is None or Flag.EVENT_TIME_ABSENT in (click["flags"] or ()) else ms_of(sent)


def _touch(touch: Row, ad: Row, codes: set[int], spent_by: str | None, is_flood: bool, is_view: bool) -> Touch:
    is_spent = spent_by not in {None, touch["id"]}
    return Touch(
        id=touch["id"],
        time_ms=touch["time_ms"],
        received_us=touch["received_us"],
        strength=next(STRENGTHS[kind] for kind in KINDS if touch[kind] in codes),
        channel=ad["channel"],
        seller_id=ad["seller_id"],
        ad_key=touch["ad_key"],
        parameters=touch["parameters"],
        is_spent=is_spent,
        is_bot=touch["is_bot"],
        is_flood=is_flood,
        is_prefetch=touch.get("is_prefetch") or False,  # versions of before have no such column
        campaign=ad["campaign"],
        ad_set=ad["ad_set"],
        ad=ad["ad_id"],
        atag=ad["atag"],
        asvt=ad["asvt"],
        is_view=is_view,
        spent_by=spent_by if is_spent else None,
    )


def _is_one_of(codes: Collection[int]) -> pc.Expression:
    return pc.field("code").isin(pa.array(codes, pa.int64()))


def _seen(evidence: Iterable[Evidence]) -> list[Seen]:
    return [each.seen for each in evidence]


def _in(column: str, touches: Iterable[Row]) -> pc.Expression:
    """Whether a column has one of the values that these touches have there."""
    values = {touch[column] for touch in touches if touch[column] is not None}
    return pc.field(column).isin(pa.array(sorted(values), TOUCHES.schema.field(column).type))


def _instant(us: int) -> datetime:
    return EPOCH + timedelta(microseconds=us)


def _us(instant: datetime) -> int:
    return (instant - EPOCH) // timedelta(microseconds=1)
