"""The table-sized work, once: raw clicks → touches and ads, links of identifiers, and the rows that a kernel walks.

Never runs anything: the tables are unbound, and ibis makes text of them for each engine. What differs between engines
is the names of a few functions (`Dialect`). Invariants: a row's place, and every number in it but an engine's own
codes, is the same on all engines; no integer becomes a float on its way.

>>> links().columns
('one', 'other')
"""

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from inspect import Parameter, Signature
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final

import ibis
import ibis.expr.operations as ops
import pyarrow as pa

from clickclock.attribution.account import DISPUTED, PLACEHOLDERS, ChannelRule, small_letters
from clickclock.attribution.engines import AHEAD_MS, CHANGED, FLOODS, IDENTIFIED, ORDERS, PERSONS, USES, WALK
from clickclock.attribution.engines.columns import unbound
from clickclock.attribution.engines.dialects import Dialect, as_sql
from clickclock.attribution.identifier import DEVICE, NAMESPACES, SEPARATOR, STRENGTHS, folded
from clickclock.attribution.lake import ADS, CLICKS, TOUCHES
from clickclock.attribution.lake.tables import CLICK_PARAMETERS
from clickclock.attribution.policy import FURTHER_CHANNEL_RULES, Policies, Policy
from clickclock.attribution.touchpoint import RETRY_US
from clickclock.attribution.traffic import BOT_PATTERN, FLOOD_MS

BOTS: Final = pa.schema([("user_agent", pa.string())])
SHOWN: Final = pa.schema([("click", pa.string())])
_PLACE: Final = pa.field("number", pa.int64())
NUMBERED_ORDERS: Final = ORDERS.append(_PLACE)
NUMBERED_TEXTS: Final = IDENTIFIED.append(_PLACE)
KINDS_OF_ORDERS: Final = tuple(name for name in IDENTIFIED.names if name in NAMESPACES)
_SLOTS: Final = 2**17
"""Among so many, clicks are counted before any is looked at closely: a flood fills its slot, whatever else is in it."""
_OTHER_CHANNEL: Final = "other"
_NUMBER: Final = "int64"


def rules_hash(dialect: Dialect, rules: Policies) -> str:
    """Another one whenever rules, or these expressions, could make other touches."""
    made = [as_sql(dialect, each) for each in (touches(dialect, rules), ads(dialect, rules))]
    return sha256(SEPARATOR.join((BOT_PATTERN, *made)).encode()).hexdigest()[:16]


def agents() -> ibis.Table:
    """The user agents of `clicks`, each once."""
    return unbound(CLICKS.schema, "clicks").select("user_agent").distinct()


def ads(dialect: Dialect, rules: Policies) -> ibis.Table:
    """The ads of those of `clicks` whose ids are in `shown`, each once."""
    clicks, shown = unbound(CLICKS.schema, "clicks"), unbound(SHOWN, "shown")
    rows = clicks.join(shown, clicks.id == shown.click)
    parts = _ad(rows, rules)
    described = rows.select(ad=_hash(dialect, *parts.values()), **parts)
    return (
        described.group_by("ad").agg(**{name: described[name].arbitrary() for name in parts}).select(*ADS.schema.names)
    )


