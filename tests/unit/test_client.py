"""The client by itself: streams however they are cut, errors whatever was answered. No service, no network."""

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.client import (
    AttemptEnd,
    Client,
    Conflict,
    Invalid,
    LogText,
    NotFound,
    Refused,
    Unavailable,
    Unfinished,
    Unreachable,
)
from clickclock.client.connection import Connection
from clickclock.client.event_stream import Event, EventParser
from clickclock.foundation.contexts import Context
from clickclock.foundation.errors import ConfigurationError, Fault, Malformed
from clickclock.foundation.strict_json import StrictJson

STREAM = (
    b": a comment\n\n"
    b"id: 5\nevent: log\ndata: first\ndata:second\n\n"
    b"event: log\r\ndata: \xe2\x80\xa8 is no line end\r\n\r\n"
    b"retry: 1000\n\n"
    b"data\n\n"
    b"id: 9\nevent: end\ndata: {}\n\n"
    b"data: cut off before its empty line\n"
)
EVENTS = [
    Event("log", "first\nsecond", "5"),
    Event("log", "\u2028 is no line end", "5"),
    Event("message", "", "5"),
    Event("end", "{}", "9"),
]


def answering(answer: Callable[[httpx.Request], httpx.Response]) -> Client:
    """A client whose other end is a function."""
    return Client("http://service.test", transport=httpx.MockTransport(answer))


@pytest.mark.parametrize("end", [{"state": "sent", "lastError": None}, {"state": "pending", "lastError": "No."}])
def test_a_test_of_a_target_waits_until_it_was_told_or_could_not_be(end: dict[str, Any]) -> None:
    made = {"notificationId": "n-1", "state": "pending", "lastError": None}
    answers: Iterator[dict[str, Any]] = iter(
        [{"notification": made}, {"notifications": [made]}, {"notifications": [{**made, **end}]}]
    )
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.method)
        return httpx.Response(200, json={"status": "success", **next(answers)})

    with answering(answer) as client:
        assert client.test_target("ops", wait_s=60)["notification"] == {**made, **end}
    assert seen == ["POST", "GET", "GET"]


def test_a_stream_becomes_its_events() -> None:
    assert EventParser().feed(STREAM) == EVENTS


@given(st.lists(st.integers(0, len(STREAM))))
def test_a_stream_may_be_cut_anywhere(cuts: list[int]) -> None:
    parser = EventParser()
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in itertools.pairwise(places)]
    assert [event for piece in pieces for event in parser.feed(piece)] == EVENTS


@given(st.binary())
def test_no_stream_breaks_the_parser(noise: bytes) -> None:
    EventParser().feed(noise)


@pytest.mark.parametrize(
    "address", ["http://service.test", "http://service.test/", "http://service.test/schedulerService/"]
)
def test_the_address_may_have_the_base_path_or_not(address: str) -> None:
    assert Connection(Context(address)).base_url == "http://service.test/schedulerService"


def test_filters_that_are_none_are_not_sent_and_truth_is_lower_case() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert dict(request.url.params) == {"application": "a b", "jobName": "j", "force": "true"}
        assert request.url.path == "/schedulerService/job"
        return httpx.Response(200, json={"status": "success"})

    client = answering(answer)
    assert client.delete_job("a b", "j", force=True) == {"status": "success"}


def test_a_refusal_carries_everything_that_the_service_said() -> None:
    body = {
        "status": "error",
        "code": "invalid",
        "message": "Mend the named fields.",
        "errors": [{"field": "expression", "message": "No."}, {"field": "kind", "message": "No."}],
        "requestId": "r-1",
    }
    with pytest.raises(Refused, match=r"Mend the named fields\.") as caught:
        answering(lambda _: httpx.Response(422, json=body)).create_schedule({})
    refused = caught.value
    assert (refused.status, refused.code, refused.request_id) == (422, "invalid", "r-1")
    assert [fault.field for fault in refused.faults] == ["expression", "kind"]


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>Welcome to nginx!</html>"),
        httpx.Response(502, text="<html>Bad gateway</html>"),
        httpx.Response(200, json=["something else"]),
    ],
)
def test_an_answer_of_another_program_is_named_as_such(answer: httpx.Response) -> None:
    with pytest.raises(Refused, match="check the address") as caught:
        answering(lambda _: answer).list_jobs()
    assert caught.value.code == "notTheScheduler"


