"""The door to the identity provider: by OpenID Connect, the authorization code with PKCE, state and nonce.

Never decides what somebody may do, and never keeps a token of the provider: of its answer the claims are left.
Invariants: a code is exchanged by whoever began with its verifier; claims are believed when one of the issuer's keys
signed them, and issuer, audience, nonce and times fit; an answer is read up to `ANSWER_BYTES_MAX`, and waited for
`WAIT_S`.

>>> IdentityProvider(config, None, SystemClock())   # doctest: +SKIP
"""

import json
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import Transient, Unauthenticated
from clickclock.foundation.oidc_config import OidcConfig
from clickclock.scheduler.access.person import Rules, groups_in, is_elsewhere

CALLBACK: Final = "/signIn/callback"
ANSWER_BYTES_MAX: Final = 2 * 2**20
"""A claim of 10,000 groups has some 400 kB."""
WAIT_S: Final = 10.0
SKEW_S: Final = 120
"""So far the clocks of provider and service may be apart."""
KNOWN_FOR_S: Final = 600.0
_ALGORITHMS: Final = [
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
]
"""With keys of two parts: whoever can check a signature cannot make one."""


class ProviderUnreachable(Transient):
    """The identity provider does not answer; tokens go on working. Try again in a moment."""

    code = "providerUnreachable"


class SignInRefused(Unauthenticated):
    """The identity provider did not sign this person in."""

    code = "signInRefused"


class Begun(msgspec.Struct, frozen=True):
    """A sign-in that has begun: where the browser goes, and what it has to bring back."""

    url: str
    state: str
    nonce: str
    verifier: str