def touches(dialect: Dialect, rules: Policies) -> ibis.Table:
    """A touch for each row of `clicks`; whose `bots` has the user agent is flagged."""
    clicks, bots = unbound(CLICKS.schema, "clicks"), unbound(BOTS, "bots").select(bot="user_agent")
    rows = clicks.left_join(bots, clicks.user_agent == bots.bot)
    # By themselves, because an engine computes anew what stands in several places of one row.
    rows = rows.mutate(**{f"{kind}_code": _code(rows, kind, rules) for kind in NAMESPACES})
    ad = _ad(rows, rules)
    # Of the two ids, the one that counts stands at its own place: equal texts of two kinds are two ids.
    click_id = ibis.ifelse(
        rows.gclid.isnull() & rows.uclid.isnull(),
        ibis.null(_NUMBER),
        _hash(dialect, rows.client_id, rows.gclid, ibis.ifelse(rows.gclid.isnull(), rows.uclid, ibis.null("string"))),
    )
    codes = {kind: rows[f"{kind}_code"] for kind in NAMESPACES}
    return rows.select(
        id=rows.id,
        received_us=_function(dialect.epoch_us, "timestamp", returns=_NUMBER)(rows.received_at),
        time_ms=_function(dialect.epoch_ms, "timestamp", returns=_NUMBER)(rows.event_time.coalesce(rows.received_at)),
        cli_ubid=codes["cli_ubid"],
        device_id=codes["device_id"],
        gaid=codes["gaid"].nullif(codes["device_id"]),
        idfa=codes["idfa"].nullif(codes["device_id"]).nullif(codes["gaid"]),
        ad=_hash(dialect, *ad.values()),
        ad_key=click_id.coalesce(_hash(dialect, rows.client_id, ad["atag"], ad["asvt"], ad["ad_id"])),
        click_id=click_id,
        parameters=_parameters(dialect, rows),
        network=ibis.ifelse(rows.address.isnull(), ibis.null(_NUMBER), _hash(dialect, rows.address)),
        is_bot=rows.bot.notnull(),
    )


def codes(rules: Policies) -> ibis.Table:
    """The codes of the identifiers in `texts`, and the row of each."""
    texts = unbound(NUMBERED_TEXTS, "texts")
    return texts.select(number=texts.number, **{kind: _code(texts, kind, rules) for kind in KINDS_OF_ORDERS})


def links() -> ibis.Table:
    """Each two codes on one of `touches`, once: `one` is the smaller of the two."""
    kinds = list(NAMESPACES)
    seen = unbound(TOUCHES.schema, "touches").select(*kinds)
    count = sum((seen[kind].notnull().cast(_NUMBER) for kind in kinds), start=ibis.literal(0, _NUMBER))
    together = seen.filter(count > 1).distinct()
    pairs = [
        together.filter(together[first] != together[second]).select(
            one=ibis.least(together[first], together[second]), other=ibis.greatest(together[first], together[second])
        )
        for place, first in enumerate(kinds)
        for second in kinds[place + 1 :]
    ]
    return ibis.union(*pairs, distinct=True)


def walk(cut_ms: int | None = None) -> ibis.Table:
    """The rows of a kernel, not sorted, of `touches`, `uses`, `floods`, `orders` and `persons`.

    With `cut_ms` only of those that `changed` names, and from when it says, which for most of them is not before that.
    """
    clicks, orders = unbound(TOUCHES.schema, "touches"), unbound(NUMBERED_ORDERS, "orders")
    mine = _of_persons(clicks, "time_ms", is_partial=False) if cut_ms is None else _mine(cut_ms)
    uses, floods = unbound(USES, "uses"), unbound(FLOODS, "floods")
    judged = mine.left_join(uses, mine.click_id == uses.used).left_join(
        floods, (mine.network == floods.flooding) & (mine.ad == floods.flooded) & (mine.time_ms == floods.at_ms)
    )
    clicked = judged.select(
        is_order=ibis.literal(False),
        number=ibis.null(_NUMBER),
        is_spent=judged.used.notnull() & (judged.first_id != judged.id),
        is_flood=judged.flooded.notnull(),
        **{name: judged[name] for name in WALK.names if name in judged.columns},
    )
    theirs = _of_persons(orders, "placed_ms", is_partial=cut_ms is not None)
    nothing = {field.name: ibis.null(_NUMBER if pa.types.is_integer(field.type) else "string") for field in WALK}
    no = ibis.literal(False)
    ordered = theirs.select(
        **nothing
        | {"is_spent": no, "is_bot": no, "is_flood": no}
        | {
            "person": theirs.person,
            "time_ms": theirs.placed_ms,
            "is_order": ibis.literal(True),
            "strength": theirs.strength,
            "received_us": ibis.literal(0, _NUMBER),
            "number": theirs.number,
        }
    )
    return clicked.select(*WALK.names).union(ordered.select(*WALK.names))


