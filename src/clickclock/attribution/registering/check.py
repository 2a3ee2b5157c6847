"""A check of an integration: what the collector would make of an address, a query or a line of a log.

Never keeps anything and never judges by rules of its own: `click.judge` says whether the collector accepts it. A
landing page's address is completed first, as the tag does it. Invariant: the query in the answer is the one that was
judged.

>>> from clickclock.attribution.clicks.account import Account, Accounts, Profile
>>> shop = Accounts([Account(client_id="shop-1", profile=Profile.OPEN)])
>>> told = check(Asked("https://shop.example/?gclid=x", "shop-1"), 1_800_000_000_000, shop, Policies())
>>> told["accepted"], told["answer"], told["channel"]["channel"]
(True, 204, 'google')
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from clickclock.attribution.clicks.absent import is_absent, present
from clickclock.attribution.clicks.account import CONSENT, Account, Accounts
from clickclock.attribution.clicks.ad import ONCE, says
from clickclock.attribution.clicks.click import Click, Flag, Kind, Rejection, judge
from clickclock.attribution.clicks.consent import KEPT
from clickclock.attribution.clicks.entry import connection, decode
from clickclock.attribution.clicks.query import Unreadable, split, with_ampersands
from clickclock.attribution.clicks.shape import PERCENT, write
from clickclock.attribution.clicks.traffic import is_bot
from clickclock.attribution.crediting.channel import channel_of
from clickclock.attribution.crediting.policy import Policies, in_days
from clickclock.attribution.crediting.touchpoint import REPEAT_MS, RETRY_MS
from clickclock.attribution.importing.historical import Historical, Unusable
from clickclock.attribution.importing.log_line import CLICK_PATH, VIEW_PATH, LogReader
from clickclock.attribution.registering.registration import line_of
from clickclock.attribution.registering.sighting import sight
from clickclock.foundation.errors import Fault, Malformed
from clickclock.foundation.instant import instant_of
from clickclock.foundation.record import rfc3339

TEXT_CHARS_MAX: Final = 65_536
"""As long as a line of a log may be that is imported."""
QUERY_BYTES_MAX: Final = 8192
"""The collector takes no longer query."""
VISITOR: Final = "visitor-of-the-check"
"""Stands for the id that the tag gives to a browser."""
MARKS: Final = (
    r"atag|asvt|(fb|tt|tw|[dgquy])clid|_?fbc|msclkid|[gw]braid|gad_source|li_fat_id|[Ss]c[Cc]id|epik|rdt_cid|tblci|dicbo"
    r"|ob(cl|_click_)id|(amp;)?utm_\w+|source|fb_\w+"
)
"""Parameters by which the tag takes an address for one that an ad led to; a house test compares them with the tag's."""
_NO_ENTRY: Final = "0" * 32
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S*")
_ACCEPTED, _TOO_LONG = 204, 414
_REFUSED: Final = {Kind.INVALID: 400, Kind.UNKNOWN_CLIENT: 403}


class Read(StrEnum):
    """What the text was read as."""

    LANDING_PAGE = "landingPage"
    CLICK = "click"
    QUERY = "query"
    LOG_LINE = "logLine"


class Asked(msgspec.Struct, frozen=True):
    """The click. The client and the seller are those that the tag has; they complete a landing page's address."""

    text: str
    client_id: str | None = None
    seller_id: str | None = None


