"""The principal of a request: the gate asks for it before anything else.

Never decides what somebody may do (`Principal` does), and never knows a path: who cannot be known is a principal
without a grant, and is refused where the first permission is asked for. Invariants: nothing that a request says of
itself counts, but a token or a session; a token that is not valid is never passed over; nothing is changed by a session
without the token that only pages of this service have.

>>> Access(Mode.NONE).mode
<Mode.NONE: 'none'>
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol

from clickclock.foundation.bearer import PREFIX, SESSION_PREFIX, Unreadable, has_session_token, key_of
from clickclock.foundation.failed_keys import FailedKeys
from clickclock.foundation.principal import ANYTHING, NOBODY_IN_PARTICULAR, Grant, Kind, Principal, Proof, nobody
from clickclock.foundation.problem import NoSessionToken, TooManyFailedKeys

SAME_USER: Final = "clickclock.sameUser"
"""In the scope of a request: whether the other end of its connection is the service's own user, or root."""
CERTIFICATE: Final = "clickclock.certificate"
"""In the scope of a request: the names of the certificate that the other end of its connection has proved to be its."""
SAME_USER_PRINCIPAL: Final = Principal(Kind.LOCAL, "local", "local", Proof.SAME_USER, ANYTHING)
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
_OURS: Final = PREFIX.encode()
_STRANGER: Final = nobody(
    "This service answers its own user and root of this machine, and you are another user. Ask as that user, or send "
    "a token as `Authorization: Bearer cck_…`; the service's user makes one with `clickclock token create`."
)
_KEYLESS: Final = nobody(
    "This service wants a token: send it as `Authorization: Bearer cck_…`, set CLICKCLOCK_TOKEN, or give --token-file. "
    "On the service's host, `clickclock token create NAME --role admin` makes the first one."
)


class Mode(StrEnum):
    """How those who ask prove who they are."""

    SAME_USER = "same-user"
    TOKENS = "tokens"
    NONE = "none"


class Keys(Protocol):
    """The holder of tokens and sessions."""

    async def principal_of(self, key: str) -> Principal:
        """Whose token or session it is; `nobody`, with a sentence, if it is nobody's or not valid any more."""
        ...

    def is_in_use(self, key: str) -> bool:
        """Whether it was valid a moment ago."""
        ...

    def now_s(self) -> float:
        """Seconds of a clock that nobody sets."""
        ...


class Access:
    """Tells who asks, as the setting `authentication` says."""

    def __init__(
        self,
        mode: Mode,
        keys: Keys | None = None,
        certificates: Mapping[str, tuple[Grant, ...]] | None = None,
        public_url: str | None = None,
    ) -> None:
        """`certificates` are the grants of each name that a client's certificate may have.

        `public_url` is where people see the service through a proxy, which may itself speak HTTP to us.
        """
        self.mode = mode
        self.public_url = public_url
        self._keys = keys
        self._certificates = certificates or {}
        self._failed = FailedKeys()

    async def of(self, scope: Mapping[str, Any]) -> Principal:
        """The principal that makes a request. Raises `NoSessionToken`, `TooManyFailedKeys`."""
        if self.mode is Mode.NONE or self._keys is None:
            return NOBODY_IN_PARTICULAR
        is_same_user = self.mode is Mode.SAME_USER and scope.get(SAME_USER, False)
        headers = scope["headers"]
        if is_same_user and not any(name == b"authorization" and _OURS in value for name, value in headers):
            return SAME_USER_PRINCIPAL  # what else it sends is for a proxy in front of us
        address = (scope.get("client") or ("",))[0]
        try:
            key = key_of(headers, scope["query_string"])
        except Unreadable as error:
            return self._failing(address, nobody(str(error)))
        if key is None and (names := scope.get(CERTIFICATE)):
            return self._certified(names)
        if key is None:
            return _STRANGER if self.mode is Mode.SAME_USER else _KEYLESS
        if not self._keys.is_in_use(key):  # others behind the same address go on, and cost no look-up
            self._expect_patience(address)
        principal = await self._keys.principal_of(key)
        if principal.kind is Kind.NOBODY:
            return self._failing(address, principal, key if key.startswith(SESSION_PREFIX) else None)
        if key.startswith(SESSION_PREFIX) and scope["method"] not in SAFE and not has_session_token(headers, key):
            raise NoSessionToken
        return principal

    def _failing(self, address: str, principal: Principal, session: str | None = None) -> Principal:
        """Count a key that was not valid."""
        self._expect_patience(address)
        if self._keys is not None:
            self._failed.note(address, self._keys.now_s(), session)
        return principal

    def _expect_patience(self, address: str) -> None:
        if self._keys is not None and (wait_s := self._failed.wait_s(address, self._keys.now_s())):
            raise TooManyFailedKeys(wait_s)

    def _certified(self, names: Sequence[str]) -> Principal:
        name = next((each for each in names if each in self._certificates), None)
        if name is None:
            return nobody(
                f"Your certificate is believed, and none of its names has a grant here: {', '.join(names)}. Ask an "
                "admin for a table [[tls_clients]] with one of them."
            )
        return Principal(Kind.CERTIFICATE, name, name, Proof.CERTIFICATE, self._certificates[name])


OPEN: Final = Access(Mode.NONE)
"""Takes everybody for the one local user."""
