"""A retrial: a request that was refused is judged again, by the accounts of today and at the time when it came.

Never accepts an order whose token nobody has looked at: the token is not kept, so what was refused before it was asked
for can only be taken for accounts that ask for none. Invariant: what is accepted now is what the request would have
become had it come at its time to the accounts of today.

>>> rejected = Rejected("click", "invalid", None, frozenset({"missing"}), 1_800_000_000_000, b"client_id=c")
>>> judge(rejected, Accounts()).kind
<Kind.INVALID: 'invalid'>
"""

from collections.abc import Callable
from typing import Final

import msgspec

from clickclock.attribution.clicks import click, query
from clickclock.attribution.clicks.account import UNKNOWN_CLIENT, Accounts
from clickclock.attribution.clicks.entry import EntryKind
from clickclock.attribution.clicks.query import Reason as QueryReason
from clickclock.attribution.orders import amendment, appsflyer
from clickclock.attribution.orders.order_fields import Fault, Reason
from clickclock.attribution.registering import identification
from clickclock.attribution.registering.refusal import Code
from clickclock.attribution.registering.registration import VIEW, acceptance_of

WITHOUT_TOKEN: Final = frozenset({Reason.NOT_JSON, Reason.TOO_LARGE, QueryReason.TOO_MANY_PARAMETERS, *Code})
"""Faults that are found before the client id is known, whose account says whether a token is needed."""
_CUT: Final = query.Fault("", "Only a part of the request is kept; have it sent again.", QueryReason.CUT)
_UNAUTHORIZED: Final = "Nobody has seen this order's token, and its account needs one; have it sent again."


class Rejected(msgspec.Struct, frozen=True):
    """A refused request, as the lake has it."""

    what: str
    """`click`, `view`, `order`, `identification` or `appsflyer`."""
    kind: str
    client_id: str | None
    codes: frozenset[str]
    """Of its faults."""
    received_ms: int
    raw: bytes
    flags: frozenset[str] = frozenset()
    """Flags of the request, beside its content."""

    @property
    def token_was_seen(self) -> bool:
        """Whether it was asked for its token, and had the right one if its account needed one."""
        return (
            self.kind == amendment.Kind.INVALID and self.client_id is not None and self.codes.isdisjoint(WITHOUT_TOKEN)
        )


class Accepted(msgspec.Struct, frozen=True):
    """What the journal is to keep of it: the columns of an entry that come from the judgement."""

    kind: EntryKind
    detail: bytes
    raw: bytes
    flags: tuple[click.Flag, ...] = ()


NeedsToken = Callable[[str], bool]
"""Whether orders of a client need a token that is in no account's settings."""


def no_client(_client_id: str) -> bool:
    """Tokens are in the settings of accounts alone."""
    return False


def judge(
    rejected: Rejected, accounts: Accounts, needs_token: NeedsToken = no_client
) -> Accepted | click.Rejection | amendment.Rejection:
    """What the request is now; or why it still is refused."""

    def admit(client_id: str) -> Fault | None:
        account = accounts.find(client_id)
        if account is None:
            return Fault("client_id", UNKNOWN_CLIENT, Reason.UNKNOWN_CLIENT)
        is_needed = account.orders_token_sha256 is not None or needs_token(client_id)
        if not is_needed or rejected.token_was_seen:
            return None
        return Fault("client_id", _UNAUTHORIZED, Reason.UNAUTHORIZED)

    if QueryReason.CUT in rejected.codes:
        return click.Rejection(click.Kind.INVALID, rejected.client_id, (_CUT,))
    raw, received_ms = rejected.raw, rejected.received_ms
    match rejected.what:
        case "order":
            amended = amendment.judge(raw, received_ms, admit)
            return amended if isinstance(amended, amendment.Rejection) else Accepted(EntryKind.ORDER, b"", raw)
        case "identification":
            said = identification.judge(raw, received_ms, admit)
            if isinstance(said, amendment.Rejection):
                return said
            return Accepted(EntryKind.OTHER, identification.NAME.encode(), said.query)
        case "appsflyer":
            called = appsflyer.judge(raw, received_ms, admit)
            match called:
                case appsflyer.Sale():
                    return Accepted(EntryKind.ORDER, raw, called.json)
                case appsflyer.OtherEvent():
                    return Accepted(EntryKind.OTHER, called.name.encode(), raw)
            return called
        case _:
            clicked = click.judge(raw, received_ms, accounts)
            if click.Flag.PREFETCH in rejected.flags:
                clicked = click.prefetched(clicked)
            if isinstance(clicked, click.Rejection):
                return clicked
            kind = EntryKind.PLAIN_CLICK if clicked.plain else EntryKind.CLICK
            if rejected.what == VIEW:
                kind = EntryKind.VIEW
            return Accepted(kind, acceptance_of(clicked), clicked.query, clicked.flags)
