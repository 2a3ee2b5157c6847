"""The paths of the collector's port that take orders.

Never judges an order: `orders.py` does. Invariants: an answer is given when all that it tells of is on disk; a request
of many orders, or of long ones, lets the clicks between, and of what is judged nothing is held but its result.

>>> routes = OrderRoutes(collector, answers, limits, find, cells, refused, tokens, secrets)   # doctest: +SKIP
>>> routes.post(request, changed)   # doctest: +SKIP
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Final, TypeAlias

from clickclock.attribution.agents.collector import Collector
from clickclock.attribution.api import orders, webhooks
from clickclock.attribution.api.answers import Answer, Answers
from clickclock.attribution.api.limits import Limits
from clickclock.attribution.api.orders import Asked, Judged, Reply
from clickclock.attribution.api.request import Later, Request
from clickclock.attribution.clicks.account import Account
from clickclock.attribution.clicks.entry import EntryKind, connection
from clickclock.attribution.clicks.page_event import PageClick
from clickclock.attribution.files.counters import cell
from clickclock.attribution.journal import Done
from clickclock.attribution.orders import appsflyer
from clickclock.attribution.orders.amendment import Admit
from clickclock.attribution.orders.order_fields import NotJson
from clickclock.attribution.orders.shop_order import Secrets, Shop
from clickclock.attribution.registering.refusal import Code, Refusal
from clickclock.foundation.errors import Malformed

TakeClick: TypeAlias = Callable[[bytes, bytes, bytes, Done], Answer]
"""Takes a click's query and the columns of its connection; see `Routes.click`."""
FORM_TYPES: Final = frozenset({b"application/x-www-form-urlencoded", b"text/plain", b""})
_JSON_TYPE: Final = b"application/json"
FLOODED: Final = (
    "Nothing was kept: too much was refused today, from your network or in all, or the disk is nearly full."
)
BUSY: Final = "Too many requests wait for the disk; send it again in a moment. Nothing was kept."
TURN_S: Final = 0.0005
"""Orders are judged for so long before clicks get their turn; one of a thousand items takes longer."""
_WAITING: Final = cell("clickclock_refused_total", "waiting")
_COUNTED: Final = {
    EntryKind.ORDER: cell("clickclock_orders_total"),
    EntryKind.OTHER: cell("clickclock_events_total"),
    EntryKind.REJECTION: cell("clickclock_rejections_total", "order"),
}
_COUNTED_BY: Final = {
    orders.ORDERS.one: _COUNTED,
    orders.IDENTIFICATIONS.one: {
        EntryKind.OTHER: cell("clickclock_identifications_total"),
        EntryKind.REJECTION: cell("clickclock_rejections_total", orders.IDENTIFICATIONS.one),
    },
}
_log = logging.getLogger(__name__)


class _Taken:
    """What of a request the collector has."""

    def __init__(self) -> None:
        self.told: list[asyncio.Future[Exception | None]] = []
        """Of each part of it: that it is on disk, or what went wrong."""
        self.cells: Counter[int] = Counter()
        """What counts up then, and by how much."""


