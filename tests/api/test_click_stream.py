"""The stream of clicks: events as they come, filters, coming back, and leaving."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message

from clickclock.attribution.api import stream
from clickclock.attribution.api.application import create_app
from clickclock.attribution.clicks.account import Accounts, Profile
from clickclock.attribution.clicks.click import Rejection, judge
from clickclock.attribution.clicks.entry import EntryKind, connection, encode
from clickclock.attribution.journal import Journal
from clickclock.attribution.registering.registration import detail_of
from clickclock.client.event_stream import Event, EventParser
from clickclock.foundation.clock import Clock, ManualClock, SystemClock

DEADLINE_S = 60
PATH = "/attribution/clicks/stream"
GOOD = b"client_id=shop-1&seller_id=s-9&asvt=v%7C1&atag=a+b&cli_ubid=u-1"


def _now_ms() -> int:
    return int(SystemClock().now().timestamp() * 1000)


class Ground:
    """A journal that clicks can be put into, and the application over its folder."""

    def __init__(self, folder: Path, journal: Journal, clock: Clock) -> None:
        self.stopping = asyncio.Event()
        self.app = create_app(folder, clock=clock, stopping=self.stopping)
        self._journal = journal

    async def click(self, query: bytes) -> None:
        """Keep a click as the collector does; it is on disk afterwards."""
        judged = judge(query, _now_ms(), Accounts(default_profile=Profile.OBSERVED))
        if isinstance(judged, Rejection):
            await self.keep(EntryKind.REJECTION, detail_of(judged, "click"), query)
        else:
            kind = EntryKind.PLAIN_CLICK if judged.plain else EntryKind.CLICK
            await self.keep(kind, judged.profile.encode(), query)

    async def keep(self, kind: EntryKind, detail: bytes, raw: bytes) -> None:
        """Keep any entry."""
        done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        origin = connection("ab12", b"curl/8 \xff", b"https://shop.test/")
        self._journal.append(encode(kind, "0" * 32, _now_ms(), origin, detail, raw), done.set_result)
        assert await asyncio.wait_for(done, DEADLINE_S) is None

    def http(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://localhost")

    @contextlib.asynccontextmanager
    async def watching(self, query: str = "", headers: Mapping[str, str] | None = None) -> "AsyncIterator[View]":
        """A viewer, from its first event until it hangs up."""
        view = View()
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": PATH,
            "raw_path": PATH.encode(),
            "query_string": query.encode(),
            "headers": [(n.encode(), v.encode()) for n, v in {"host": "localhost", **(headers or {})}.items()],
        }
        serving = asyncio.create_task(self.app(scope, view.receive, view.send))
        assert (await view.next()).name == "watching"
        try:
            yield view
        finally:
            view.hang_up.set()
            await asyncio.wait_for(serving, DEADLINE_S)


class View:
    """What one viewer got."""

    def __init__(self) -> None:
        self.hang_up = asyncio.Event()
        self.ended = asyncio.Event()
        self._comments: asyncio.Queue[str] = asyncio.Queue()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._parser = EventParser()

    async def receive(self) -> Message:
        await self.hang_up.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.ended.set()
        body: bytes = message.get("body", b"")
        if body.startswith(b":"):
            self._comments.put_nowait(body.decode())
        for event in self._parser.feed(body):
            self._events.put_nowait(event)

    async def next(self) -> Event:
        """The next event."""
        return await asyncio.wait_for(self._events.get(), DEADLINE_S)

    async def comment(self) -> str:
        """The next comment."""
        return await asyncio.wait_for(self._comments.get(), DEADLINE_S)

    async def fields(self) -> dict[str, Any]:
        """The next event's data and, as `event`, its name."""
        event = await self.next()
        return {"event": event.name, **json.loads(event.data)}


@pytest.fixture
def clock() -> ManualClock:
    """The clock by which the stream tells what is live."""
    return ManualClock(SystemClock().now())


@pytest.fixture
async def ground(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Ground]:
    journal = await Journal.open(tmp_path / "journal" / "0", segment_bytes=2**20, segment_age_s=3600)
    yield Ground(tmp_path / "journal", journal, clock)
    await journal.close()


async def test_a_click_is_shown_as_it_arrives_with_its_flags(ground: Ground) -> None:
    async with ground.watching() as view:
        await ground.click(GOOD + b"&gclid=g&note=%22x%22")
        shown = await view.fields()
    assert shown["event"] == "click"
    assert (shown["clientId"], shown["sellerId"]) == ("shop-1", "s-9")
    assert (shown["identifierName"], shown["identifier"]) == ("cli_ubid", "u-1")
    assert (shown["profile"], shown["flags"], shown["eventTime"]) == ("observed", ["eventTimeAbsent"], None)
    assert shown["effectiveTime"] == shown["receivedAt"]
    assert shown["parameters"]["asvt"] == "v|1"
    assert shown["query"] == (GOOD + b"&gclid=g&note=%22x%22").decode()
    assert (shown["address"], shown["agent"], shown["referer"]) == ("ab12", "curl/8 \\xff", "https://shop.test/")


