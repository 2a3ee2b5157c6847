"""Who asks: what the gate asks of each request before anything else.

Never decides what somebody may do (`Principal` does), and never knows a path: who cannot be known is a principal
without a grant, and is refused where the first permission is asked for. Invariant: what decides is the connection, not
what the request says of itself.

>>> Access(Mode.NONE).of({}).name
'local'
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from clickclock.foundation.principal import ANYTHING, NOBODY_IN_PARTICULAR, Kind, Principal, Proof

SAME_USER: Final = "clickclock.sameUser"
"""In the scope of a request: whether the other end of its connection is the service's own user, or root."""
SAME_USER_PRINCIPAL: Final = Principal(Kind.LOCAL, "local", "local", Proof.SAME_USER, ANYTHING)
_STRANGER: Final = Principal(
    Kind.NOBODY,
    "",
    "nobody",
    Proof.NONE,
    (),
    "This service answers its own user and root of this machine, and you are another user; ask as that user, or let "
    'everybody on this machine in with the setting authentication = "none".',
)


class Mode(StrEnum):
    """How those who ask prove who they are."""

    SAME_USER = "same-user"
    NONE = "none"


class Access:
    """Tells who asks, as the setting `authentication` says."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode

    def of(self, scope: Mapping[str, Any]) -> Principal:
        """Who makes a request."""
        if self._mode is Mode.NONE:
            return NOBODY_IN_PARTICULAR
        return SAME_USER_PRINCIPAL if scope.get(SAME_USER) else _STRANGER


OPEN: Final = Access(Mode.NONE)
"""Takes everybody for the one local user."""