def test_nobody_there_is_said_in_a_sentence_with_what_to_do() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("Connection refused")

    with pytest.raises(Unreachable, match=r"service\.test.*Connection refused.*clickclock serve"):
        answering(answer).cluster()


def test_the_collector_is_named_where_it_is_the_one_that_does_not_answer() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("Connection refused")

    client = Client(click_url="http://clicks.test", transport=httpx.MockTransport(answer))
    with pytest.raises(Unreachable, match=r"clicks\.test/aclick does not answer"):
        client.register_click(client_id="shop-1")


def test_a_password_in_an_address_is_sent_and_never_told() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(401)

    transport = httpx.MockTransport(answer)
    with Client("http://me:hush@service.test", click_url="http://hush@clicks.test", transport=transport) as client:
        for call in (client.list_jobs, client.report, client.register_click, lambda: next(client.follow_events())):
            with pytest.raises(Refused) as caught:
                call()
            assert "hush" not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"
    assert "hush" not in str([each.url for each in asked])
    basic = [each.headers["authorization"] for each in asked]
    assert basic == ["Basic bWU6aHVzaA==", "Basic bWU6aHVzaA==", "Basic aHVzaDo=", "Basic bWU6aHVzaA=="]


def test_what_a_proxy_wants_is_sent_to_its_origin_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLICKCLOCK_TOKEN", "of-environment")
    asked: list[httpx.Headers] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers)
        return httpx.Response(200, json={"status": "success", "jobs": []})

    transport = httpx.MockTransport(answer)
    for terms in ({}, {"token": "mine"}, {"token": ""}, {"token": "mine", "headers": {"AUTHORIZATION": "Other x"}}):
        with Client("http://service.test", click_url="http://clicks.test", transport=transport, **terms) as client:
            client.list_jobs()
            client.register_click()
    sent = [each.get("authorization") for each in asked]
    assert sent == ["Bearer of-environment", None, "Bearer mine", None, None, None, "Other x", None]


def test_a_token_of_orders_goes_before_that_of_the_proxy() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"status": "success", "sent": request.headers.get_list("authorization")})

    one = "http://one.test"
    with Client(one, click_url=f"{one}/c", token="proxy", transport=httpx.MockTransport(answer)) as client:
        assert client.send_orders([], token="orders")["sent"] == ["Bearer orders"]


@pytest.mark.parametrize("headers", [{"X One": "hush"}, {"X": "hush\nY: z"}, {"X": "hush\u00fc"}, {"": "hush"}])
def test_a_header_that_cannot_be_sent_is_refused_without_its_value(headers: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Client(headers=headers)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("proxy", ["http://me:hu/sh@proxy.test", "socks9://me:hush@proxy.test"])
def test_a_proxy_that_cannot_be_used_is_said_without_its_password(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(Unreachable, match="ALL_PROXY") as caught:
        Client("http://service.test")
    assert caught.value.__suppress_context__
    assert "hu" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "http://[::1",
        "http://service.test:x",
        "http://service.test:70000",
        "http://service..test",
        f"http://{'a' * 64}.test",
        "http://\u2603.test",
        "http://service.test/\n/",
    ],
)
def test_what_is_no_address_is_said_in_a_sentence(address: str) -> None:
    with pytest.raises(Unreachable, match="Check the address"):
        Client(address)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number_in_json_is_refused_by_the_service(number: float) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["Content-Type"] == "application/json"
        with pytest.raises(Malformed):
            StrictJson().read(request.content)
        return httpx.Response(400, json={"status": "error", "code": "malformed", "message": "No number."})

    with pytest.raises(Invalid, match="No number"):
        answering(answer).silence(number, "me", application="shop")


def test_a_change_keeps_the_other_fields_and_names_the_version_that_it_knows() -> None:
    job = {"application": "a", "jobName": "j", "command": "true", "priority": 70, "version": 3, "createdAt": "…"}
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"status": "success", "jobs": [job], "job": job})

    answering(answer).change_job("a", "j", {"enabled": False})
    assert sent[-1].headers["If-Match"] == '"3"'
    assert json.loads(sent[-1].content) == {**job, "enabled": False}


