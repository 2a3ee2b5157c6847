"""The table-sized work, once: raw clicks → touches and ads, and the rows that a kernel walks.

Never runs anything: the tables are unbound, and ibis makes text of them for each engine. What differs between engines
is the names of a few functions (`Dialect`). Invariants: a row's place, and every number in it but an engine's own
codes, is the same on all engines; no integer becomes a float on its way.

>>> agents().columns
('user_agent',)
"""

import re
from collections.abc import Callable
from typing import Any, Final

import ibis
import ibis.expr.operations as ops
import pyarrow as pa

from clickclock.attribution.clicks.absent import REVISION
from clickclock.attribution.clicks.ad import CLICK_ID_COLUMNS, CLICK_IDS, COLUMNS, NAMES, PREFIXES, SOURCES, WITHIN
from clickclock.attribution.clicks.click import Flag
from clickclock.attribution.clicks.identifier import DEVICE, NAMESPACES, SEPARATOR, SPACES, STRENGTHS, folded
from clickclock.attribution.crediting.policy import (
    Policies,
    Policy,
)
from clickclock.attribution.engines import CHANGED, FLOODS, PERSONS, USES, WALK
from clickclock.attribution.engines.agents import AGENTS
from clickclock.attribution.engines.batches import NUMBERED_ORDERS, NUMBERED_TEXTS
from clickclock.attribution.engines.channels import IDS_OF_RULES, channel_of, in_small, in_small_letters, with_channels
from clickclock.attribution.engines.columns import unbound
from clickclock.attribution.engines.dialects import Dialect
from clickclock.attribution.engines.sql import KINDS_OF_ORDERS, SHOWN
from clickclock.attribution.engines.sql_text import INSTANT
from clickclock.attribution.engines.values import (
    NUMBER,
    ONE_OF_EACH_KIND,
    folded_of,
    function,
    says_something,
    value_of,
    with_values,
)
from clickclock.attribution.lake import ADS, CLICKS, TOUCHES
from clickclock.attribution.lake.tables import CLICK_PARAMETERS

_BEGINNINGS, _NAMES = ("|".join(map(re.escape, each)) for each in (PREFIXES, (*NAMES, *CLICK_IDS, *IDS_OF_RULES)))
_OF_AD: Final = f"^(?:{_BEGINNINGS})|^(?:{_NAMES})$|{WITHIN}"
"""Parameters without a column that say which ad it is, or are click ids: one pattern for all the names."""


def agents() -> ibis.Table:
    """The user agents of `clicks`, each once."""
    return unbound(CLICKS.schema, "clicks").select("user_agent").distinct()


def ads(dialect: Dialect, rules: Policies) -> ibis.Table:
    """The ads of those of `clicks` whose ids are in `shown`, each once."""
    known, unknown = _by_revision(_shown())
    return _ads(dialect, rules, known.union(unknown))


def ads_of_today(dialect: Dialect, rules: Policies) -> ibis.Table:
    """The same where no row is of an earlier revision."""
    return _ads(dialect, rules, _shown())


def _shown() -> Any:
    clicks, shown = unbound(CLICKS.schema, "clicks"), unbound(SHOWN, "shown")
    return clicks.join(shown, clicks.id == shown.click)


def _ads(dialect: Dialect, rules: Policies, clicks: Any) -> ibis.Table:
    rows = _with_others(clicks)
    rows = rows.mutate(**_compared(dialect, rows))
    rows = with_channels(rows)
    rows = rows.mutate(channel=_ad(rows, rules)["channel"])
    parts = {**_ad(rows, rules), "channel": rows.channel}
    described = rows.select(ad=_ad_code(dialect, rows, rows.channel), **parts)
    return (
        described.group_by("ad").agg(**{name: described[name].arbitrary() for name in parts}).select(*ADS.schema.names)
    )


def touches(dialect: Dialect, rules: Policies) -> ibis.Table:
    """A touch for each row of `clicks`; `agents` are those that are bots', or say nothing about a visitor."""
    known, unknown = _by_revision(unbound(CLICKS.schema, "clicks"))
    return _touches(dialect, rules, known).union(_touches(dialect, rules, unknown))


