"""Consent: whether a click may say who clicked, and what is left of one that may not.

Never judges a click. Invariants: what is left names an ad, a page, a time and a device's make, and nobody; it says of
itself that there is no consent, so what reads it later needs no account; to take a person out twice is to do it once.

>>> anonymous(b"client_id=c&cli_ubid=u&utm_source=mail&gclid=x&event_time=5&session=7&consent=no")
b'client_id=c&utm_source=mail&event_time=5&consent=denied'
"""

from collections.abc import Mapping
from typing import Final

from clickclock.attribution.clicks.absent import present
from clickclock.attribution.clicks.account import CONSENT, SENT_AT, Consent
from clickclock.attribution.clicks.ad import COLUMNS
from clickclock.attribution.clicks.query import Unreadable, split, with_ampersands
from clickclock.attribution.clicks.tc_string import purposes_of

GRANTED: Final = frozenset(
    {"granted", "grant", "yes", "y", "true", "1", "accepted", "accept", "allowed", "allow", "opt-in", "optin", "opt_in"}
)
DENIED: Final = frozenset(
    {"denied", "deny", "no", "n", "false", "0", "refused", "refuse", "rejected", "reject", "declined", "decline"}
    | {"withdrawn", "revoked", "none", "opt-out", "optout", "opt_out"}
)
"""Both in any case. Any other word says nothing of consent."""
KEPT: Final = frozenset(
    {*COLUMNS, "client_id", "event_time", SENT_AT, "keyword", "landing_page", "country", "device_brand", "device_model"}
)
"""The parameters that are left: those that say which ad it was, and nothing that a network writes for each click."""
GDPR: Final = "gdpr"
"""Whether the European rules hold for the visitor, as ad networks write it: `1` or `0`."""
TC_STRING: Final = "gdpr_consent"
SAYING: Final = frozenset({CONSENT, GDPR, TC_STRING})
"""The parameters that may say something of consent."""
PURPOSES: Final = frozenset({1, 7})
"""To store and read what says who it is on a device, and to measure ads: both are needed."""
_DECIDING: Final = frozenset({"client_id", *SAYING})
_DENIED: Final = f"{CONSENT}=denied".encode()


def is_given(parameters: Mapping[str, str], rule: Consent) -> bool:
    """Whether a click with these parameters may say who clicked.

    >>> is_given({"consent": "Yes"}, Consent.REQUIRED), is_given({}, Consent.REQUIRED)
    (True, False)
    >>> is_given({"consent": "0"}, Consent.ASSUMED), is_given({"consent": "CPXxRfAPXxRfA"}, Consent.ASSUMED)
    (False, True)
    >>> is_given({"gdpr": "1"}, Consent.ASSUMED), is_given({"gdpr": "0"}, Consent.ASSUMED)
    (False, True)
    """
    said = _says(parameters)
    return rule is Consent.ASSUMED if said is None else said


def is_said(parameters: Mapping[str, str]) -> bool:
    """Whether a click's parameters themselves grant consent, whatever the account's rule is.

    >>> is_said({"consent": "Yes"}), is_said({})
    (True, False)
    """
    return _said(parameters) in GRANTED


def anonymous(query: bytes) -> bytes:
    """A query without its visitor: the parameters of `KEPT`, and `consent=denied`."""
    return b"&".join([*_parts(query, KEPT), _DENIED])


def deciding(query: bytes) -> bytes:
    """The parameters by which consent is decided, of a query that cannot be read or is not one of a click.

    >>> deciding(b"a=%&client_id=c&amp;consent=no")
    b'client_id=c&amp;consent=no'
    """
    return b"&".join(_parts(query, _DECIDING))


def without_visitor(origin: bytes) -> bytes:
    r"""The columns of `entry.connection` with the user agent alone: bots are found by it, and nobody else is.

    >>> without_visitor(b"6fd1\tcurl/8\thttps://shop.example/?mail=a\t")
    b'\tcurl/8\t\t'
    """
    return b"\t%b\t\t" % origin.split(b"\t")[1]


def _says(parameters: Mapping[str, str]) -> bool | None:
    """Whether a click's parameters grant consent or deny it; None if they say nothing of it."""
    word = _said(parameters)
    if word in GRANTED or word in DENIED:
        return word in GRANTED
    applies = (present(parameters, GDPR) or "").strip()
    if applies == "0" or not (applies or TC_STRING in parameters):
        return None
    purposes = purposes_of(present(parameters, TC_STRING) or "")
    if purposes is None:
        return False if applies == "1" else None
    return purposes >= PURPOSES


def _said(parameters: Mapping[str, str]) -> str:
    return (present(parameters, CONSENT) or "").strip().lower()


def _parts(query: bytes, names: frozenset[str]) -> list[bytes]:
    return [part for part in query.split(b"&") if _name(part) in names]


def _name(part: bytes) -> str | None:
    """A part's name as it was meant; None if it has none that can be read."""
    try:
        return next(iter(with_ampersands(split(part.partition(b"=")[0]))), None)
    except Unreadable:
        return None