class OrderRoutes:
    """Orders of one process."""

    def __init__(
        self,
        collector: Collector,
        answers: Callable[[bytes], Answers],
        limits: Limits,
        find: Callable[[str], Account | None],
        cells: memoryview,
        refused: Callable[[Request, Refusal], Answer],
        tokens: orders.Tokens,
        secrets: Secrets,
    ) -> None:
        """`answers` are by path; `refused` keeps and answers a request that cannot be judged."""
        self._refused = refused
        self._tokens = tokens
        self._secrets = secrets
        self._collector = collector
        self._answers = answers
        self._limits = limits
        self._find = find
        self._cells = cells
        self._bytes = 0
        """Of all requests that are being judged or wait for the disk."""
        self._orders = 0
        """In all of these."""
        self._lane = asyncio.Lock()
        """For requests that need more than one turn: of all together, one is taken before clicks get theirs."""
        self._tasks: set[asyncio.Task[None]] = set()

    def post(self, request: Request, changed: Callable[[], None]) -> Answer | Later:
        """`POST /orders`."""
        return self._post(request, changed, orders.ORDERS)

    def identify(self, request: Request, changed: Callable[[], None]) -> Answer | Later:
        """`GET` or `POST /identify`."""
        return self._post(request, changed, orders.IDENTIFICATIONS)

    def _post(self, request: Request, changed: Callable[[], None], asked: Asked) -> Answer | Later:
        # Whatever type it says to be: `curl -d` says that JSON is a form, and what is no JSON is refused as such.
        if request.head.encoding:
            return self._unreadable(request, "application/json")
        if self._bytes + len(request.body) > self._limits.bodies_bytes_max or self._collector.is_full:
            return self._busy(request)
        # Now, and not when the task begins: all that ends in one turn of the loop is judged behind it.
        self._bytes += len(request.body)
        later = Later(changed)
        task = asyncio.get_running_loop().create_task(self._take(request, later, asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return later

    def appsflyer(self, request: Request, changed: Callable[[], None]) -> Answer:
        """`GET` or `POST /appsflyer`: parameters in the query, as a form, or as a message of AppsFlyer's Push API."""
        body = request.body
        if body and (request.head.encoding or request.head.content_type not in (*FORM_TYPES, _JSON_TYPE)):
            return self._unreadable(request, "application/x-www-form-urlencoded or application/json")
        if self._collector.is_full:
            return self._busy(request)
        unread: NotJson | None = None
        if body and request.head.content_type == _JSON_TYPE:
            try:
                body = appsflyer.query_of(body)
            except NotJson as error:
                unread = error
        if unread is None:
            raw = b"&".join(filter(None, (request.query, body)))
            judged = orders.judge_appsflyer(raw, self._collector.now_ms(), self._doorkeeper(request))
        else:
            judged = orders.refuse(body, unread)
        (entry_id,) = self._collector.keep([judged.draft], request.head.origin, request.done)
        reply = orders.reply_refused(unread, entry_id) if unread else orders.reply_appsflyer(judged, entry_id)
        return self._answered(reply, request, kept=[_COUNTED[judged.draft.kind]])

    def webhook(self, shop: Shop, click: TakeClick) -> Callable[[Request, Callable[[], None]], Answer]:
        """`POST /webhooks/…`: what this kind of shop sends; a click is handed on."""

        def take(request: Request, changed: Callable[[], None]) -> Answer:
            if webhooks.is_ping(request.body):
                return self._answered(Reply(204), request)
            if request.head.encoding:
                return self._unreadable(request, "application/json")
            if self._collector.is_full:
                return self._busy(request)
            signature = dict(request.head.signatures).get(shop.signature, b"")
            now_ms = self._collector.now_ms()
            heard = webhooks.hear(shop, request.query, request.body, signature, now_ms, self._find, self._secrets)
            if isinstance(heard, Reply):
                return self._answered(heard, request)
            if isinstance(heard, PageClick):
                # Whose address the visitor has is not known here: the request is the passer-on's.
                origin = connection("", heard.agent, heard.referer)
                return click(heard.query, origin, request.persistence, request.done)
            entry_ids = self._collector.keep([each.draft for each in heard.judged], request.head.origin, request.done)
            counted = _COUNTED_BY[heard.asked.one]
            kept = [counted[each.draft.kind] for each in heard.judged]
            return self._answered(webhooks.reply(heard, entry_ids), request, kept=kept)

        return take

    async def _take(self, request: Request, later: Later, asked: Asked) -> None:
        try:
            answer = await self._answer(request, asked)
        except Exception:  # noqa: BLE001 - whatever it was, the client gets an answer and the log has it
            _log.exception("%s could not be taken", asked.many)
            answer = self._answers(request.path).broken()
        finally:
            self._bytes -= len(request.body)
        later.give(answer)

    async def _answer(self, request: Request, asked: Asked) -> Answer:
        try:
            pieces = asked.find(request.query, request.body)
        except Malformed as error:
            if not self._collector.keeps_refused(request.head.origin, len(request.body)):
                self._cells[cell("clickclock_not_kept_total", asked.one)] += 1
                return self._answered(orders.reply_refused(error, more=f" {FLOODED}"), request)
            taken = _Taken()
            (entry_id,) = self._keep([orders.refuse(request.body, error, asked)], request, taken, asked)
            return await self._told(taken, request, orders.reply_refused(error, entry_id))
        if self._orders + len(pieces) > self._limits.orders_max:
            return self._busy(request)
        self._orders += len(pieces)
        try:
            return await self._judged(pieces, request, asked)
        finally:
            self._orders -= len(pieces)

    async def _judged(self, pieces: list[bytes], request: Request, asked: Asked) -> Answer:
        admit, received_ms = self._doorkeeper(request), self._collector.now_ms()
        taken, results = _Taken(), orders.Results(len(pieces), asked)
        rest = iter(pieces)

        def take_turn() -> bool:
            """Judge and keep some of the rest; whether there is more."""
            until_s, judged = perf_counter() + TURN_S, []
            for piece in rest:
                judged.append(asked.judge(piece, received_ms, admit))
                if perf_counter() >= until_s:
                    break
            for each, entry_id in zip(judged, self._keep(judged, request, taken, asked), strict=True):
                results.add(each, entry_id)
            return len(results) < len(pieces)

        is_left = take_turn()
        if is_left:
            async with self._lane:
                while is_left:
                    await asyncio.sleep(0)
                    is_left = take_turn()
        return await self._told(taken, request, results.reply())

    def _keep(self, judged: Sequence[Judged], request: Request, taken: _Taken, asked: Asked) -> list[str]:
        """Give them to the collector; the ids."""
        told: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        taken.told.append(told)
        cells = _COUNTED_BY[asked.one]
        taken.cells.update(cells[each.draft.kind] for each in judged)
        return self._collector.keep([each.draft for each in judged], request.head.origin, told.set_result)

    async def _told(self, taken: _Taken, request: Request, reply: Reply) -> Answer:
        """The answer, once all is on disk."""
        failures = [failure for told in taken.told if (failure := await told) is not None]
        if failures:
            return self._answers(request.path).unavailable(str(failures[0]), request.persistence)
        for number, count in taken.cells.items():
            self._cells[number] += count
        return self._answered(reply, request)

    def _doorkeeper(self, request: Request) -> Admit:
        given = request.head.authorization.decode("latin-1")
        return orders.doorkeeper(self._find, given, self._tokens, self._collector.now_ms())

    def _answered(self, reply: Reply, request: Request, kept: Sequence[int] = ()) -> Answer:
        return self._answers(request.path).simple(
            reply.status, request.persistence, reply.fields, reply.body, kept=kept, is_head=request.is_head
        )

    def _busy(self, request: Request) -> Answer:
        self._cells[_WAITING] += 1
        return self._answers(request.path).unavailable(BUSY, request.persistence, is_head=request.is_head)

    def _unreadable(self, request: Request, wanted: str) -> Answer:
        sentence = f"The body is of a type that is not read here; send it as {wanted}, without Content-Encoding."
        return self._refused(request, Refusal(415, Code.UNSUPPORTED_MEDIA_TYPE, sentence))
