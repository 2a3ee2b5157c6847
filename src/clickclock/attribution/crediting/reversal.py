"""A reversal: why a click counts in one version of results and not in another, by what each version knows of it.

Never looks anything up: it is given rows of the table of touches. Invariant: what is said is what differs between the
two rows, or the click that it gives way to in one of them; where neither is so, nothing is said.

>>> row = {"id": "b", "time_ms": 9, "received_us": 9000, "click_id": None, "cli_ubid": 1, "device_id": None}
>>> row |= {"gaid": None, "idfa": None, "ad_key": 7, "parameters": 5, "network": None, "is_bot": False}
>>> why_added(row, row | {"ad_key": 8}, [row | {"id": "a", "time_ms": 0, "received_us": 0, "parameters": 4}])
'was a repeat of a, is on another ad now'
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from clickclock.attribution.clicks.identifier import NAMESPACES
from clickclock.attribution.crediting.touchpoint import REPEAT_MS, RETRY_MS, RETRY_US

Row = Mapping[str, Any]
"""A row of touches."""
COMPARED: Final = (
    *("id", "time_ms", "received_us", *NAMESPACES, "ad_key", "click_id", "parameters", "network"),
    *("is_bot", "is_prefetch"),
)
"""The columns of touches that are looked at, where a version has them."""


def why_added(then: Row, now: Row, others: Iterable[Row]) -> str:
    """Why a click counts now; `others` are the touches that the version of then had beside it."""
    return "; ".join((*_gave_way(then, now, others), *_changes(then, now))) or _of_network(then, now)


def why_left_out(then: Row, now: Row, others: Iterable[Row]) -> str:
    """Why a click does not count any more; `others` are the touches that the version of now has beside it."""
    return "; ".join((*_changes(then, now), *_gives_way(now, others))) or _of_network(then, now)


def _gave_way(then: Row, now: Row, others: Iterable[Row]) -> Iterator[str]:
    # The last one before it is what it was compared with. Before, the receipt alone told a retry.
    before = _before(then, others)
    same = [each for each in before if each["parameters"] == then["parameters"]]
    sent = [each for each in same if 0 <= then["received_us"] - each["received_us"] <= RETRY_US]
    repeated = [each for each in before if _is_within_the_hour(then, each)]
    spent = [each for each in before if then["click_id"] is not None and each["click_id"] == then["click_id"]]
    if sent and abs(sent[-1]["time_ms"] - then["time_ms"]) > RETRY_MS:
        yield f"was a retry of {sent[-1]['id']}, and their times are more than 10 s apart"
    elif spent and now["click_id"] is None:
        yield f"its click id was spent by {spent[0]['id']}"
    elif repeated and now["ad_key"] != then["ad_key"]:
        yield f"was a repeat of {repeated[-1]['id']}, is on another ad now"


def _gives_way(now: Row, others: Iterable[Row]) -> Iterator[str]:
    before = _before(now, others)
    spent = [each for each in before if now["click_id"] is not None and each["click_id"] == now["click_id"]]
    repeated = [each for each in before if _is_within_the_hour(now, each)]
    if spent:
        yield f"its click id was spent by {spent[0]['id']}"
    elif repeated:
        yield f"is a repeat of {repeated[-1]['id']}"


def _before(click: Row, others: Iterable[Row]) -> list[Row]:
    """The others that came before it by time or by receipt, first to last."""
    found = [
        each
        for each in others
        if each["id"] != click["id"]
        and (each["time_ms"] <= click["time_ms"] or each["received_us"] <= click["received_us"])
    ]
    return sorted(found, key=_place)


def _is_within_the_hour(click: Row, other: Row) -> bool:
    is_of_one = any(click[kind] is not None and click[kind] == other[kind] for kind in NAMESPACES)
    is_soon = _place(other) < _place(click) and click["time_ms"] - other["time_ms"] < REPEAT_MS
    return is_of_one and is_soon and click["ad_key"] == other["ad_key"]


def _place(click: Row) -> tuple[int, int, str]:
    return click["time_ms"], click["received_us"], click["id"]


def _changes(then: Row, now: Row) -> Iterator[str]:
    """What the versions know of the click itself, where it is not the same."""
    if now["time_ms"] < then["time_ms"]:
        yield "its time is that of its receipt, and no later"
    if then["click_id"] is not None and now["click_id"] is None:
        yield "its click id is a placeholder, and counts as absent"
    for kind in NAMESPACES:
        if then[kind] is not None and now[kind] is None:
            yield f"its {kind} identifies nobody"
    if now["is_bot"] != then["is_bot"]:
        yield f"its user agent is {'a' if now['is_bot'] else 'no'} bot's"
    if now.get("is_prefetch") and not then.get("is_prefetch"):
        yield "it was a prefetch"


def _of_network(then: Row, now: Row) -> str:
    """Only floods depend on the network, so this comes last."""
    is_lost = then["network"] is not None and now["network"] is None
    return "its address is a server's, and says nothing about the visitor" if is_lost else ""
