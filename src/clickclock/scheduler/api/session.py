"""`/schedulerService/session` and what leads to one: `signInLink`, `login`, `loginApproval`; and `whoami`.

Parse, call, render. Never tells a secret but once, in the answer that makes it. Invariants: what makes a session or a
token comes in a body, because addresses are logged; nobody is given more than who lets him in has.
"""

import secrets
from datetime import timedelta
from typing import Any

from msgspec.structs import replace
from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.bearer import COOKIES, SIGN_IN_PREFIX, cookie, digest, key_of, session_token
from clickclock.foundation.caller import caller
from clickclock.foundation.errors import Fault, Forbidden, Invalid, Unauthenticated
from clickclock.foundation.permission import Permission, Role
from clickclock.foundation.principal import Kind, Principal, Proof
from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.access.access_token import GRANTS_MAX, NewToken, Token, TokenGrant, principal_grants
from clickclock.scheduler.access.audit import act_of
from clickclock.scheduler.access.browser_session import (
    CODE_ALPHABET,
    CODE_CHARS,
    LINK_LASTS,
    LOGIN_LASTS,
    LONGEST,
    TOKEN_LASTS,
    Waiting,
    read_code,
)
from clickclock.scheduler.agents.authenticator import mint
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.reading import Body, Query, Word
from clickclock.scheduler.errors import SignInNotFound, TooManySignIns

POLL_AFTER_S = 2
UNCACHED = {"cache-control": "no-store"}
_SAID_CHARS_MAX = 100
_NAME_CHARS_MAX = 100


class Whoami(Record):
    """The principal of a request."""

    kind: Kind = Field(description="What it is.", examples=["token"])
    name: str = Field(description="What it is called.", examples=["deploy"])
    proof: Proof = Field(description="How it proved itself.", examples=["token"])
    grants: list[TokenGrant] = Field(description="What it may do.", examples=[[{"role": Role.OPERATOR}]])
    permissions: dict[Permission, list[str]] = Field(
        description="Each permission that it holds, and of which applications or clients; `*` is all.",
        examples=[{"trigger.create": ["shop"], "cluster.read": ["*"]}],
    )
    session_token: str | None = Field(
        None, description="Of a session: what each change by its browser sends as `X-Session-Token`."
    )


class SignIn(Record):
    """How a browser signs in, if it sends no token."""

    link: str | None = Field(None, description="The secret of a link of POST signInLink.", examples=["ccl_…"])


class Login(Record):
    """A command line that wants to be let in."""

    said: str = Field(
        "", max_length=_SAID_CHARS_MAX, description="What it says of itself, for the person.", examples=["anna@laptop"]
    )


class LoginKey(Record):
    """A command line that looks whether it was let in."""

    login_key: str = Field(description="What POST login answered.", examples=["ccl_…"])


class LoginCode(Query):
    """A command line that waits."""

    code: Word = Field(description="The code that it shows.", examples=["BCDF-GHJK"])


class Approval(Record):
    """A command line that is to be let in."""

    code: str = Field(max_length=40, description="The code that it shows.", examples=["BCDF-GHJK"])
    grants: list[TokenGrant] | None = Field(
        None,
        min_length=1,
        max_length=GRANTS_MAX,
        description="What it may do; all that you may if not given, and never more.",
        examples=[[{"role": "viewer"}]],
    )


class WaitingLogin(Record):
    """A command line that waits to be let in."""

    code: str = Field(description="The code that it shows.", examples=["BCDF-GHJK"])
    said: str = Field(description="What it says of itself, which nobody has checked.", examples=["anna@laptop"])
    expires_at: Instant = Field(description="Until when it waits.")


SIGN_IN, LOGIN, LOGIN_KEY, APPROVAL = Body(SignIn), Body(Login), Body(LoginKey), Body(Approval)


async def whoami(call: Call[Query]) -> Response:
    """GET: who asks."""
    return success(200, UNCACHED, whoami=_whoami(call.principal, _session_of(call)))


async def sign_in(call: Call[Query]) -> Response:
    """POST: a session for who sends a token, or the secret of a link."""
    _refuse_attempts(call.principal)
    given: SignIn = SIGN_IN.read(call.body) if call.body else SignIn(link=None)
    who = call.principal if given.link is None else await _take(call, "link", given.link)
    if who is None or who.kind is Kind.NOBODY:
        raise Unauthenticated(call.principal.refusal)
    return await signed_in(call, who)


async def signed_in(call: Call[Any], who: Principal) -> Response:
    """The answer that has the browser of a request keep a session of this principal."""
    lasts = await _lasts(call, who, LONGEST)
    with call.engine.store.audit.by(_act(call, who, "POST session", Permission.WHOAMI)):
        session = await call.engine.authenticator.begin_session(who)
    kept = _cookie(call, session, int(lasts.total_seconds()))
    return success(200, UNCACHED | kept, whoami=_whoami(replace(who, proof=Proof.SESSION), session))