def _mine(cut_ms: int) -> ibis.Table:
    """The rows of `touches`, with their persons, of those that `changed` names, and from when it says.

    Of most of them what is wanted is not older than `cut_ms`, and so older touches are not looked up for them. Nearly
    all touches have their person by their first identifier; only where that is nobody's is there more to ask.
    """
    clicks, persons, members = unbound(TOUCHES.schema, "touches"), unbound(PERSONS, "persons"), _members()
    first = ibis.coalesce(*(clicks[kind] for kind in NAMESPACES))
    is_recent = clicks.received_us >= (cut_ms - AHEAD_MS) * 1000
    none = ibis.null(_NUMBER)
    nobody = persons.filter(persons.is_shared).select(member="code", person=none, since_ms=none)
    changed = members.anti_join(nobody, "member")
    some, others = changed.union(nobody), changed.filter(changed.since_ms < cut_ms).union(nobody)
    recent, older = clicks.filter(is_recent), clicks.filter(~is_recent)
    rows = recent.join(some, first == some.member).union(older.join(others, first == others.member))
    known = _since(rows.filter(rows.person.notnull()), "time_ms")
    strength = ibis.cases(*((known[kind].notnull(), STRENGTHS[kind]) for kind in NAMESPACES)).cast("int8")
    unsure = rows.filter(rows.person.isnull()).select(*TOUCHES.schema.names)
    names = [*TOUCHES.schema.names, "person", "strength"]
    known = known.mutate(strength=strength).select(*names)
    return known.union(_of_persons(unsure, "time_ms", is_partial=True).select(*names))


def _of_persons(rows: ibis.Table, time: str, *, is_partial: bool) -> ibis.Table:
    """Rows with their person and the strength of the identifier that says so; those without a person are left out.

    Joins, and no `EXISTS`: the lists are small, and each join is one look into a hash table that stays in the cache.
    """
    persons = unbound(PERSONS, "persons")
    kinds = [kind for kind in NAMESPACES if kind in rows.columns]
    for kind in kinds:
        nobody = persons.filter(persons.is_shared).select(**{f"no_{kind}": "code"})
        rows = rows.left_join(nobody, rows[kind] == nobody[f"no_{kind}"])
    own = {kind: ibis.ifelse(rows[f"no_{kind}"].isnull(), rows[kind], ibis.null(_NUMBER)) for kind in kinds}
    strength = ibis.cases(*((own[kind].notnull(), STRENGTHS[kind]) for kind in kinds)).cast("int8")
    rows = rows.mutate(who=ibis.coalesce(*own.values()), strength=strength)
    rows = rows.filter(rows.who.notnull())
    if is_partial:
        members = _members()
        return _since(rows.join(members, rows.who == members.member), time)
    known = persons.filter(~persons.is_shared).select(known="code", known_person="person")
    rows = rows.left_join(known, rows.who == known.known)
    return rows.mutate(person=rows.known_person.coalesce(rows.who))


def _since(rows: ibis.Table, time: str) -> ibis.Table:
    """The rows from `since_ms` on; a click that came then can be one that another is a retry of."""
    is_wanted = rows[time] >= rows.since_ms
    if "received_us" in rows.columns:
        is_wanted |= rows.received_us >= rows.since_ms * 1000
    return rows.filter(is_wanted)


def _members() -> ibis.Table:
    """Each code of those that `changed` names, with its person, and from when on that is wanted."""
    persons, changed = unbound(PERSONS, "persons"), unbound(CHANGED, "changed")
    known = persons.filter(~persons.is_shared).select(member="code", known_person="person")
    others, names = changed.join(known, changed.person == known.known_person), ("member", "person", "since_ms")
    return others.select(*names).union(changed.mutate(member=changed.person).select(*names))


