"""`GET events`: a stream that can be resumed, and a list of what was."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import httpx
import pytest
from starlette.types import ASGIApp, Message

from clickclock.client.event_stream import Event, EventParser
from clickclock.foundation import streams
from clickclock.foundation.access import OPEN, Access, Mode
from clickclock.foundation.bearer import digest
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.permission import Role
from clickclock.scheduler.access.access_token import NewToken, TokenGrant
from clickclock.scheduler.agents.authenticator import mint
from clickclock.scheduler.api import create_app, events
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.insight.event import EVERYTHING
from tests.api.conftest import BASE, JOB

DEADLINE_S = 60


class View:
    """What one listener got."""

    def __init__(self) -> None:
        self.hang_up = asyncio.Event()
        self.ended = asyncio.Event()
        self.started = asyncio.Event()
        self.raw = b""
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._parser = EventParser()

    async def receive(self) -> Message:
        await self.hang_up.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        body: bytes = message.get("body", b"")
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.ended.set()
        self.raw += body
        if b"\n\nid: " in self.raw:
            self.started.set()
        for event in self._parser.feed(body):
            self._events.put_nowait(event)

    async def next(self) -> Event:
        """The next event."""
        return await asyncio.wait_for(self._events.get(), DEADLINE_S)

    async def types(self, count: int) -> list[str]:
        """The types of the next events."""
        return [json.loads((await self.next()).data)["type"].removeprefix("clickclock.") for _ in range(count)]


@pytest.fixture
async def stepping(engine: Engine) -> AsyncIterator[None]:
    """The announcer's loop, as the engine runs it."""
    loop = engine._announcer_loop
    running = asyncio.create_task(loop.run())
    yield
    loop.stop()
    await running


@contextlib.asynccontextmanager
async def listening(
    engine: Engine,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    view: View | None = None,
    access: Access = OPEN,
    app: ASGIApp | None = None,
) -> AsyncIterator[View]:
    """A listener, from when it stands until it hangs up."""
    view = view or View()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/schedulerService/events",
        "raw_path": b"/schedulerService/events",
        "query_string": query.encode(),
        "headers": [(n.encode(), v.encode()) for n, v in {"host": "localhost", **(headers or {})}.items()],
    }
    made = app or create_app(engine, access=access)
    serving = asyncio.ensure_future(made(scope, view.receive, view.send))
    await asyncio.wait_for(view.started.wait(), DEADLINE_S)
    try:
        yield view
    finally:
        view.hang_up.set()
        await asyncio.wait_for(serving, DEADLINE_S)


@pytest.mark.usefixtures("stepping", "job")
async def test_a_listener_hears_what_happens_as_cloud_events(engine: Engine, http: httpx.AsyncClient) -> None:
    async with listening(engine) as view:
        trigger = (await http.post("jobTrigger", json={"application": "shop", "jobName": "export"})).json()["trigger"]
        await http.delete("jobTrigger", params={"triggerId": trigger["triggerId"]})
        event = await view.next()
        told = json.loads(event.data)
        assert (event.name, event.id) == ("message", told["id"])
        assert (told["specversion"], told["type"]) == ("1.0", "clickclock.trigger.queued")
        assert told["data"]["triggerId"] == told["subject"] == trigger["triggerId"]
        assert await view.types(1) == ["trigger.cancelled"]


@pytest.mark.usefixtures("stepping")
async def test_who_comes_back_misses_nothing_and_gets_nothing_twice(engine: Engine, http: httpx.AsyncClient) -> None:
    async with listening(engine) as view:
        await http.post("job", json=JOB)
        last = await view.next()
    for number in range(3):
        await http.post("group", json={"groupName": f"{number}"})
    async with listening(engine, headers={"last-event-id": last.id}) as view:
        assert await view.types(3) == ["group.created"] * 3
        await http.delete("group", params={"groupName": "0"})
        assert await view.types(1) == ["group.deleted"]
    async with listening(engine, "after=0&type=group.deleted,job") as view:
        assert await view.types(2) == ["job.created", "group.deleted"]