def test_a_change_of_what_is_not_there_is_refused() -> None:
    client = answering(lambda _: httpx.Response(200, json={"status": "success", "groups": []}))
    with pytest.raises(Refused, match="no group night") as caught:
        client.change_group("night", {"paused": True})
    assert caught.value.code == "groupNotFound"


@pytest.mark.parametrize(
    ("method", "words", "field"),
    [
        ("change_job", ("a", "j", {"jobName": "other"}), "jobName"),
        ("change_job", ("a", "j", {"application": "other", "jobName": "j"}), "application"),
        ("change_group", ("g", {"groupName": "other"}), "groupName"),
        ("change_calendar", ("c", {"calendarName": "other"}), "calendarName"),
        ("update_schedule", ("s", {"scheduleId": "other"}), "scheduleId"),
        ("change_backfill", ("b", {"backfillId": "other"}), "backfillId"),
    ],
)
def test_a_change_that_names_another_thing_is_refused_and_written_nowhere(
    method: str, words: tuple[Any, ...], field: str
) -> None:
    thing = {"application": "a", "jobName": "j", "groupName": "g", "calendarName": "c", "version": 1}
    lists = {key: [thing] for key in ("jobs", "groups", "calendars")}

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.method == "GET"
        return httpx.Response(200, json={"status": "success", **lists})

    with pytest.raises(Invalid) as refused:
        getattr(answering(answer), method)(*words)
    assert [fault.field for fault in refused.value.faults] == [field]


def test_a_backfill_is_of_the_schedule_that_was_named() -> None:
    client = answering(lambda _: httpx.Response(201, json={"status": "success"}))
    with pytest.raises(Invalid, match="names something else"):
        client.start_backfill("s", scheduleId="other")


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("change_job", ("a", None, {"enabled": False})),
        ("change_job", (None, "j", {"enabled": False})),
        ("change_group", (None, {"paused": True})),
        ("change_calendar", (None, {"excludeDates": []})),
        ("wait", (None,)),
        ("schedule", (None,)),
        ("backfill", (None,)),
    ],
)
def test_without_a_name_nothing_is_taken_for_what_was_meant(method: str, words: tuple[Any, ...]) -> None:
    thing = {"state": "failed", "version": 1}
    lists = {key: [thing] for key in ("jobs", "groups", "calendars", "triggers", "schedules", "backfills")}
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.method)
        return httpx.Response(200, json={"status": "success", **lists})

    with pytest.raises(NotFound, match=r"None.*check the name"):
        getattr(answering(answer), method)(*words)
    assert sent == ["GET"]


class _Broken(httpx.SyncByteStream):
    """Sends what it has and then breaks, as a connection to a service that was killed."""

    def __iter__(self):  # type: ignore[no-untyped-def]
        yield b'id: 6\nevent: log\ndata: {"text": "first\\n", "offset": 6}\n\n'
        raise httpx.ReadError("connection reset")


def test_a_followed_log_goes_on_where_its_connection_broke() -> None:
    offsets: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        offsets.append(request.url.params["offset"])
        if len(offsets) == 1:
            return httpx.Response(200, stream=_Broken())
        rest = (
            b'id: 13\nevent: log\ndata: {"text": "second\\n", "offset": 13}\n\n'
            b'event: end\ndata: {"state": "failed", "attemptState": "failed", "exitCode": 3}\n\n'
        )
        return httpx.Response(200, content=rest)

    assert list(answering(answer).follow_log("t", 1)) == [
        LogText(1, "first\n", 6),
        LogText(1, "second\n", 13),
        AttemptEnd(1, "failed", 3),
    ]
    assert offsets == ["0", "6"]