async def sign_out(call: Call[Query]) -> Response:
    """DELETE: the session is over, here and on every replica."""
    if (session := _session_of(call)) is not None:
        await call.engine.authenticator.end_session(session)
    return success(200, UNCACHED | _cookie(call, "", 0))


async def make_link(call: Call[Query]) -> Response:
    """POST: a secret that signs one browser in as the caller."""
    _refuse_attempts(call.principal)
    secret, expires_at = mint(SIGN_IN_PREFIX), call.engine.clock.now() + LINK_LASTS
    await call.engine.store.sign_ins.offer(call.principal, digest(secret), expires_at)
    return success(201, UNCACHED, secret=secret, expiresAt=expires_at)


async def begin_login(call: Call[Query]) -> Response:
    """POST: a code for the person, and a key by which the command line learns that it was let in."""
    given: Login = LOGIN.read(call.body) if call.body else Login()
    now, key = call.engine.clock.now(), mint(SIGN_IN_PREFIX)
    code = "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_CHARS))
    said = "".join(letter for letter in given.said if letter.isprintable())
    waiting = Waiting(code, said, now + LOGIN_LASTS)
    await call.engine.store.sign_ins.wait(waiting, digest(key), now)
    told = {"loginKey": key, "code": _shown(code), "expiresAt": waiting.expires_at, "pollAfterS": POLL_AFTER_S}
    return success(201, UNCACHED, **told)


async def end_login(call: Call[Query]) -> Response:
    """PUT: the command line's token, once somebody has let it in."""
    given: LoginKey = LOGIN_KEY.read(call.body)
    who = await _take(call, "loginKey", given.login_key)
    if who is None:
        return success(200, UNCACHED, token=None, secret=None)
    now, secret = call.engine.clock.now(), mint()
    grants = [TokenGrant.of(each) for each in who.grants]
    expires_at = now + await _lasts(call, who, TOKEN_LASTS)
    new = NewToken(name=f"login {secrets.token_hex(4)} of {who.name}"[:100], grants=grants, expires_at=expires_at)
    with call.engine.store.audit.by(_act(call, who, "PUT login", Permission.WHOAMI)):
        token = await call.engine.store.tokens.create(new, digest(secret), who.name, now)
    return success(200, UNCACHED, token=token, secret=secret)


async def find_login(call: Call[LoginCode]) -> Response:
    """GET: who waits under a code."""
    waiting = await call.engine.store.sign_ins.waiting(read_code(call.filters.code), call.engine.clock.now())
    return success(200, UNCACHED, login=_waiting(waiting))


async def approve(call: Call[Query]) -> Response:
    """PUT: let it in."""
    _refuse_attempts(call.principal)
    given: Approval = APPROVAL.read(call.body)
    who, now = call.principal, call.engine.clock.now()
    if given.grants is not None:
        wanted = principal_grants(given.grants)
        faults = [
            Fault(f"grants[{place}]", f"This is more than you may yourself: {each.role}. Grant less.")
            for place, each in enumerate(wanted)
            if not who.may_grant(each)
        ]
        if faults:
            raise Forbidden("Nobody can grant what he does not have.", faults)
        who = replace(who, grants=wanted)
    code = read_code(given.code)
    waiting = await call.engine.store.sign_ins.waiting(code, now)
    await call.engine.store.sign_ins.let_in(code, who, now)
    return success(200, UNCACHED, login=_waiting(waiting))


def _refuse_attempts(who: Principal) -> None:
    """Raise `Forbidden` for a job's token: it would make something that outlives its attempt."""
    if who.kind is Kind.ATTEMPT:
        raise Forbidden("A job's token ends with its attempt, and signs nobody in; use the token of a person.")


async def _take(call: Call[Any], field: str, secret: str) -> Principal | None:
    if not secret.startswith(SIGN_IN_PREFIX):
        sentence = f"This is not what was answered, which begins with {SIGN_IN_PREFIX}; begin again."
        raise Invalid(faults=[Fault(field, sentence)])
    return await call.engine.store.sign_ins.take(digest(secret), call.engine.clock.now())


async def _lasts(call: Call[Any], who: Principal, most: timedelta) -> timedelta:
    """How long a session or a token of this principal may live: no longer than the token that it rests on.

    Raises `SignInNotFound` if that has ended meanwhile.
    """
    if who.token_sha256 is None:
        return most
    token, now = await call.engine.store.tokens.by_digest(who.token_sha256), call.engine.clock.now()
    if token is None or token.ended(now) is not None:
        raise SignInNotFound
    return most if token.expires_at is None else min(most, token.expires_at - now)