def uses() -> ibis.Table:
    """Of each click id that was used twice or more in `touches`, the click that used it first.

    A click that was sent again uses nothing, though the copy may name an earlier time: it is left out as a retry, and
    the id would count for neither. Nearly all are used once. So they are counted, and only those of the rest ranked.
    """
    clicks = unbound(TOUCHES.schema, "touches")
    counted = clicks.group_by("click_id").agg(uses=clicks.count())
    several = counted.filter((counted.uses > 1) & counted.click_id.notnull()).select(used="click_id")
    again = clicks.join(several, clicks.click_id == several.used)
    sent_us = again.received_us.lag().over(
        group_by=[again.used, again.parameters], order_by=[again.received_us, again.id]
    )
    again = again.mutate(is_copy=(again.received_us - sent_us <= RETRY_US).fill_null(False))
    order = [again.is_copy, again.time_ms, again.received_us, again.id]
    ranked = again.select("used", first_id="id", rank=ibis.row_number().over(group_by=again.used, order_by=order))
    return ranked.filter(ranked.rank == 0).select(*USES.names)


def floods(rules: Policies) -> ibis.Table:
    """The networks, ads and times in `touches` of which there are too many clicks within `FLOOD_MS` up to that time.

    Whatever lies within `FLOOD_MS` lies in two neighbouring buckets of that length, so one of them has more than half
    of it. Buckets are counted in slots, several in each; then, of the few that are left, each by itself; then only
    networks and ads with such a bucket are looked at time by time.
    """
    clicks = unbound(TOUCHES.schema, "touches")
    limits = {policy.clicks_per_network_and_ad_max for policy in (rules.default, *rules.by_client.values())}
    half = min(limits) // 2
    rows = _in_slots(clicks)
    slots = rows.group_by("slot").agg(clicks=rows.count())
    slots = slots.filter(slots.clicks > half).select(full="slot")
    # To read them anew costs less than to keep them all.
    rows = _in_slots(clicks.view())
    rows = rows.join(slots, rows.slot == slots.full)
    buckets = rows.group_by(["network", "ad", "bucket"]).agg(clicks=rows.count())
    keys = buckets.filter(buckets.clicks > half).select(from_network="network", on_ad="ad").distinct()
    near = clicks.join(keys, (clicks.network == keys.from_network) & (clicks.ad == keys.on_ad))
    near = near.select("network", "ad", "time_ms")
    window = ibis.range_window(preceding=FLOOD_MS, following=0, group_by=["network", "ad"], order_by="time_ms")
    counted = near.mutate(clicks=near.count().over(window))
    return _beyond(counted, rules, limits).select(flooding="network", flooded="ad", at_ms="time_ms").distinct()


def _in_slots(clicks: ibis.Table) -> ibis.Table:
    """Clicks from known networks, their buckets and slots."""
    rows = clicks.filter(clicks.network.notnull()).select("network", "ad", "time_ms")
    rows = rows.mutate(bucket=rows.time_ms - rows.time_ms % FLOOD_MS)
    return rows.mutate(slot=(rows.network ^ rows.ad ^ rows.bucket) & (_SLOTS - 1))


def _beyond(counted: ibis.Table, rules: Policies, limits: set[int]) -> ibis.Table:
    """Rows whose number of clicks is more than their client's policy lets pass."""
    if len(limits) == 1:
        return counted.filter(counted.clicks > min(limits))
    clients = unbound(ADS.schema, "ads").select(of="ad", client_id="client_id").distinct()
    rows = counted.left_join(clients, counted.ad == clients.of)
    limit = _by_client(rows.client_id, rules, lambda policy: ibis.literal(policy.clicks_per_network_and_ad_max))
    return rows.filter(rows.clicks > limit)


def _ad(clicks: Any, rules: Policies) -> dict[str, Any]:
    """The columns of `ADS` but the code."""
    return {
        "client_id": clicks.client_id,
        "channel": _by_client(clicks.client_id, rules, lambda policy: _channel(clicks, policy)),
        "seller_id": clicks.seller_id,
        "campaign": clicks.fb_campaign_id.coalesce(clicks.utm_campaign),
        "ad_set": clicks.fb_adset_id,
        "ad_id": clicks.fb_ad_id.coalesce(clicks.utm_content),
        "atag": clicks.atag,
        "asvt": clicks.asvt,
    }


