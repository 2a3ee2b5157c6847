"""The principal of a request: the gate asks for it before anything else.

Never decides what somebody may do (`Principal` does), and never knows a path: who cannot be known is a principal
without a grant, and is refused where the first permission is asked for. Invariants: nothing that a request says of
itself counts, but a token or a session; a token that is not valid is never passed over; nothing is changed by a session
without the token that only pages of this service have.

>>> Access(Mode.NONE).mode
<Mode.NONE: 'none'>
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Protocol

from clickclock.foundation.bearer import PREFIX, SESSION_PREFIX, Unreadable, has_session_token, key_of
from clickclock.foundation.principal import ANYTHING, NOBODY_IN_PARTICULAR, Kind, Principal, Proof, nobody
from clickclock.foundation.problem import NoSessionToken

SAME_USER: Final = "clickclock.sameUser"
"""In the scope of a request: whether the other end of its connection is the service's own user, or root."""
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


class Access:
    """Tells who asks, as the setting `authentication` says."""

    def __init__(self, mode: Mode, keys: Keys | None = None) -> None:
        self.mode = mode
        self._keys = keys

    async def of(self, scope: Mapping[str, Any]) -> Principal:
        """The principal that makes a request. Raises `NoSessionToken`."""
        if self.mode is Mode.NONE or self._keys is None:
            return NOBODY_IN_PARTICULAR
        is_same_user = self.mode is Mode.SAME_USER and scope.get(SAME_USER, False)
        headers = scope["headers"]
        if is_same_user and not any(name == b"authorization" and _OURS in value for name, value in headers):
            return SAME_USER_PRINCIPAL  # what else it sends is for a proxy in front of us
        try:
            key = key_of(headers, scope["query_string"])
        except Unreadable as error:
            return nobody(str(error))
        if key is None:
            return _STRANGER if self.mode is Mode.SAME_USER else _KEYLESS
        principal = await self._keys.principal_of(key)
        is_known_session = key.startswith(SESSION_PREFIX) and principal.kind is not Kind.NOBODY
        if is_known_session and scope["method"] not in SAFE and not has_session_token(headers, key):
            raise NoSessionToken
        return principal


OPEN: Final = Access(Mode.NONE)
"""Takes everybody for the one local user."""