class IdentityProvider:
    """One issuer."""

    def __init__(self, config: OidcConfig, client_secret: str | None, clock: Clock) -> None:
        self.config = config
        self._secret = client_secret
        self._clock = clock
        self._known: dict[str, tuple[float, Any]] = {}

    @property
    def rules(self) -> Rules:
        """How its claims are read."""
        rows = tuple((row.group, row.grant()) for row in self.config.grants)
        return Rules(self.config.issuer, self.config.groups_claim, self.config.name_claim, rows)

    @property
    def callback(self) -> str:
        """Where the provider sends browsers back to."""
        return f"{self.config.public_url}{CALLBACK}"

    async def begin(self) -> Begun:
        """Begin a sign-in. Raises `ProviderUnreachable`."""
        where = await self._described("authorization_endpoint")
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self.config.client_id,
            "redirect_uri": self.callback,
            "scope": " ".join(self.config.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return Begun(f"{where}{'&' if '?' in where else '?'}{urlencode(asked)}", state, nonce, verifier)

    async def finish(self, code: str, *, nonce: str, verifier: str) -> Mapping[str, Any]:
        """The claims of the person whom a code signs in. Raises `ProviderUnreachable`, `SignInRefused`."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.callback,
            "client_id": self.config.client_id,
            "code_verifier": verifier,
        }
        if self._secret is not None:
            form["client_secret"] = self._secret
        answer = await self._ask("POST", await self._described("token_endpoint"), data=form)
        if not isinstance(answer.get("id_token"), str):
            said = answer.get("error_description") or answer.get("error") or "it sent no id_token"
            raise SignInRefused(
                f"{self.config.name} did not take the code: {str(said)[:300]}. Begin the sign-in again."
            )
        claims = dict(await self._checked(answer["id_token"], nonce))
        if not groups_in(claims, self.config.groups_claim) and isinstance(answer.get("access_token"), str):
            claims = await self._more(claims, answer["access_token"])
        if is_elsewhere(claims, self.config.groups_claim):
            raise SignInRefused(
                f"{self.config.name} left the claim {self.config.groups_claim} out, because this person is in too many "
                "groups. Have it send the groups of this application alone, or its roles."
            )
        return claims

    async def _more(self, claims: dict[str, Any], access_token: str) -> dict[str, Any]:
        """The claims with those that the provider tells by its other endpoint."""
        where = (await self._description()).get("userinfo_endpoint")
        if not isinstance(where, str):
            return claims
        told = await self._ask("GET", where, headers={"authorization": f"Bearer {access_token}"})
        return {**told, **claims} if told.get("sub") == claims["sub"] else claims

    async def _checked(self, id_token: str, nonce: str) -> Mapping[str, Any]:
        # It is of an extra, and whoever signs nobody in does without.
        from joserfc import jwk, jws, jwt  # noqa: PLC0415 (see the line above)
        from joserfc.errors import JoseError  # noqa: PLC0415 (see the line above)

        registry = jwt.JWTClaimsRegistry(
            now=self._clock.epoch_ms() // 1000,
            leeway=SKEW_S,
            iss={"essential": True, "value": self._issuer(await self._description())},
            aud={"essential": True, "value": self.config.client_id},
            nonce={"essential": True, "value": nonce},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
        )
        # Headers of other programs are none of ours to judge.
        signatures = jws.JWSRegistry(algorithms=_ALGORITHMS, strict_check_header=False)
        signatures.max_payload_length = ANSWER_BYTES_MAX
        for is_last in (False, True):
            keys = await self._get(await self._described("jwks_uri"), anew=is_last)
            try:
                token = jwt.decode(id_token, jwk.KeySet.import_key_set(keys), registry=signatures)
            except (JoseError, ValueError, KeyError) as error:
                if is_last:  # its keys may have changed since they were read
                    raise SignInRefused(
                        f"The signature of {self.config.name} does not fit its keys: {error}"
                    ) from error
                continue
            break
        try:
            registry.validate(token.claims)
        except JoseError as error:
            raise SignInRefused(
                f"What {self.config.name} said does not count here: {error}. If it is about a time, compare the clocks "
                f"of provider and service: they may be {SKEW_S} s apart. Begin the sign-in again."
            ) from error
        several = isinstance(token.claims["aud"], list) and len(token.claims["aud"]) > 1
        if several and token.claims.get("azp") != self.config.client_id:
            raise SignInRefused(f"What {self.config.name} said is for another program; begin the sign-in again.")
        return token.claims

    def _issuer(self, description: Mapping[str, Any]) -> str:
        """The issuer as the provider writes it itself: with or without the last slash."""
        said = description.get("issuer")
        if not isinstance(said, str) or said.rstrip("/") != self.config.issuer:
            raise SignInRefused(f"The provider at {self.config.issuer} says that it is {said!r}; correct oidc.issuer.")
        return said

    async def _description(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = await self._get(f"{self.config.issuer}/.well-known/openid-configuration")
        return found

    async def _described(self, name: str) -> str:
        where = (await self._description()).get(name)
        if not isinstance(where, str):
            raise ProviderUnreachable(f"{self.config.name} does not say its {name}; check oidc.issuer.")
        return where

    async def _get(self, url: str, *, anew: bool = False) -> Any:
        """What is at an address, as it was a moment ago."""
        now_s = self._clock.monotonic_s()
        kept = self._known.get(url)
        if kept is not None and not anew and now_s - kept[0] < KNOWN_FOR_S:
            return kept[1]
        found = await self._ask("GET", url)
        self._known[url] = (now_s, found)
        return found

    async def _ask(self, method: str, url: str, **said: Any) -> dict[str, Any]:
        """The JSON that an address answers, whatever its status."""
        import httpx  # noqa: PLC0415 (whoever signs nobody in starts without it)

        try:
            async with (
                httpx.AsyncClient(timeout=WAIT_S, follow_redirects=False) as client,
                client.stream(method, url, **said) as response,
            ):
                body = b""
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > ANSWER_BYTES_MAX:
                        raise ProviderUnreachable(f"{self.config.name} answers more than {ANSWER_BYTES_MAX} bytes.")
        except httpx.HTTPError as error:
            said_ = str(error) or type(error).__name__
            raise ProviderUnreachable(
                f"{self.config.name} ({self.config.issuer}) does not answer: {said_}. Tokens go on working."
            ) from error
        try:
            told = json.loads(body)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise ProviderUnreachable(
                f"{self.config.name} ({self.config.issuer}) answers {response.status_code}, no JSON."
            )
        return told