def _channel(clicks: Any, policy: Policy) -> Any:
    """What the first rule that matches says, else what the click says of itself."""
    # Paths are channels joined by ` > `: what anybody can send must not be read as two of them.
    said = clicks.utm_source.coalesce(clicks.source)
    said = _small(said, said.translate(*DISPUTED).lower()).replace(">", "-").coalesce(_OTHER_CHANNEL)
    rules = (*policy.channel_rules, *FURTHER_CHANNEL_RULES)
    return ibis.cases(*((_matches(clicks, rule), rule.channel) for rule in rules), else_=said)


def _matches(clicks: Any, rule: ChannelRule) -> Any:
    if rule.parameter in CLICK_PARAMETERS:
        value = clicks[rule.parameter]
    else:
        # What is no value is not there, as in the columns.
        value = clicks.other.get(rule.parameter)
        value = ibis.ifelse(value.isin(sorted(PLACEHOLDERS)), ibis.null("string"), value)
    values = [small_letters(each) for each in rule.values]
    return _small(value, value.translate(*DISPUTED).lower()).isin(values) if values else value.notnull()


def _code(clicks: Any, kind: str, rules: Policies) -> Any:
    """`identifier.code` of the identifier; null if there is none. What identifies nobody does so in any case."""
    value = clicks[kind]
    small = _small(value, value.translate(ascii_uppercase, ascii_lowercase))  # `identifier.folded`
    if NAMESPACES[kind] != DEVICE:

        def own(policy: Policy) -> Any:
            shared = [folded(each) for each in policy.shared_identifiers]
            return ibis.ifelse(small.isin(shared), small, value) if shared else value

        small = _by_client(clicks.client_id, rules, own)
    code = _function("identifier_code", "string", returns=_NUMBER)
    return code(clicks.client_id + f"{SEPARATOR}{NAMESPACES[kind]}{SEPARATOR}" + small)


def _small(value: Any, otherwise: Any) -> Any:
    """In small letters where it is ASCII, as nearly all is: `otherwise` takes six times as long."""
    is_ascii = _function("bit_length", "string", returns=_NUMBER)(value) == value.length() * 8
    return ibis.ifelse(is_ascii, value.lower(), otherwise)


def _parameters(dialect: Dialect, clicks: Any) -> Any:
    """A number for all parameters but the time; the order of those without a column does not count."""
    entries = _function("map_entries", "map<string, string>", returns="array<struct<key: string, value: string>>")
    others = entries(clicks.other)
    # Nearly always there is no more than one, and even that one takes its time to be sorted.
    others = ibis.ifelse(clicks.other.length() > 1, others.sort(), others)
    return _hash(dialect, *(clicks[name] for name in CLICK_PARAMETERS), others)


def _by_client(client_id: Any, rules: Policies, rule: Callable[[Policy], Any]) -> Any:
    """What a rule gives with the policy of each row's client."""
    default = rule(rules.default)
    groups: list[tuple[Any, list[str]]] = []
    for name, policy in rules.by_client.items():
        own = rule(policy)
        if own.equals(default):
            continue
        group = next((names for value, names in groups if value.equals(own)), None)
        if group is None:
            groups.append((own, [name]))
        else:
            group.append(name)
    return ibis.cases(*((client_id.isin(names), own) for own, names in groups), else_=default) if groups else default


def _hash(dialect: Dialect, *values: Any) -> Any:
    """A number for several values, which the engine computes as it likes. No text is ever an empty one.

    Half of 64 bits would be negative on one engine and too large on the other, so one bit is given up.
    """
    if not dialect.hashes_null:
        values = tuple(value.coalesce("") if value.type().is_string() else value for value in values)
    hashed = _function(dialect.hash, *(str(value.type()) for value in values), returns=_NUMBER)(*values) >> 1
    # Ibis sees a signed number already. Where it is none, one that may also be null becomes a decimal of 128 bits.
    return ops.Cast(hashed, _NUMBER).to_expr()


@cache
def _function(name: str, *takes: str, returns: str) -> Callable[..., Any]:
    """A function that the engine has."""

    def declared() -> None: ...

    function: Any = declared
    function.__signature__ = Signature(
        [Parameter(f"a{place}", Parameter.POSITIONAL_ONLY) for place in range(len(takes))]
    )
    made: Callable[..., Any] = ibis.udf.scalar.builtin(function, name=name, signature=(takes, returns))
    return made
