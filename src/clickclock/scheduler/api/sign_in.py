"""`/signIn`: how people sign in by an identity provider; pages for browsers, beside the interface.

Never judges a claim (`identity_provider.py`), and never says who may do what (`person.py`). Invariants: a state works
once, in the browser that began with it and on this installation; what is shown is escaped; whoever has no grant gets no
session, and its earlier ones end.
"""

from html import escape
from http.cookies import SimpleCookie
from typing import Final

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from clickclock.foundation.bearer import cookie, digest
from clickclock.foundation.caller import caller
from clickclock.foundation.errors import ClickclockError, Transient
from clickclock.foundation.permission import Permission
from clickclock.foundation.principal import Principal, nobody
from clickclock.foundation.problem import UnknownPath, refuse_changes
from clickclock.scheduler.access.audit import act_of
from clickclock.scheduler.access.browser_session import LOGIN_LASTS, LONGEST
from clickclock.scheduler.access.person import person
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import SignInNotFound
from clickclock.scheduler.identity_provider import CALLBACK, IdentityProvider, SignInRefused

BEGIN: Final = "/signIn/provider"
_COOKIES: Final = ("__Host-clickclock-sign-in", "clickclock-sign-in")
_PARTS: Final = 3
_AGAIN: Final = "This sign-in was used already, took too long, or began in another browser or at another installation."


def sign_in_routes(engine: Engine, provider: IdentityProvider | None) -> list[Route]:
    """The pages, over the one provider there is; without one, that there is none."""

    async def ways(request: Request) -> Response:
        refuse_changes(request.method)
        told = None if provider is None else {"name": provider.config.name, "url": BEGIN}
        return JSONResponse({"status": "success", "provider": told})

    async def begin(request: Request) -> Response:
        if provider is None:
            raise UnknownPath
        try:
            begun = await provider.begin()
        except Transient as error:
            return _page(provider, str(error), 503)
        expires_at = engine.clock.now() + LOGIN_LASTS
        await engine.store.sign_ins.offer(nobody("A sign-in that has begun."), digest(begun.state), expires_at)
        answer = RedirectResponse(begun.url, 303, headers={"cache-control": "no-store"})
        is_secure = provider.config.public_url.startswith("https:")
        answer.set_cookie(
            _COOKIES[0] if is_secure else _COOKIES[1],
            f"{begun.state}.{begun.nonce}.{begun.verifier}",
            max_age=int(LOGIN_LASTS.total_seconds()),
            secure=is_secure,
            httponly=True,
            samesite="lax",
        )
        return answer

    async def finish(request: Request) -> Response:
        if provider is None:
            raise UnknownPath
        try:
            who = await _signed_in(engine, provider, request)
        except ClickclockError as error:
            return _page(provider, str(error), 503 if isinstance(error, Transient) else 401)
        act = act_of(replace(caller(), principal=who), "GET signIn", Permission.WHOAMI, engine.clock.now())
        with engine.store.audit.by(act):
            await engine.store.browser_sessions.end_outdated(who)
            engine.authenticator.changed()
            if not who.grants:
                engine.auditor.refused(act)
                return _page(provider, _no_grant(provider, who), 403)
            session = await engine.authenticator.begin_session(who)
        answer = HTMLResponse(_SIGNED_IN, headers=_HEADERS)
        is_secure = provider.config.public_url.startswith("https:")
        answer.headers["set-cookie"] = cookie(session, seconds=int(LONGEST.total_seconds()), is_secure=is_secure)
        for name in _COOKIES:
            answer.delete_cookie(name, secure=name == _COOKIES[0], httponly=True, samesite="lax")
        return answer

    return [Route("/signIn", ways), Route(BEGIN, begin), Route(CALLBACK, finish)]


async def _signed_in(engine: Engine, provider: IdentityProvider, request: Request) -> Principal:
    """The person who comes back. Raises `SignInRefused`, `ProviderUnreachable`, `StoreUnreachable`."""
    asked = request.query_params
    state, nonce, verifier = _kept(request)
    if not state or asked.get("state") != state:
        raise SignInRefused(f"{_AGAIN} Begin again.")
    try:
        await engine.store.sign_ins.take(digest(state), engine.clock.now())
    except SignInNotFound:
        raise SignInRefused(f"{_AGAIN} Begin again.") from None
    if asked.get("iss", provider.config.issuer).rstrip("/") != provider.config.issuer:
        raise SignInRefused("Another provider answered than the one that was asked. Begin again.")
    if (code := asked.get("code")) is None:
        said = asked.get("error_description") or asked.get("error") or "it sent no code"
        raise SignInRefused(f"{provider.config.name} did not sign you in: {said[:300]}.")
    return person(await provider.finish(code, nonce=nonce, verifier=verifier), provider.rules)


def _kept(request: Request) -> tuple[str, str, str]:
    """State, nonce and verifier, as this browser keeps them; empty if it has none."""
    kept: SimpleCookie = SimpleCookie()
    kept.load(request.headers.get("cookie", ""))
    parts = next((kept[name].value.split(".") for name in _COOKIES if name in kept), [])
    return (parts[0], parts[1], parts[2]) if len(parts) == _PARTS else ("", "", "")


def _no_grant(provider: IdentityProvider, who: Principal) -> str:
    return (
        f"{provider.config.name} knows you as {who.name}, and none of your groups may do anything here. Ask "
        f"{provider.config.ask} for a role in clickclock."
    )


def _page(provider: IdentityProvider, sentence: str, status: int) -> Response:
    again = f'<p><a href="{BEGIN}">Sign in again with {escape(provider.config.name)}</a>, '
    again += 'or <a href="/sign-in">with a token</a>.</p>'
    return HTMLResponse(_PAGE.format(sentence=escape(sentence), again=again), status, headers=_HEADERS)


_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
}
_PAGE: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<title>Sign in – clickclock</title><style>body{{font:16px/1.5 system-ui,sans-serif;max-width:36em;margin:4em auto;"
    "padding:0 1em;color-scheme:light dark}}</style><h1>Sign in</h1><p>{sentence}</p>{again}</html>"
)
_SIGNED_IN: Final = (
    # The cookie is not sent on the way from another site: a page of ours has to ask for the next one.
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>clickclock</title>'
    '<meta http-equiv="refresh" content="0;url=/"><p><a href="/">Signed in: go on to the dashboard</a></p></html>'
)