class Slow(View):
    """One who reads so slowly that retention is faster."""

    def __init__(self, prune: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self._prune = prune

    async def send(self, message: Message) -> None:
        await super().send(message)
        if b"group.created" in message.get("body", b""):
            await self._prune()


@pytest.mark.usefixtures("stepping")
async def test_what_goes_while_the_past_is_read_is_told_as_missed(
    engine: Engine, http: httpx.AsyncClient, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "READ_MAX", 1)
    for number in range(4):
        await http.post("group", json={"groupName": f"{number}"})
    first, *_ = await engine.store.changes.read(0, 10, EVERYTHING, 1)
    clock.advance(1)
    slow = Slow(lambda: engine.store.changes.prune(clock.now(), 10))
    async with listening(engine, f"after={first.position}", view=slow) as view:
        told = [await view.next() for _ in range(3)]
    assert [each.name for each in told] == ["message", "missed", "message"]
    assert [json.loads(told[place].data)["data"]["groupName"] for place in (0, 2)] == ["1", "3"]


@pytest.mark.usefixtures("stepping")
async def test_what_is_no_longer_kept_is_told_as_missed(
    engine: Engine, http: httpx.AsyncClient, clock: ManualClock
) -> None:
    for number in range(3):
        await http.post("group", json={"groupName": f"{number}"})
    first, *_ = await engine.store.changes.read(0, 10, EVERYTHING, 1)
    clock.advance(1)
    await engine.store.changes.prune(clock.now(), 10)
    async with listening(engine, f"after={first.position}") as view:
        assert (await view.next()).name == "missed"
        assert await view.types(1) == ["group.created"]
    async with listening(engine, "after=1000000") as view:
        assert "store is another one" in (await view.next()).data


@pytest.mark.usefixtures("stepping")
async def test_when_the_service_stops_listeners_are_let_go(engine: Engine) -> None:
    async with listening(engine) as view:
        engine.announcer.close()
        await asyncio.wait_for(view.ended.wait(), DEADLINE_S)


@pytest.mark.usefixtures("job")
async def test_the_recent_past_is_a_list_in_pages(http: httpx.AsyncClient) -> None:
    for number in range(3):
        await http.post("group", json={"groupName": f"{number}"})
    first = (await http.get("events", params={"follow": False, "limit": 2, "type": "group"})).json()
    assert [each["data"]["groupName"] for each in first["events"]] == ["2", "1"]
    more = {"follow": False, "limit": 2, "type": "group", "cursor": first["nextCursor"]}
    rest = (await http.get("events", params=more)).json()
    assert [each["data"]["groupName"] for each in rest["events"]] == ["0"]
    assert rest["nextCursor"] is None
    of_shop = (await http.get("events", params={"follow": False, "application": "shop"})).json()["events"]
    assert [each["type"] for each in of_shop] == ["clickclock.job.created"]


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize(
    ("query", "accepted"),
    [("", "application/json"), ("", "application/json, text/event-stream;q=0.9"), ("limit=5", "*/*"), ("limit=5", "")],
)
async def test_who_wants_json_or_so_many_gets_a_list(http: httpx.AsyncClient, query: str, accepted: str) -> None:
    answer = await http.get(f"events?{query}", headers={"accept": accepted})
    assert [each["type"] for each in answer.json()["events"]] == ["clickclock.job.created"]


@pytest.mark.usefixtures("stepping")
async def test_a_stream_with_a_limit_ends_after_so_many(engine: Engine, http: httpx.AsyncClient) -> None:
    for number in range(3):
        await http.post("group", json={"groupName": f"{number}"})
    async with listening(engine, "follow=true&after=0&limit=2") as view:
        assert await view.types(2) == ["group.created"] * 2
        await asyncio.wait_for(view.ended.wait(), DEADLINE_S)


@pytest.mark.parametrize(
    ("query", "field"),
    [("type=trigger.faild", "type"), ("after=-1", "after"), ("follow=false&after=1", "after"), ("typ=job", "typ")],
)
async def test_a_filter_that_fits_nothing_is_refused(http: httpx.AsyncClient, query: str, field: str) -> None:
    response = await http.get(f"events?{query}")
    assert response.status_code == 400
    assert [each["field"] for each in response.json()["errors"]] == [field]


@pytest.mark.parametrize("last", ["nonsense", "", "-1", "1.5", "0" * 20 + "9" * 5000])
async def test_a_last_event_id_that_is_none_is_refused(http: httpx.AsyncClient, last: str) -> None:
    response = await http.get("events", headers={"Last-Event-ID": last})
    assert response.status_code == 400
    assert [each["field"] for each in response.json()["errors"]] == ["Last-Event-ID"]


async def test_head_is_answered_without_listening(http: httpx.AsyncClient) -> None:
    response = await http.head(f"{BASE}events")
    assert response.headers["content-type"].startswith("text/event-stream")


async def shops(engine: Engine) -> dict[str, str]:
    """The header of a token of the application `shop`."""
    secret = mint()
    grants = [TokenGrant(role=Role.VIEWER, applications=["shop"], clients=[])]
    await engine.store.tokens.create(NewToken(name="shop", grants=grants), digest(secret), "test", engine.clock.now())
    return {"authorization": f"Bearer {secret}"}


@pytest.mark.usefixtures("stepping")
async def test_a_listener_of_one_application_hears_of_no_other(engine: Engine, http: httpx.AsyncClient) -> None:
    headers, access = await shops(engine), Access(Mode.TOKENS, engine.authenticator)
    await http.post("job", json=JOB | {"application": "crm", "jobName": "before"})
    await http.post("job", json=JOB | {"jobName": "a"})
    async with listening(engine, "follow=true&after=0", headers, access=access) as view:
        assert json.loads((await view.next()).data)["subject"] == "shop/a"
        await http.post("job", json=JOB | {"application": "crm", "jobName": "after"})
        await http.post("group", json={"groupName": "of-nobody"})
        await http.post("job", json=JOB | {"jobName": "b"})
        assert [json.loads((await view.next()).data)["subject"] for _ in range(2)] == ["of-nobody", "shop/b"]
        assert b"crm" not in view.raw


@pytest.mark.usefixtures("stepping")
async def test_a_stream_ends_with_its_key_and_tells_nothing_more(
    engine: Engine, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "ASKED_EVERY_S", 0.0)
    headers, access = await shops(engine), Access(Mode.TOKENS, engine.authenticator)
    async with listening(engine, headers=headers, access=access) as view:
        await http.post("job", json=JOB | {"jobName": "a"})
        assert json.loads((await view.next()).data)["subject"] == "shop/a"
        assert (await http.delete("token", params={"name": "shop"})).status_code == 200
        await http.post("job", json=JOB | {"jobName": "b"})
        await asyncio.wait_for(view.ended.wait(), DEADLINE_S)
        assert b"shop/b" not in view.raw


@pytest.mark.usefixtures("stepping")
async def test_one_key_has_so_many_streams_and_no_more(
    engine: Engine, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "STREAMS_MAX", 1)
    headers, app = await shops(engine), create_app(engine, access=Access(Mode.TOKENS, engine.authenticator))
    for _ in range(2):  # a place that is given back is free
        async with listening(engine, headers=headers, app=app):
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE, headers=headers) as client:
                refused = await client.get("events")
            assert (refused.status_code, refused.json()["code"]) == (503, "tooManyStreams")
