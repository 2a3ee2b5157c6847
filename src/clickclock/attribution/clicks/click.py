"""A click: what one request to register it says, judged by the rules of its account.

Never does I/O, never repairs: a request is a `Click`, with a flag for each deviation that its profile lets pass, or a
`Rejection` with every fault at once. `asvt`, `atag`, `gclid` and `uclid` are opaque, unless nobody filled them in.
Invariants: a plain click has no flags, and its query no byte that would need an escape; the judgement does not depend
on which parser read the query.

>>> judge(b"client_id=c&cli_ubid=u&seller_id=s&asvt=v", 1_800_000_000_000, Accounts()).faults[0].field
'atag'
"""

from enum import StrEnum
from typing import Final

import msgspec

from clickclock.attribution.clicks.absent import is_absent, may_be_absent, names_nobody, present
from clickclock.attribution.clicks.account import GOOGLE, SENT_AT, UNKNOWN_CLIENT, Account, Accounts, Profile
from clickclock.attribution.clicks.consent import SAYING, anonymous, deciding, is_given
from clickclock.attribution.clicks.query import (
    Fault,
    Reason,
    Unreadable,
    may_escape_ampersands,
    shown,
    split,
    split_plain,
    with_ampersands,
)
from clickclock.foundation.instant import DAY_MS

AHEAD_MAX_MS: Final = 5 * 60_000
"""A client's clock that is further ahead of ours is worth a flag."""
CLOCK_OFF_MIN_MS: Final = 60_000
"""A clock that is less than a minute off is believed; the way of a request takes its time, too."""
STALE_AFTER_MS: Final = 30 * DAY_MS
"""The longest window in which a click can earn an order."""


class Flag(StrEnum):
    """A deviation that was let pass."""

    EVENT_TIME_ABSENT = "eventTimeAbsent"
    EVENT_TIME_SECONDS = "eventTimeSeconds"
    EVENT_TIME_AHEAD = "eventTimeAhead"
    STALE = "stale"
    ASVT_ABSENT = "asvtAbsent"
    ATAG_ABSENT = "atagAbsent"
    SPONSORED = "sponsored"
    PREFETCH = "prefetch"
    BROKEN_VALUE = "brokenValue"
    ESCAPED_AMPERSAND = "escapedAmpersand"
    NO_GCLID = "noGclid"
    PLACEHOLDER = "placeholder"
    NO_CONSENT = "noConsent"
    CLOCK_CORRECTED = "clockCorrected"


class Kind(StrEnum):
    """What kind of refusal it is: the request has to be fixed, or the account is not known."""

    INVALID = "invalid"
    UNKNOWN_CLIENT = "unknownClient"


class Rejection(msgspec.Struct, frozen=True, gc=False):
    """A click that is refused, with every fault."""

    kind: Kind
    client_id: str | None
    """All parameters, known or not."""
    faults: tuple[Fault, ...]
    flags: tuple[Flag, ...] = ()
    """Flags of the request itself, and whether there is no consent; the faults are about its content."""


class Click(msgspec.Struct, frozen=True, gc=False):
    """One click."""

    query: bytes
    """As it came, byte for byte; without consent, what is left of it."""
    received_ms: int
    profile: Profile
    """The profile that accepted it."""
    parameters: dict[str, str]
    """All that can be read, decoded, placeholders too; never changed."""
    event_time_ms: int | None
    """What the client said, in milliseconds since 1970."""
    effective_ms: int
    """The time that counts: never later than the receipt."""
    flags: tuple[Flag, ...] = ()
    plain: bool = False
    """Whether the fast parser read it and nothing about it is unusual."""
    placeholders: tuple[str, ...] = ()
    """The parameters that have a placeholder, by name."""
    lost: tuple[str, ...] = ()
    """The parameters of which a value cannot be read, by name."""

    @property
    def remarks(self) -> list[str]:
        """The flags as they are kept and shown: those about parameters are there for each of them, and name it."""
        about = {Flag.BROKEN_VALUE: self.lost, Flag.PLACEHOLDER: self.placeholders}
        others = [str(flag) for flag in self.flags if flag not in about]
        return others + [f"{flag}:{shown(name)}" for flag, names in about.items() for name in names]

    def value(self, name: str) -> str | None:
        """A parameter's value; None if it is absent, or only a placeholder."""
        return present(self.parameters, name)

    @property
    def client_id(self) -> str:
        return self.parameters["client_id"]

    @property
    def identifier_name(self) -> str:
        """Which identifier counts: `cli_ubid` if it is given, else `device_id`."""
        return "device_id" if self.value("cli_ubid") is None else "cli_ubid"

    @property
    def identifier(self) -> str | None:
        """The user, by the identifier that counts; None without consent."""
        return self.parameters.get(self.identifier_name)


