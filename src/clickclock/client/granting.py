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

    def sign_in_link(self) -> Payload:
        """The `secret` of a link that signs one browser in as the caller, once and within a minute."""
        return self._connection.call("POST", "signInLink")

    def begin_login(self, said: str = "") -> Payload:
        """Ask to be let in: a `code` for a person who is signed in, and the `loginKey` for `end_login`."""
        return self._connection.call("POST", "login", {"said": said})

    def end_login(self, login_key: str) -> Payload:
        """The `token` and its `secret` once a person has let it in; both are None until then."""
        return self._connection.call("PUT", "login", {"loginKey": login_key}, is_repeatable=False)

    def find_login(self, code: str) -> Payload:
        """Who waits under a code."""
        return self._connection.call("GET", "loginApproval", query={"code": code})

    def approve_login(self, code: str, grants: Sequence[Payload] | None = None) -> Payload:
        """Let in who waits under a code, with these grants, or with all of the caller's."""
        return self._connection.call("PUT", "loginApproval", given({"code": code, "grants": grants}))

    def list_sessions(self, **filters: object) -> Payload:
        """Browsers that are signed in, in the order in which they signed in."""
        return self._connection.call("GET", "sessions", query=filters)

    def end_sessions(self, name: str, session_id: str | None = None) -> Payload:
        """End all sessions of a principal, or one of them."""
        return self._connection.call("DELETE", "sessions", query=given({"name": name, "sessionId": session_id}))

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
