"""The part of the client about who may do what: tokens, and who the service takes the caller for.

Never keeps a token that it receives. Invariant: a token is made once, whatever breaks: none of these is repeated.

>>> with Client() as client:                                                          # doctest: +SKIP
...     client.create_token("deploy", [{"role": "editor", "applications": ["shop"]}])["secret"]
"""

from collections.abc import Sequence

from clickclock.client.connection import Connection, Payload, given


class Granting:
    """Tokens, and whose they are."""

    _connection: Connection

    def whoami(self) -> Payload:
        """The caller's principal and its grants."""
        return self._connection.call("GET", "whoami")

    def list_tokens(self, **filters: object) -> Payload:
        """Tokens, in the order in which they were made."""
        return self._connection.call("GET", "token", query=filters)

    def create_token(self, name: str, grants: Sequence[Payload], expires_at: str | None = None) -> Payload:
        """Create a token; the answer has it as `secret`, this once."""
        return self._connection.call("POST", "token", given({"name": name, "grants": grants, "expiresAt": expires_at}))

    def rotate_token(self, name: str) -> Payload:
        """Give a token another `secret`; the old one is refused from then on."""
        return self._connection.call("PUT", "token", {"name": name}, is_repeatable=False)

    def revoke_token(self, name: str) -> Payload:
        """Revoke a token."""
        return self._connection.call("DELETE", "token", query={"name": name})