def prefetched(judged: Click | Rejection) -> Click | Rejection:
    """The same, of a request that says that a program sent it before anybody clicked: a retrial has to know that."""
    flags = (*judged.flags, Flag.PREFETCH)
    if isinstance(judged, Rejection):
        return msgspec.structs.replace(judged, flags=flags)
    return msgspec.structs.replace(judged, flags=flags, plain=False)


_DIGITS_OF_MS: Final = 13
_DIGITS_OF_S: Final = 10


def judge(query: bytes, received_ms: int, accounts: Accounts) -> Click | Rejection:
    """The click that a query registers, or why it does not.

    The way of the usual click is short. Whatever is not plain goes the long way, which alone finds faults and flags.
    """
    parameters = split_plain(query)
    if (
        parameters is not None
        and not may_escape_ampersands(parameters)
        and ("cli_ubid" in parameters or "device_id" in parameters)
        and not (may_be_absent(query) and any(is_absent(*each) for each in parameters.items()))
        and not names_nobody(parameters)
        and (account := accounts.find(parameters.get("client_id", ""))) is not None
        and parameters.keys() >= account.required
        and SENT_AT not in parameters
        and (SAYING.isdisjoint(parameters) or is_given(parameters, account.consent))
        and ("gclid" in parameters or not _is_google(parameters, account))
        and len(said := parameters["event_time"]) == _DIGITS_OF_MS
        and said.isdigit()
    ):
        event_time_ms = int(said)
        if -STALE_AFTER_MS <= event_time_ms - received_ms <= AHEAD_MAX_MS:
            effective_ms = min(event_time_ms, received_ms)
            return Click(query, received_ms, account.profile, parameters, event_time_ms, effective_ms, (), True)
    return judge_fully(query, received_ms, accounts, parameters)


def judge_fully(
    query: bytes, received_ms: int, accounts: Accounts, parameters: dict[str, str] | None = None
) -> Click | Rejection:
    """The same by the authoritative rules alone. `parameters`: those of the query, if it was read already."""
    findings = _Findings([], [], ())
    if parameters is None:
        try:
            parameters = split(query)
        except Unreadable as problem:
            if problem.found[0].code is Reason.TOO_MANY_PARAMETERS:
                if not may_say_who(query, accounts):
                    findings.flags.append(Flag.NO_CONSENT)
                return Rejection(Kind.INVALID, None, problem.found, tuple(findings.flags))
            parameters = problem.parameters
            findings.lost = problem.found
    if (meant := with_ampersands(parameters)).keys() != parameters.keys():
        parameters = meant
        findings.flags.append(Flag.ESCAPED_AMPERSAND)
    client_id = present(parameters, "client_id")
    account = accounts.default if client_id is None else accounts.find(client_id)
    kind = Kind.INVALID
    if account is None:
        kind, account = Kind.UNKNOWN_CLIENT, accounts.default
        findings.refuse("client_id", Reason.UNKNOWN_CLIENT, UNKNOWN_CLIENT)
    if not is_given(parameters, account.consent):
        if (left := anonymous(query)) != query:
            return judge_fully(left, received_ms, accounts)
        findings.flags.append(Flag.NO_CONSENT)
    findings.judge_lost(account.profile)
    _judge_presence(parameters, account, findings)
    event_time_ms, effective_ms = _judge_event_time(parameters, received_ms, account.profile, findings)
    if findings.faults:
        kept = tuple(flag for flag in findings.flags if flag is Flag.NO_CONSENT)
        return Rejection(kind, client_id, tuple(findings.faults), kept)
    placeholders = tuple(name for name, value in parameters.items() if value and is_absent(name, value))
    lost = tuple(dict.fromkeys(fault.field for fault in findings.lost))
    flags = (*findings.flags, *[Flag.PLACEHOLDER] * bool(placeholders))
    return Click(
        query, received_ms, account.profile, parameters, event_time_ms, effective_ms, flags, False, placeholders, lost
    )


def may_say_who(query: bytes, accounts: Accounts) -> bool:
    """Whether a query that is not judged may say who clicked, as far as it says so."""
    try:
        parameters = with_ampersands(split(deciding(query)))
    except Unreadable as problem:
        parameters = with_ampersands(problem.parameters)
    account = accounts.find(parameters.get("client_id", "")) or accounts.default
    return is_given(parameters, account.consent)


_MILLISECONDS: Final = "the time of the click in milliseconds since 1970: 13 digits, for example 1800000000000"


class _Findings(msgspec.Struct):
    faults: list[Fault]
    flags: list[Flag]
    lost: tuple[Fault, ...]
    """What cannot be read."""

    def judge_lost(self, profile: Profile) -> None:
        """By the interface all of it is a fault; elsewhere its value is lost, and only what is required is a fault."""
        if profile is Profile.STRICT:
            self.faults += self.lost
        elif self.lost:
            self.flags.append(Flag.BROKEN_VALUE)

    def refuse(self, field: str, code: Reason, sentence: str) -> None:
        # A value that is there but cannot be read is not missing.
        lost = [fault for fault in self.lost if fault.field == field] if code is Reason.MISSING else []
        self.faults += [fault for fault in lost or [Fault(field, sentence, code)] if fault not in self.faults]