def test_a_followed_trigger_shows_every_attempt_and_ends_with_it() -> None:
    states = iter(
        [
            {"attempt": 1, "state": "queued"},
            {"attempt": 2, "state": "running"},
            {"attempt": 2, "state": "succeeded"},
        ]
    )

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/jobTrigger"):
            return httpx.Response(200, json={"status": "success", "triggers": [next(states)]})
        ended = {"attemptState": "failed" if request.url.params["attempt"] == "1" else "succeeded", "exitCode": None}
        return httpx.Response(200, content=f"event: end\ndata: {json.dumps(ended)}\n\n".encode())

    assert list(answering(answer).follow_trigger("t")) == [
        AttemptEnd(1, "failed", None),
        AttemptEnd(2, "succeeded", None),
    ]


def test_a_log_is_read_to_its_end_in_pieces() -> None:
    output = b"first \xe2\x80\xa6 and last\n"

    def answer(request: httpx.Request) -> httpx.Response:
        offset = int(request.url.params["offset"])
        piece = output[offset : offset + 7]
        return httpx.Response(200, content=piece, headers={"X-Next-Offset": str(offset + len(piece))})

    assert b"".join(answering(answer).log("t")) == output
    assert b"".join(answering(answer).log("t", offset=6)) == output[6:]


def _breaking(times: int, sent: list[httpx.Request], error: type[httpx.TransportError], answer: object) -> Client:
    """A client whose connection breaks so many times, and then answers."""

    def respond(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        if len(sent) <= times:
            raise error("broken", request=request)
        return httpx.Response(200, json=answer)

    return answering(respond)


def test_what_can_be_repeated_is_sent_again_when_its_connection_breaks() -> None:
    sent: list[httpx.Request] = []
    trigger = {"triggerId": "t", "state": "queued"}
    client = _breaking(2, sent, httpx.ReadError, {"status": "success", "trigger": trigger})
    assert client.trigger("shop", "export") == trigger
    keys = {json.loads(request.content)["idempotencyKey"] for request in sent}
    assert (len(sent), len(keys)) == (3, 1)


@pytest.mark.parametrize(
    ("error", "times"), [(httpx.ReadError, 1), (httpx.RemoteProtocolError, 1), (httpx.ConnectError, 3)]
)
def test_what_could_be_done_twice_is_sent_again_only_if_it_never_arrived(
    error: type[httpx.TransportError], times: int
) -> None:
    sent: list[httpx.Request] = []
    client = _breaking(9, sent, error, {"status": "success"})
    with pytest.raises(Unreachable):
        client.delete_schedule("s")
    assert len(sent) == times


def test_an_answer_that_takes_too_long_is_not_asked_for_again() -> None:
    sent: list[httpx.Request] = []
    with pytest.raises(Unreachable):
        _breaking(9, sent, httpx.ReadTimeout, {}).list_jobs()
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, Invalid), (422, Invalid), (404, NotFound), (409, Conflict), (503, Unavailable), (403, Refused)],
)
def test_a_refusal_is_of_the_kind_that_its_status_says(status: int, kind: type[Refused]) -> None:
    body = {"status": "error", "code": "c", "message": "No.", "errors": [], "requestId": "r"}
    with pytest.raises(Refused) as caught:
        answering(lambda _: httpx.Response(status, json=body)).cluster()
    assert type(caught.value) is kind


def test_waiting_ends_when_the_trigger_has_finished() -> None:
    states = iter(["queued", "running", "failed"])

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"status": "success", "triggers": [{"state": next(states)}]})

    assert answering(answer).wait("t") == {"state": "failed"}


GONE = httpx.ConnectError("Connection refused")
STARTING = httpx.Response(503, json={"status": "error", "code": "storeUnreachable", "message": "The store is away."})