class _Request(msgspec.Struct, frozen=True):
    """The request that reaches the collector, and how it was found."""

    read: Read
    query: bytes
    received_ms: int
    added: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Why the tag sends nothing."""
    agent: bytes = b""
    referer: bytes = b""
    is_view: bool = False


def check(asked: Asked, now_ms: int, accounts: Accounts, policies: Policies) -> dict[str, Any]:
    """The verdict, as JSON can say it. Raises `Malformed` for a text that is no request at all."""
    request = _request(asked, now_ms)
    judged = judge(request.query, request.received_ms, accounts)
    is_too_long = len(request.query) > QUERY_BYTES_MAX
    answer = None if request.notes else _answer(judged, is_too_long=is_too_long)
    parameters = _parameters(request.query)
    client_id = present(parameters, "client_id")
    account = accounts.find(client_id) if client_id else accounts.default
    told: dict[str, Any] = {
        "read": request.read,
        "isView": request.is_view,
        "query": request.query.decode("utf-8", "backslashreplace"),
        "added": list(request.added),
        "notes": list(request.notes),
        "accepted": answer == _ACCEPTED,
        "answer": answer,
        "clientId": client_id,
        "account": None if account is None else {"clientId": account.client_id, "profile": account.profile},
        "faults": _faults(judged, is_too_long=is_too_long),
        "flags": judged.remarks if isinstance(judged, Click) else list(judged.flags),
        "parameters": _verdicts(parameters, account, judged),
    }
    policy = policies.find(client_id or "")
    parameters = {name: value for name, value in parameters.items() if name not in _dropped(parameters, judged)}
    chosen = channel_of(parameters, policy)
    window_ms = policy.window_ms(chosen.channel, present(parameters, "seller_id"), is_view=request.is_view)
    told["channel"] = {
        "channel": chosen.channel,
        "rule": chosen.origin,
        "parameter": chosen.parameter,
        "why": chosen.why,
        "windowDays": in_days(window_ms),
    }
    told["dedup"] = _dedup(chosen.channel, parameters)
    told["isBot"] = is_bot(request.agent.decode("utf-8", "replace")) if request.agent else None
    told["receivedAt"] = rfc3339(instant_of(request.received_ms))
    origin = connection("", request.agent, request.referer)
    line = line_of(judged, _NO_ENTRY, request.received_ms, origin, request.query, is_view=request.is_view)
    told["kept"] = {name: value for name, value in sight(decode(line)).fields.items() if name != "id"}
    return told


def _request(asked: Asked, now_ms: int) -> _Request:
    text = asked.text.strip()
    if not text:
        raise Malformed(faults=[Fault("click", "This is empty; give an address, a query or a line of a server's log.")])
    if _URL.fullmatch(text) and not _is_click(text):
        return _landed(text, asked, now_ms)
    try:
        found = LogReader().read(text.encode("utf-8", "surrogatepass"))
    except Unusable as error:
        if "=" not in text or " " in text:
            raise Malformed(faults=[Fault("click", f"This is no click: {error}. {_GIVE}")]) from error
        found = Historical(text.removeprefix("?").encode(), None)
    if found is None:
        raise Malformed(faults=[Fault("click", f"This is a line of another request than a click. {_GIVE}")])
    is_line = " " in text or text.startswith("{")
    read = Read.LOG_LINE if is_line else Read.CLICK if _is_click(text) else Read.QUERY
    received_ms = now_ms if found.received_ms is None else found.received_ms
    return _Request(read, found.query, received_ms, agent=found.agent, referer=found.referer, is_view=found.is_view)


_GIVE: Final = "Give the address of a landing page, of /aclick or of /aview, a query, or a line of a server's log."


def _is_click(text: str) -> bool:
    path = text.partition("?")[0]
    return " " not in text and path.lower().removesuffix("/").endswith((CLICK_PATH.decode(), VIEW_PATH.decode()))


def _landed(address: str, asked: Asked, now_ms: int) -> _Request:
    """What the tag sends from a landing page: its own values first, because the first of a name counts."""
    query = address.partition("#")[0].partition("?")[2]
    own = {"cli_ubid": VISITOR, "event_time": str(now_ms)}
    given = {"client_id": asked.client_id, "seller_id": asked.seller_id}
    own |= {name: value for name, value in given.items() if value and not _has(name, query)}
    notes = []
    if not _has(MARKS, query):
        notes.append("The tag registers no click: no parameter of this address says that an ad led to it.")
    if "client_id" not in own and not _has("client_id", query):
        notes.append("The tag registers no click without a client_id: add data-client-id to it.")
    pairs = "&".join(f"{name}={write(value, PERCENT)}" for name, value in own.items())
    return _Request(
        Read.LANDING_PAGE,
        f"{pairs}&{query}".removesuffix("&").encode(),
        now_ms,
        tuple(own),
        tuple(notes),
        referer=address.encode(),
    )


def _has(names: str, query: str) -> bool:
    """As the tag asks it."""
    return re.search(f"[?&]({names})=[^&]", f"?{query}") is not None


def _parameters(query: bytes) -> dict[str, str]:
    try:
        return with_ampersands(split(query))
    except Unreadable as unreadable:
        return with_ampersands(unreadable.parameters)


def _answer(judged: Click | Rejection, *, is_too_long: bool) -> int:
    """The status that the collector would answer."""
    if is_too_long:
        return _TOO_LONG
    return _REFUSED[judged.kind] if isinstance(judged, Rejection) else _ACCEPTED


def _faults(judged: Click | Rejection, *, is_too_long: bool) -> list[dict[str, str]]:
    faults = judged.faults if isinstance(judged, Rejection) else ()
    told = [{"field": each.field, "code": str(each.code), "message": each.message} for each in faults]
    if is_too_long:
        sentence = f"The query is too long; send at most {QUERY_BYTES_MAX} bytes."
        told.insert(0, {"field": "query", "code": "queryTooLong", "message": sentence})
    return told


def _verdicts(
    parameters: Mapping[str, str], account: Account | None, judged: Click | Rejection
) -> list[dict[str, str | None]]:
    """Each parameter with what became of it; those that are missing, too."""
    wrong = {each.field: each.code for each in judged.faults} if isinstance(judged, Rejection) else {}
    dropped = _dropped(parameters, judged)
    told: list[dict[str, str | None]] = []
    for name, value in parameters.items():
        if name in dropped:
            verdict = "dropped"
        else:
            verdict = str(wrong[name]) if name in wrong else "absent" if is_absent(name, value) else "ok"
        told.append({"name": name, "value": value, "verdict": verdict})
    missing = [name for name in wrong if name not in parameters]
    return told + [{"name": name, "value": None, "verdict": str(wrong[name])} for name in missing]


def _dropped(parameters: Mapping[str, str], judged: Click | Rejection) -> set[str]:
    """The parameters that are left out for want of consent."""
    return parameters.keys() - KEPT - {CONSENT} if Flag.NO_CONSENT in judged.flags else set()


def _dedup(channel: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """The keys that make another click the same one, or one on the same ad."""
    once = next((name for name in ONCE if present(parameters, name) is not None), None)
    return {
        "clickId": once,
        "ad": {once: parameters[once]} if once else says(channel, parameters),
        "retryMs": RETRY_MS,
        "repeatMs": REPEAT_MS,
    }