def _judge_presence(parameters: dict[str, str], account: Account, findings: _Findings) -> None:
    needed = ("client_id",) if account.profile is Profile.OPEN else ("client_id", "seller_id", "asvt", "atag")
    absent = [name for name in needed if present(parameters, name) is None]
    if account.profile is Profile.OBSERVED:
        if "seller_id" in absent and present(parameters, "uclid") is not None:
            findings.flags.append(Flag.SPONSORED)
            absent = [name for name in absent if name == "client_id"]
        findings.flags += [flag for name, flag in _FLAGS_OF_ABSENT.items() if name in absent]
        absent = [name for name in absent if name not in _FLAGS_OF_ABSENT]
    for name in absent:
        findings.refuse(name, Reason.MISSING, f"{name} is required; send it as it was received.")
    if Flag.NO_CONSENT in findings.flags:
        return
    if present(parameters, "cli_ubid") is None and present(parameters, "device_id") is None:
        sentence = "cli_ubid or device_id is required; send at least one of them."
        findings.refuse("cli_ubid", Reason.MISSING, sentence)
    if present(parameters, "gclid") is None and _is_google(parameters, account):
        has_another = any(present(parameters, name) for name in _INSTEAD_OF_GCLID)
        if account.profile is Profile.OPEN or (has_another and account.profile is Profile.OBSERVED):
            findings.flags.append(Flag.NO_GCLID)
        else:
            sentence = "gclid is required, as other parameters say that this is a Google click; send it as received."
            findings.refuse("gclid", Reason.MISSING, sentence)


_INSTEAD_OF_GCLID: Final = ("gbraid", "wbraid")
"""What Google sends of a click on iOS that may not be told from others."""
_FLAGS_OF_ABSENT: Final = {"asvt": Flag.ASVT_ABSENT, "atag": Flag.ATAG_ABSENT}


def _is_google(parameters: dict[str, str], account: Account) -> bool:
    rule = account.channel_rule(parameters)
    return rule is not None and rule.channel == GOOGLE


def _judge_event_time(
    parameters: dict[str, str], received_ms: int, profile: Profile, findings: _Findings
) -> tuple[int | None, int]:
    """The client's time and the effective one."""
    is_lenient = profile is not Profile.STRICT
    said = present(parameters, "event_time")
    if said is None:
        if is_lenient:
            findings.flags.append(Flag.EVENT_TIME_ABSENT)
        else:
            findings.refuse("event_time", Reason.MISSING, f"event_time is required; send {_MILLISECONDS}.")
        return None, received_ms
    is_number = said.isascii() and said.isdigit()
    if is_number and len(said) == _DIGITS_OF_MS:
        event_time_ms = int(said)
    elif is_number and len(said) == _DIGITS_OF_S and is_lenient:
        event_time_ms = int(said) * 1000
        findings.flags.append(Flag.EVENT_TIME_SECONDS)
    else:
        sentence = f"event_time cannot be read; send {_MILLISECONDS}."
        findings.refuse("event_time", Reason.BAD_EVENT_TIME, sentence)
        return None, received_ms
    true_ms = on_our_clock(event_time_ms, present(parameters, SENT_AT), received_ms)
    if true_ms != event_time_ms:
        findings.flags.append(Flag.CLOCK_CORRECTED)
    if true_ms - received_ms > AHEAD_MAX_MS:
        findings.flags.append(Flag.EVENT_TIME_AHEAD)
    if received_ms - true_ms > STALE_AFTER_MS:
        findings.flags.append(Flag.STALE)
    # No click is later than its request, and an order just after it has to find it earlier.
    return event_time_ms, min(true_ms, received_ms)


def on_our_clock(event_time_ms: int, sent_at: str | None, received_ms: int) -> int:
    """A time of a client's clock on ours, in milliseconds since 1970; `sent_at` is what its clock said at the sending.

    What happened at its receipt is not corrected: it is from a file that has no times of receipt.

    >>> on_our_clock(1_800_000_000_000, "1800000060000", 1_800_007_260_000)  # the clock is two hours slow
    1800007200000
    """
    if sent_at is None or len(sent_at) != _DIGITS_OF_MS or not (sent_at.isascii() and sent_at.isdigit()):
        return event_time_ms
    behind_ms = received_ms - int(sent_at)
    true_ms = event_time_ms + behind_ms
    is_off = abs(behind_ms) >= CLOCK_OFF_MIN_MS and event_time_ms != received_ms
    # Nonsense would lead to a time that nobody can send.
    return true_ms if is_off and len(str(true_ms)) == _DIGITS_OF_MS else event_time_ms