@pytest.mark.parametrize("answer", [GONE, STARTING])
def test_waiting_and_following_outlive_a_restart_of_the_service(answer: httpx.Response | httpx.ConnectError) -> None:
    def steps(states: list[Any]) -> Client:
        left = iter(states)

        def step(request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/jobLog"):
                return httpx.Response(200, content=b'event: end\ndata: {"attemptState": "failed", "exitCode": 1}\n\n')
            state = next(left)
            if isinstance(state, httpx.ConnectError):
                raise state
            if isinstance(state, httpx.Response):
                return state
            return httpx.Response(200, json={"status": "success", "triggers": [{"attempt": 1, "state": state}]})

        return Client("http://service.test", transport=httpx.MockTransport(step), retries=0)

    restarted = ["running", answer, answer, "succeeded"]
    assert steps(restarted).wait("t")["state"] == "succeeded"
    assert list(steps(restarted).follow_trigger("t")) == [AttemptEnd(1, "failed", 1)]


@pytest.mark.parametrize(("answer", "error"), [(GONE, Unreachable), (STARTING, Unavailable)])
def test_who_never_answered_is_not_waited_for(
    answer: httpx.Response | httpx.ConnectError, error: type[Exception]
) -> None:
    asked: list[str] = []

    def silence(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        if isinstance(answer, httpx.ConnectError):
            raise answer
        return answer

    client = Client("http://service.test", transport=httpx.MockTransport(silence), retries=0)
    with pytest.raises(error):
        client.wait("t")
    with pytest.raises(error):
        next(client.follow_events())
    assert len(asked) == 2


def test_waiting_too_long_says_so_and_has_the_trigger() -> None:
    body = {"status": "success", "triggers": [{"state": "running"}]}
    with pytest.raises(Unfinished) as caught:
        answering(lambda _: httpx.Response(200, json=body)).wait("t", timeout_s=0.01)
    assert caught.value.trigger == {"state": "running"}


def test_a_list_is_read_page_after_page_and_only_as_far_as_it_is_wanted() -> None:
    asked: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        cursor = request.url.params.get("cursor")
        asked.append(cursor)
        number = int(cursor or 0)
        following = str(number + 1) if number < 2 else None
        return httpx.Response(
            200, json={"status": "success", "jobs": [{"n": number}, {"n": number}], "nextCursor": following}
        )

    client = answering(answer)
    assert next(client.jobs(application="shop")) == {"n": 0}
    assert asked == [None]
    assert [job["n"] for job in client.jobs()] == [0, 0, 1, 1, 2, 2]


def test_an_export_is_one_declaration_whatever_its_pages_share() -> None:
    pages = {
        None: ({"groups": [{"groupName": "g"}], "calendars": [{"n": 1}], "jobs": [{"jobName": "a"}]}, "1"),
        "1": (
            {"groups": [{"groupName": "g"}, {"groupName": "h"}], "calendars": [{"n": 1}], "jobs": [{"jobName": "b"}]},
            None,
        ),
    }

    def answer(request: httpx.Request) -> httpx.Response:
        declaration, following = pages[request.url.params.get("cursor")]
        return httpx.Response(200, json={"status": "success", "declaration": declaration, "nextCursor": following})

    assert answering(answer).export("shop") == {
        "groups": [{"groupName": "g"}, {"groupName": "h"}],
        "calendars": [{"n": 1}],
        "jobs": [{"jobName": "a"}, {"jobName": "b"}],
    }


def test_clicks_and_orders_go_to_the_collector() -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        if request.url.path == "/aclick":
            return httpx.Response(204)
        return httpx.Response(202, json={"status": "success", "accepted": 1, "rejected": 0, "orders": []})

    client = Client(click_url="http://clicks.test/", transport=httpx.MockTransport(answer))
    client.register_click(client_id="shop-1", atag="a b")
    assert client.send_orders([{"order_id": "A-1"}], token="secret")["accepted"] == 1
    assert str(sent[0].url) == "http://clicks.test/aclick?client_id=shop-1&atag=a+b"
    assert str(sent[1].url) == "http://clicks.test/orders"
    assert sent[1].headers["Authorization"] == "Bearer secret"


def test_orders_of_which_none_is_taken_are_invalid_and_every_fault_is_named() -> None:
    fault = {"field": "orders[1].amount", "message": "This is required; give it.", "code": "missing"}
    told = {"status": "refused", "code": "invalid", "message": "…", "errors": [fault], "requestId": "r", "orders": []}
    client = Client(transport=httpx.MockTransport(lambda _: httpx.Response(422, json=told)))
    with pytest.raises(Invalid) as refused:
        client.send_orders([{}, {}])
    assert (refused.value.faults, refused.value.request_id) == ([Fault("orders[1].amount", fault["message"])], "r")