def _act(call: Call[Any], who: Principal, operation: str, permission: Permission) -> Any:
    return act_of(replace(caller(), principal=who), operation, permission, call.engine.clock.now())


def _session_of(call: Call[Any]) -> str | None:
    """The session that its browser sends; not that of a request which counts by its token."""
    if call.principal.proof is not Proof.SESSION:
        return None
    return key_of([(b"cookie", call.headers.get("cookie", "").encode("latin-1"))], b"")


def _cookie(call: Call[Any], session: str, seconds: int) -> dict[str, str]:
    comes_by_tls = call.is_secure or call.headers.get("origin", "").startswith("https:")
    is_secure = comes_by_tls or COOKIES[0] in call.headers.get("cookie", "")
    return {"set-cookie": cookie(session, seconds=seconds, is_secure=is_secure)}


def _shown(code: str) -> str:
    half = CODE_CHARS // 2
    return f"{code[:half]}-{code[half:]}"


def _waiting(waiting: Waiting) -> WaitingLogin:
    return WaitingLogin(code=_shown(waiting.code), said=waiting.said, expires_at=waiting.expires_at)


def _whoami(who: Principal, session: str | None) -> Whoami:
    token = None if session is None else session_token(session)
    grants = [TokenGrant.of(each) for each in who.grants]
    return Whoami(
        kind=who.kind,
        name=who.name,
        proof=who.proof,
        grants=grants,
        permissions=who.permissions(),
        session_token=token,
    )


WHOAMI_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "Tell who asks",
        Permission.WHOAMI,
        whoami,
        Query,
        {200: {"whoami": Whoami}},
        description="What the service knows of the caller, and what it may do. A page of this service learns here what "
        "its changes have to send as `X-Session-Token`; no page of another site can read it.",
    ),
)
SESSION_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "POST",
        "Sign a browser in",
        Permission.WHOAMI,
        sign_in,
        Query,
        {200: {"whoami": Whoami}},
        description="The browser sends a token as `Authorization: Bearer cck_…`, or the secret of a link, and gets a "
        "session as a cookie. No script can read it, and no other site can have it sent. It ends after 12 hours "
        "without a request, after 7 days, when the browser signs out, and when its token is revoked, rotated or "
        "expired. Each change by it needs the header `X-Session-Token`, which the answer has.",
        body=SignIn,
        examples={"by a link": {"link": "ccl_…"}},
        keyless_too=True,
        errors=(SignInNotFound, Invalid),
    ),
    Operation(
        "DELETE",
        "Sign a browser out",
        Permission.WHOAMI,
        sign_out,
        Query,
        {200: {}},
        description="The session ends, on every replica within two seconds. A token goes on working; revoke it to end "
        "it.",
    ),
)
LINK_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "POST",
        "Make a link that signs a browser in",
        Permission.WHOAMI,
        make_link,
        Query,
        {201: {"secret": str, "expiresAt": Instant}},
        description="Open `/sign-in#SECRET` in a browser within a minute: it is signed in as the caller. The secret "
        "works once. It is behind the `#`, which no browser sends, so that nobody logs it.",
    ),
)
LOGIN_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "POST",
        "Begin to log a command line in",
        Permission.WHOAMI,
        begin_login,
        Query,
        {201: {"loginKey": str, "code": str, "expiresAt": Instant, "pollAfterS": int}},
        description="A person who is signed in opens `/login?code=CODE` in the dashboard and lets it in, within 10 "
        "minutes. Nobody needs a key for this, so nothing is granted by it.",
        body=Login,
        examples={"from a laptop": {"said": "anna@laptop"}},
        keyless_too=True,
        errors=(TooManySignIns,),
    ),
    Operation(
        "PUT",
        "Get the token of a command line that was let in",
        Permission.WHOAMI,
        end_login,
        Query,
        {200: {"token": Token | None, "secret": str | None}},
        description="Both are null until a person has let it in; ask again after `pollAfterS` seconds. The token comes "
        "once, and ends after 30 days, or with the token of who let it in, if that ends sooner.",
        body=LoginKey,
        examples={"once more": {"loginKey": "ccl_…"}},
        keyless_too=True,
        errors=(SignInNotFound, Invalid),
    ),
)
APPROVAL_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "Show a command line that waits to be let in",
        Permission.WHOAMI,
        find_login,
        LoginCode,
        {200: {"login": WaitingLogin}},
        errors=(SignInNotFound,),
    ),
    Operation(
        "PUT",
        "Let a command line in",
        Permission.WHOAMI,
        approve,
        Query,
        {200: {"login": WaitingLogin}},
        description="It gets a token that may do what you may, or what you say, which has to be less.",
        body=Approval,
        examples={"to look only": {"code": "BCDF-GHJK", "grants": [{"role": "viewer"}]}},
        errors=(SignInNotFound, Invalid, Forbidden),
    ),
)