def touches_of_today(dialect: Dialect, rules: Policies) -> ibis.Table:
    """The same where no row is of an earlier revision: to plan what the others need takes an engine a while."""
    return _touches(dialect, rules, unbound(CLICKS.schema, "clicks"))


def cleaned() -> ibis.Table:
    """What rows of an earlier revision lose: a column of each kind, for it says all of the rule."""
    clicks = unbound(CLICKS.schema, "clicks")
    return clicks.select(**{name: value_of(clicks[name], name) for name in ONE_OF_EACH_KIND})


def _by_revision(clicks: Any) -> tuple[Any, Any]:
    """Clicks of this revision, and those of earlier ones without the absent values that they may have kept."""
    # Files say which revisions they have, so that an engine passes over those that one of the two does not need.
    is_known = clicks.revision.fill_null(0) >= REVISION
    return clicks.filter(clicks.revision >= REVISION), with_values(clicks.filter(~is_known))


def _touches(dialect: Dialect, rules: Policies, clicks: Any) -> ibis.Table:
    agents = unbound(AGENTS, "agents").rename(agent="user_agent")
    rows = clicks.left_join(agents, clicks.user_agent == agents.agent)
    # By themselves, because an engine computes anew what stands in several places of one row.
    rows = _with_others(rows)
    rows = rows.mutate(**{f"{kind}_code": _code(rows, kind, rules) for kind in NAMESPACES}, **_compared(dialect, rows))
    rows = with_channels(rows)
    rows = rows.mutate(ad_code=_ad_code(dialect, rows, _ad(rows, rules)["channel"]))
    # The id that counts stands at its own place: equal texts of two kinds are two ids.
    click_id = ibis.ifelse(
        rows.gclid.isnull() & rows.uclid.isnull(),
        ibis.null(NUMBER),
        _hash(dialect, rows.client_id, rows.gclid, ibis.ifelse(rows.gclid.isnull(), rows.uclid, ibis.null("string"))),
    )
    codes = {kind: rows[f"{kind}_code"] for kind in NAMESPACES}
    return rows.select(
        id=rows.id,
        received_us=function(dialect.epoch_us, "timestamp", returns=NUMBER)(rows.received_at),
        time_ms=function(dialect.epoch_ms, "timestamp", returns=NUMBER)(_effective(rows)),
        cli_ubid=codes["cli_ubid"],
        device_id=codes["device_id"],
        gaid=codes["gaid"].nullif(codes["device_id"]),
        idfa=codes["idfa"].nullif(codes["device_id"]).nullif(codes["gaid"]),
        ad=rows.ad_code,
        ad_key=click_id.coalesce(_with_click_ids(dialect, rows)),
        click_id=click_id,
        parameters=_parameters(dialect, rows),
        network=ibis.ifelse(
            # Where the agent is a server's, or there is none, the address is one from which it calls for many people.
            rows.address.isnull() | rows.user_agent.isnull() | ~rows.is_visitors.fill_null(True),
            ibis.null(NUMBER),
            _hash(dialect, rows.address),
        ),
        is_bot=rows.is_bot.fill_null(False),
        is_prefetch=rows.flags.contains(Flag.PREFETCH.value).fill_null(False),
    )


def codes(rules: Policies) -> ibis.Table:
    """The codes of the identifiers in `texts`, and the row of each."""
    texts = unbound(NUMBERED_TEXTS, "texts")
    texts = texts.mutate(**{kind: value_of(texts[kind], kind) for kind in KINDS_OF_ORDERS})
    return texts.select(number=texts.number, **{kind: _code(texts, kind, rules) for kind in KINDS_OF_ORDERS})


def walk() -> ibis.Table:
    """The rows of a kernel, not sorted, of `touches`, `uses`, `floods`, `orders` and `persons`."""
    return _walk(is_partial=False)


def walk_in_part() -> ibis.Table:
    """Those whom `changed` names, and from when it says, which for most of them is not before `INSTANT`, in ms."""
    return _walk(is_partial=True)


