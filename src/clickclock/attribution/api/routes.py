"""What the collector's port answers: one method for each path.

Never writes to a connection, and never waits: an answer that acknowledges goes out when `done` is told that it is on
disk. Invariants: a request for registering a click is answered 204, or kept with its faults, or told that nothing was
kept; a request that is refused for any other reason is kept as far as there is a click or an order in it; nothing is
redirected.

>>> Routes.click   # doctest: +ELLIPSIS
<function Routes.click at ...>
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from clickclock.attribution.agents.collector import Collector, Draft
from clickclock.attribution.api import description
from clickclock.attribution.api.answers import FOR_PAGES, JSON, STAY, Answer, Answers
from clickclock.attribution.api.head import query_too_long
from clickclock.attribution.api.health import Health
from clickclock.attribution.api.limits import Limits
from clickclock.attribution.api.order_routes import BUSY, FLOODED, FORM_TYPES, OrderRoutes
from clickclock.attribution.api.orders import Tokens
from clickclock.attribution.api.request import Later, Request
from clickclock.attribution.clicks.account import Accounts
from clickclock.attribution.clicks.click import Click, Kind, Rejection, prefetched
from clickclock.attribution.clicks.consent import anonymous, without_visitor
from clickclock.attribution.clicks.country import located
from clickclock.attribution.clicks.entry import EntryKind
from clickclock.attribution.files.counters import REJECTED, cell
from clickclock.attribution.journal import Done
from clickclock.attribution.orders.amendment import ORDER_BYTES_MAX
from clickclock.attribution.orders.shop_order import SHOPS, Secrets
from clickclock.attribution.registering.refusal import (
    IDENTIFICATION,
    WEBHOOKS,
    Code,
    Refusal,
    detail_of,
    is_ours,
    kept_of,
)
from clickclock.attribution.registering.registration import CLICK, VIEW
from clickclock.foundation.openapi import ALIVE, HEALTHY

CLICKS: Final = b"/aclick"
VIEWS: Final = b"/aview"
_FOR_PAGES: Final = frozenset({CLICKS, VIEWS, b"/identify", b"/clickclock.js"})
_TRUSTING: Final = b"Access-Control-Allow-Headers: *\r\nAccess-Control-Max-Age: 86400\r\n"
_PLAIN_TEXT: Final = b"Content-Type: text/plain; charset=utf-8\r\n"
_METRICS_TEXT: Final = b"Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
_SCRIPT_TEXT: Final = b"Content-Type: text/javascript; charset=utf-8\r\nETag: %b\r\n"
_SCRIPT_CACHING: Final = b"Cache-Control: public, max-age=3600\r\n"
_READING: Final = (b"GET", b"HEAD", b"OPTIONS")
_POSTED: Final = (b"POST", b"OPTIONS")
_WAITING: Final = cell("clickclock_refused_total", "waiting")
_DISK: Final = cell("clickclock_refused_total", "disk")
_ORDER_REJECTED: Final = cell("clickclock_rejections_total", "order")
_NOT_KEPT_AS: Final = {each: cell("clickclock_not_kept_total", each) for each in REJECTED}
_REJECTED_AS: Final = {each: cell("clickclock_rejections_total", each) for each in (CLICK, VIEW, IDENTIFICATION)}

Respond = Callable[[Request, Callable[[], None]], Answer | Later]


class Routes:
    """The paths of one process."""

    def __init__(  # noqa: PLR0913, PLR0917 (one for each part of it)
        self,
        collector: Collector,
        cells: memoryview,
        limits: Limits,
        accounts: Accounts,
        health: Health,
        metrics: Callable[[], bytes],
        script: bytes,
        near: Callable[[str, bytes], bool],
        tokens: Tokens,
        secrets: Secrets,
        *,
        is_tls: bool,
        is_locating: bool,
    ) -> None:
        """`metrics` gives the page for Prometheus, `script` is what pages of shops load.

        `near` says of a peer, and of what it says of whom it forwards, whether it may see the metrics.
        """
        self.collector = collector
        self.cells = cells
        self.limits = limits
        self.is_locating = is_locating
        """Whether heads may have a country."""
        stay = STAY if is_tls else b""
        self.answers = Answers(0, FOR_PAGES + stay)
        """For scripts of pages."""
        self.private = Answers(0, stay)
        """For everybody else."""
        self._near = near
        self._health = health
        self._metrics = metrics
        self._script = script
        self._etag = b'"%b"' % blake2b(script, digest_size=8).hexdigest().encode()
        orders = OrderRoutes(collector, self._answers, limits, accounts.find, cells, self._refused, tokens, secrets)
        self._paths: dict[bytes, tuple[tuple[bytes, ...], int, Respond]] = {
            CLICKS: ((*_READING, b"POST"), limits.form_bytes_max, self._register),
            VIEWS: ((*_READING, b"POST"), limits.form_bytes_max, self._register),
            b"/orders": (_POSTED, limits.orders_bytes_max, orders.post),
            b"/identify": ((*_READING, b"POST"), limits.orders_bytes_max, orders.identify),
            b"/appsflyer": ((*_READING, b"POST"), limits.form_bytes_max, orders.appsflyer),
            **{
                WEBHOOKS + shop.name.encode(): (_POSTED, ORDER_BYTES_MAX, orders.webhook(shop, self.click))
                for shop in SHOPS
            },
            b"/healthz": (_READING, 0, self._tell_health),
            b"/readyz": (_READING, 0, self._tell_health),
            b"/livez": (_READING, 0, self._tell_life),
            b"/metrics": (_READING, 0, self._tell_metrics),
            b"/clickclock.js": (_READING, 0, self._give_script),
            b"/openapi.json": (_READING, 0, self._describe),
        }

    def _answers(self, path: bytes) -> Answers:
        return self.answers if _plain(path) in _FOR_PAGES else self.private

    def body_bytes_max(self, path: bytes) -> int:
        """The longest body that is read for a path, whatever is answered then."""
        found = self._paths.get(_plain(path))
        return max(found[1] if found else 0, self.limits.form_bytes_max)

    def click(self, query: bytes, origin: bytes, persistence: bytes, done: Done, *, is_view: bool = False) -> Answer:
        """Register a click or a view; the answer acknowledges nothing before `done` is called."""
        if self.collector.is_full:
            return self._busy(persistence)
        return self.judged(self.collector.judge(query), query, origin, persistence, done, is_view=is_view)

    def judged(
        self,
        judged: Click | Rejection,
        query: bytes,
        origin: bytes,
        persistence: bytes,
        done: Done,
        *,
        is_head: bool = False,
        is_view: bool = False,
    ) -> Answer:
        """The same for a click or a view that is judged already."""
        if isinstance(judged, Rejection) and not self.collector.keeps_refused(origin, len(query)):
            return self._rejected(judged, "", persistence, is_head=is_head, is_view=is_view)
        entry_id = self.collector.take(judged, query, origin, done, is_view=is_view)
        if isinstance(judged, Click):
            if is_view:
                return self.answers.view(persistence, is_head=True) if is_head else self.answers.viewed[persistence]
            if judged.flags or is_head:
                return self.answers.click(judged.profile, judged.flags, persistence, is_head=is_head)
            return self.answers.accepted[judged.profile][persistence]
        return self._rejected(judged, entry_id, persistence, is_head=is_head, is_view=is_view)

    def answer(self, request: Request, changed: Callable[[], None]) -> Answer | Later:
        """Whatever is asked. `changed` is called when an answer that is `Later` is known."""
        found = self._paths.get(_plain(request.path))
        if found is None and not (request.method == b"OPTIONS" and request.path == b"*"):
            sentence = "There is nothing at this path; clicks are registered at /aclick, and views at /aview."
            return self._refused(request, Refusal(404, Code.UNKNOWN_PATH, sentence))
        methods, _, respond = found or (_READING, 0, self._tell_health)
        allowed = b", ".join(methods)
        if request.method == b"OPTIONS":
            fields, answers = b"Allow: %b\r\n" % allowed, self._answers(request.path)
            if answers is self.answers:
                fields += b"Access-Control-Allow-Methods: %b\r\n" % allowed + _TRUSTING
            return answers.simple(204, request.persistence, fields)
        if request.method not in methods:
            sentence = "This path does not take that method; the Allow header lists those that it takes."
            return self._refused(request, Refusal(405, Code.METHOD_NOT_ALLOWED, sentence), b"Allow: %b\r\n" % allowed)
        if len(request.query) > self.limits.query_bytes_max:
            return self._refused(request, query_too_long(self.limits.query_bytes_max))
        return respond(request, changed)

    def refuse(  # noqa: PLR0913 (each is a part of the request)
        self,
        refusal: Refusal,
        path: bytes,
        query: bytes,
        body: bytes,
        origin: bytes,
        persistence: bytes,
        done: Done,
        *,
        fields: bytes = b"",
        is_cut: bool = False,
        is_head: bool = False,
        is_prefetch: bool = False,
    ) -> Answer:
        """Refuse a request that nobody has judged, and keep what there is of a click or an order in it."""
        path = _plain(path)
        answers = self._answers(path)
        found = kept_of(path, query, body)
        if found is not None and self.collector.is_full:
            self.cells[_WAITING] += 1
            return answers.unavailable(BUSY, persistence, is_head=is_head)
        sentence, entry_id = refusal.sentence, ""
        kept: tuple[int, ...] = ()
        if found is not None and not self.collector.keeps_refused(origin, len(found[1])):
            self.cells[_NOT_KEPT_AS.get(found[0], _NOT_KEPT_AS["order"])] += 1
            sentence += f" {FLOODED}"
        elif found is not None:
            what, raw = found
            if what in {CLICK, VIEW} and not self.collector.may_say_who(raw):
                raw, origin = anonymous(raw), without_visitor(origin)
            draft = Draft(EntryKind.REJECTION, detail_of(what, refusal, is_cut=is_cut, is_prefetch=is_prefetch), raw)
            (entry_id,) = self.collector.keep([draft], origin, done)
            sentence += f" {'Its beginning' if is_cut else 'The request'} is kept under its requestId."
            kept = (_REJECTED_AS.get(what, _ORDER_REJECTED),)
        elif is_ours(path):
            sentence += " Nothing was kept."
        return answers.problem(
            refusal.status,
            refusal.code,
            sentence,
            persistence,
            fields=fields,
            request_id=entry_id,
            kept=kept,
            is_head=is_head,
        )

    def not_kept(self, error: Exception, instead_of: Answer) -> Answer:
        """The answer when the disk refused the entry."""
        self.cells[_DISK] += 1
        answers = self.answers if FOR_PAGES in instead_of.data else self.private
        return answers.unavailable(str(error), instead_of.persistence, is_head=instead_of.is_head)

    def _register(self, request: Request, changed: Callable[[], None]) -> Answer:
        query, head = request.query, request.head
        is_head, is_view = request.is_head, _plain(request.path) == VIEWS
        if request.body:
            if head.content_type not in FORM_TYPES or head.encoding:
                sentence = "The body is of a type that is not read here; send it as application/x-www-form-urlencoded."
                return self._refused(request, Refusal(415, Code.UNSUPPORTED_MEDIA_TYPE, sentence))
            query = query + b"&" + request.body if query else request.body
        query = located(query, head.country)
        if self.collector.is_full:
            return self._busy(request.persistence, is_head=is_head)
        judged = self.collector.judge(query)
        if head.is_prefetch:
            judged = prefetched(judged)
        return self.judged(
            judged, query, head.origin, request.persistence, request.done, is_head=is_head, is_view=is_view
        )

    def _busy(self, persistence: bytes, *, is_head: bool = False) -> Answer:
        self.cells[_WAITING] += 1
        return self.answers.unavailable(BUSY, persistence, is_head=is_head)

    def _rejected(
        self, rejection: Rejection, entry_id: str, persistence: bytes, *, is_head: bool, is_view: bool
    ) -> Answer:
        what = VIEW if is_view else CLICK
        kept = [_REJECTED_AS[what], *(cell("clickclock_faults_total", fault.code) for fault in rejection.faults)]
        sentence = f"The {what} is refused, and kept under its requestId; fix the named parameters."
        if not entry_id:  # it waits for no disk
            self.cells[_NOT_KEPT_AS[what]] += 1
            kept, sentence = [], f"The {what} is refused; fix the named parameters. {FLOODED}"
        is_unknown = rejection.kind is Kind.UNKNOWN_CLIENT
        return self.answers.problem(
            403 if is_unknown else 400,
            rejection.kind,
            sentence,
            persistence,
            faults=rejection.faults,
            request_id=entry_id,
            kept=kept,
            is_head=is_head,
        )

    def _tell_health(self, request: Request, changed: Callable[[], None]) -> Later:
        later = Later(changed)

        def tell(fault: str | None) -> None:
            persistence, is_head = request.persistence, request.is_head
            if fault is None:
                later.give(self.private.simple(200, persistence, _PLAIN_TEXT, HEALTHY.encode(), is_head=is_head))
            else:
                later.give(self.private.unavailable(fault, persistence, is_head=is_head))

        self._health.ask(tell)
        return later

    def _tell_life(self, request: Request, changed: Callable[[], None]) -> Answer:
        return self.private.simple(200, request.persistence, _PLAIN_TEXT, ALIVE.encode(), is_head=request.is_head)

    def _tell_metrics(self, request: Request, changed: Callable[[], None]) -> Answer:
        if not self._near(request.peer, request.head.forwarded):
            sentence = "These numbers are for your own network; see click_metrics_from."
            return self.private.problem(403, "forbidden", sentence, request.persistence, is_head=request.is_head)
        text = self._metrics()
        return self.private.simple(200, request.persistence, _METRICS_TEXT, text, is_head=request.is_head)

    def _describe(self, request: Request, changed: Callable[[], None]) -> Answer:
        return self.private.simple(200, request.persistence, JSON, description.text(), is_head=request.is_head)

    def _give_script(self, request: Request, changed: Callable[[], None]) -> Answer:
        known = {each.strip().removeprefix(b"W/") for each in request.head.etags.split(b",")}
        fields = _SCRIPT_TEXT % self._etag
        if self._etag in known or b"*" in known:
            return self.answers.simple(304, request.persistence, fields, caching=_SCRIPT_CACHING)
        return self.answers.simple(
            200, request.persistence, fields, self._script, is_head=request.is_head, caching=_SCRIPT_CACHING
        )

    def _refused(self, request: Request, refusal: Refusal, fields: bytes = b"") -> Answer:
        """A whole request that is refused before it is judged."""
        return self.refuse(
            refusal,
            request.path,
            request.query,
            request.body,
            request.head.origin,
            request.persistence,
            request.done,
            fields=fields,
            is_head=request.is_head,
            is_prefetch=request.head.is_prefetch,
        )


def _plain(path: bytes) -> bytes:
    """A path in small letters, without the slash at its end; of a whole URL, its path."""
    path = path.lower()
    if not path.startswith(b"/") and b"://" in path:
        path = b"/" + path.partition(b"://")[2].partition(b"/")[2]
    return path.removesuffix(b"/") or b"/"
