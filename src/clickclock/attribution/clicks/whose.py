"""Whose clicks and orders somebody asks about: one client's, those of the clients that may be seen, or everybody's.

Never decides who may see what: a caller who names a client was asked for its permission before. Invariant: what names
no client is of none.

>>> Whose(within=("shop-1",)).takes("shop-1"), Whose(within=("shop-1",)).takes(None), Whose().takes(None)
(True, False, True)
"""

import msgspec


class Whose(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a question that says it. `client_id` is the client that is named, `within` those that may be seen."""

    client_id: str | None = None
    within: tuple[str, ...] | None = None

    @property
    def clients(self) -> tuple[str, ...] | None:
        """All of them; None for everybody."""
        return self.within if self.client_id is None else (self.client_id,)

    def takes(self, client_id: str | None) -> bool:
        """Whether something of a client is asked about."""
        return self.clients is None or client_id in self.clients