def _walk(*, is_partial: bool) -> ibis.Table:
    clicks, orders = unbound(TOUCHES.schema, "touches"), unbound(NUMBERED_ORDERS, "orders")
    mine = _mine() if is_partial else _of_persons(clicks, "time_ms", is_partial=False)
    uses, floods = unbound(USES, "uses"), unbound(FLOODS, "floods")
    judged = mine.left_join(uses, mine.click_id == uses.used).left_join(
        floods, (mine.network == floods.flooding) & (mine.ad == floods.flooded) & (mine.time_ms == floods.at_ms)
    )
    clicked = judged.select(
        is_order=ibis.literal(False),
        number=ibis.null(NUMBER),
        is_spent=judged.used.notnull() & (judged.first_id != judged.id),
        is_flood=judged.flooded.notnull(),
        **{name: judged[name] for name in WALK.names if name in judged.columns}
        | {"is_bot": judged.is_bot | judged.is_prefetch},
    )
    theirs = _of_persons(orders, "placed_ms", is_partial=is_partial)
    nothing = {field.name: ibis.null(NUMBER if pa.types.is_integer(field.type) else "string") for field in WALK}
    no = ibis.literal(False)
    ordered = theirs.select(
        **nothing
        | {"is_spent": no, "is_bot": no, "is_flood": no}
        | {
            "person": theirs.person,
            "time_ms": theirs.placed_ms,
            "is_order": ibis.literal(True),
            "strength": theirs.strength,
            "received_us": ibis.literal(0, NUMBER),
            "number": theirs.number,
        }
    )
    return clicked.select(*WALK.names).union(ordered.select(*WALK.names))


def _mine() -> ibis.Table:
    """The rows of `touches`, with their persons, of those that `changed` names, and from when it says.

    Of most of them what is wanted is not older than `INSTANT`, and so older touches are not looked up for them. Nearly
    all touches have their person by their first identifier; only where that is nobody's is there more to ask.
    """
    cut_ms = ibis.literal(INSTANT, NUMBER)
    clicks, persons, members = unbound(TOUCHES.schema, "touches"), unbound(PERSONS, "persons"), _members()
    first = ibis.coalesce(*(clicks[kind] for kind in NAMESPACES))
    is_recent = clicks.received_us >= cut_ms * 1000
    none = ibis.null(NUMBER)
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
    kinds = [kind for kind in SPACES if kind in rows.columns]
    for kind in kinds:
        nobody = persons.filter(persons.is_shared).select(**{f"no_{kind}": "code"})
        rows = rows.left_join(nobody, rows[kind] == nobody[f"no_{kind}"])
    own = {kind: ibis.ifelse(rows[f"no_{kind}"].isnull(), rows[kind], ibis.null(NUMBER)) for kind in kinds}
    strength = ibis.cases(*((own[kind].notnull(), STRENGTHS.get(kind, 0)) for kind in kinds)).cast("int8")
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


def _ad(clicks: Any, rules: Policies) -> dict[str, Any]:
    """The columns of `ADS` but the code, of clicks with those of `_sources`."""
    return {
        "client_id": clicks.client_id,
        "channel": by_client(clicks.client_id, rules, lambda policy: channel_of(clicks, policy)),
        "seller_id": clicks.seller_id,
        "campaign": clicks.fb_campaign_id.coalesce(clicks.utm_campaign),
        "ad_set": clicks.fb_adset_id,
        "ad_id": clicks.fb_ad_id.coalesce(clicks.utm_content),
        "atag": clicks.atag,
        "asvt": clicks.asvt,
    }


def _ad_code(dialect: Dialect, clicks: Any, channel: Any) -> Any:
    """A number for all that `ad.says` gives of a click with the columns of `_compared`, but for its click ids."""
    columns = (clicks[in_small(name) if name in SOURCES else name] for name in COLUMNS)
    return _hash(dialect, clicks.client_id, channel, *columns, clicks.others_of_ad)