async def test_a_plain_click_is_shown_with_both_its_times(ground: Ground) -> None:
    async with ground.watching() as view:
        await ground.click(GOOD + b"&event_time=%d" % (_now_ms() - 60_000))
        shown = await view.fields()
    assert shown["flags"] == []
    assert shown["eventTime"] == shown["effectiveTime"] < shown["receivedAt"]


async def test_a_rejection_is_shown_with_every_fault(ground: Ground) -> None:
    async with ground.watching() as view:
        await ground.click(b"client_id=shop-1&seller_id=%zz")
        shown = await view.fields()
    told = [shown[name] for name in ("event", "was", "kind", "clientId")]
    assert told == ["rejection", "click", "invalid", "shop-1"]
    assert {fault["field"] for fault in shown["faults"]} == {"seller_id", "cli_ubid"}
    assert all(fault["message"] and fault["code"] for fault in shown["faults"])
    assert shown["parameters"] == {"client_id": "shop-1"}
    assert shown["query"] == "client_id=shop-1&seller_id=%zz"


async def test_an_order_is_shown_even_if_it_is_not_quite_unicode(ground: Ground) -> None:
    async with ground.watching() as view:
        await ground.keep(EntryKind.ORDER, b"", b'{"client_id": "c", "order_id": "\\ud800"}')
        shown = await view.fields()
    assert (shown["event"], shown["clientId"], shown["order"]["order_id"]) == ("order", "c", "\ud800")


async def test_a_viewer_may_ask_for_one_client_or_one_kind(ground: Ground) -> None:
    async with ground.watching("clientId=a%20b") as one, ground.watching("kind=rejection&kind=order") as other:
        for query in (GOOD, b"client_id=x", b"client_id=a+b", GOOD.replace(b"shop-1", b"%61%20b")):
            await ground.click(query)
        assert [(await one.fields())["event"] for _ in range(2)] == ["rejection", "click"]
        assert [(await other.fields())["clientId"] for _ in range(2)] == ["x", "a b"]


async def test_who_comes_back_gets_only_the_rest(ground: Ground) -> None:
    async with ground.watching() as view:
        for name in (b"c1", b"c2", b"c3"):
            await ground.click(b"client_id=" + name)
        events = [await view.next() for _ in range(3)]
    async with ground.watching(headers={"last-event-id": events[0].id}) as view:
        assert [(await view.fields())["clientId"] for _ in range(2)] == ["c2", "c3"]
    async with ground.watching(headers={"last-event-id": events[2].id}) as view:
        await ground.click(b"client_id=c4")
        assert (await view.fields())["clientId"] == "c4"


async def test_silence_is_broken_by_a_comment_that_carries_the_position(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "KEEP_ALIVE_S", stream.POLL_S)
    async with ground.watching("clientId=nobody") as view:
        first = await view.comment()
        await ground.click(GOOD)
        async with asyncio.timeout(DEADLINE_S):
            while (later := await view.comment()) == first:
                pass
    _, position = later.strip().split("\nid: ")
    async with ground.watching(headers={"last-event-id": position}) as view:
        await ground.click(b"client_id=next")
        assert (await view.fields())["clientId"] == "next"


async def test_what_is_no_longer_live_is_counted_instead(ground: Ground, clock: ManualClock) -> None:
    async with ground.watching() as view:
        await ground.click(GOOD)
        first = await view.next()
        clock.advance(3600)
        await ground.click(GOOD)
        missed = await view.next()
    assert (missed.name, json.loads(missed.data)["entries"], missed.id) == ("missed", 1, first.id)


async def test_a_service_that_stops_waits_for_nobody_who_watches(ground: Ground) -> None:
    async with ground.watching() as one, ground.watching() as other:
        ground.stopping.set()
        await asyncio.wait_for(one.ended.wait(), DEADLINE_S)
        await asyncio.wait_for(other.ended.wait(), DEADLINE_S)


async def test_so_many_may_watch_and_no_more_until_one_leaves(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "VIEWERS_MAX", 1)
    async with ground.http() as http:
        async with ground.watching():
            refused = await http.get(PATH)
            assert (refused.status_code, refused.json()["code"]) == (503, "tooManyViewers")
            assert refused.headers["retry-after"] == "1"
        async with ground.watching() as view:
            await ground.click(GOOD)
            assert (await view.fields())["event"] == "click"


@pytest.mark.parametrize(
    ("query", "headers", "fields"),
    [
        ("kind=clicks&client=x", {}, ["kind", "client"]),
        ("clientId=a&clientId=b", {}, ["clientId"]),
        ("clientId=%ff", {}, [""]),
        ("", {"Last-Event-ID": "x"}, ["Last-Event-ID"]),
    ],
)
async def test_what_cannot_be_meant_is_refused(
    ground: Ground, query: str, headers: dict[str, str], fields: list[str]
) -> None:
    async with ground.http() as http:
        answer = await http.get(f"{PATH}?{query}", headers=headers)
    assert answer.status_code == 400
    assert [fault["field"] for fault in answer.json()["errors"]] == fields


async def test_it_is_only_for_reading_and_a_head_ends_at_once(ground: Ground) -> None:
    async with ground.http() as http:
        assert (await http.post(PATH)).headers["allow"] == "GET, HEAD"
        head = await http.head(PATH)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"].startswith("text/event-stream")
        assert (await http.get(f"{PATH}/more")).json()["code"] == "unknownPath"