def _with_click_ids(dialect: Dialect, clicks: Any) -> Any:
    """A number for `ad_code` and the click ids that do not count once; the ad's own where there are none."""
    ids = [*(clicks[name] for name in CLICK_ID_COLUMNS), clicks.other_click_ids]
    return ibis.ifelse(
        ibis.and_(*(each.isnull() for each in ids)), clicks.ad_code, _hash(dialect, clicks.ad_code, *ids)
    )


def _with_others(clicks: Any) -> Any:
    """Clicks, and beside them those parameters without a column that say which ad it is, or are click ids."""
    said = _entries(clicks).filter(lambda each: each.key.re_search(_OF_AD) & says_something(each.value))
    # Once for all the names of a click: within a map, an engine compiles the pattern anew for every few clicks.
    has_some = clicks.other.keys().join("\n").re_search(f"(?m){_OF_AD}")
    return clicks.mutate(others=ibis.ifelse(has_some, said, ibis.null(said.type())))


def _compared(dialect: Dialect, clicks: Any) -> dict[str, Any]:
    """What clicks of `_with_others` are compared by, beside their own columns."""
    return {
        **in_small_letters(clicks),
        "others_of_ad": _others(dialect, clicks, lambda name: ~name.isin(CLICK_IDS)),
        "other_click_ids": _others(dialect, clicks, lambda name: name.isin(CLICK_IDS)),
    }


def _others(dialect: Dialect, clicks: Any, is_wanted: Callable[[Any], Any]) -> Any:
    """A number for those of the others whose names are wanted, in any order; null if there are none."""
    none = ibis.null(NUMBER)
    found = clicks.others.filter(lambda each: is_wanted(each.key))
    # Few clicks have any, and all others are passed over.
    return ibis.ifelse(
        clicks.others.length() > 0, ibis.ifelse(found.length() > 0, _hash(dialect, _in_order(found)), none), none
    )


def _in_order(entries: Any) -> Any:
    # Nearly always there is no more than one, and even that one takes its time to be sorted.
    return ibis.ifelse(entries.length() > 1, entries.sort(), entries)


def _entries(clicks: Any) -> Any:
    entries = function("map_entries", "map<string, string>", returns="array<struct<key: string, value: string>>")
    return entries(clicks.other)


def _effective(clicks: Any) -> Any:
    """The time that counts. Releases before this one kept times later than the receipt; of nulls both engines pass."""
    return ibis.least(clicks.event_time, clicks.received_at)


def _code(clicks: Any, kind: str, rules: Policies) -> Any:
    """`identifier.code` of the identifier; null if there is none. What identifies nobody does so in any case."""
    value = clicks[kind]
    small = folded_of(value)
    if SPACES[kind] != DEVICE:

        def own(policy: Policy) -> Any:
            shared = [folded(each) for each in policy.shared_identifiers]
            return ibis.ifelse(small.isin(shared), small, value) if shared else value

        small = by_client(clicks.client_id, rules, own)
    code = function("identifier_code", "string", returns=NUMBER)
    return code(clicks.client_id + f"{SEPARATOR}{SPACES[kind]}{SEPARATOR}" + small)


def _parameters(dialect: Dialect, clicks: Any) -> Any:
    """A number for all parameters but the time; the order of those without a column does not count."""
    # What says which ad it is has its number already, but for the case of sources.
    columns = (clicks[name] for name in CLICK_PARAMETERS if name in SOURCES or name not in COLUMNS)
    others = ibis.ifelse(clicks.other.isnull(), ibis.null(NUMBER), _hash(dialect, _in_order(_entries(clicks))))
    return _hash(dialect, clicks.ad_code, *columns, others)


def by_client(client_id: Any, rules: Policies, rule: Callable[[Policy], Any]) -> Any:
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
    hashed = function(dialect.hash, *(str(value.type()) for value in values), returns=NUMBER)(*values) >> 1
    # Ibis sees a signed number already. Where it is none, one that may also be null becomes a decimal of 128 bits.
    return ops.Cast(hashed, NUMBER).to_expr()
