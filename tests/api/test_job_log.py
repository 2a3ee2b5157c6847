"""An attempt's output: as it stands, and live; of real processes under the real executor."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import httpx
import pytest

from clickclock.foundation.access import Access, Mode
from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.api import create_app, job_log_search
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.executors import Launch
from clickclock.scheduler.executors.process import ProcessExecutor
from clickclock.scheduler.jobs.trigger import FINISHED, Trigger
from clickclock.scheduler.store import Store
from clickclock.scheduler.store.triggers import Triggers
from clickclock.scheduler.vault import Vault
from tests.api.conftest import BASE

DEADLINE_S = 60
SECRET = "hunter2-hunter2"


@pytest.fixture
async def at_work(tmp_path: Path, store_url: Callable[[str], str]) -> AsyncIterator[Engine]:
    """An engine whose loops run."""
    clock = SystemClock()
    store = await Store.open(store_url("sqlite"))
    executor = ProcessExecutor(
        name="local",
        data_dir=tmp_path,
        node="node-1",
        slots=4,
        log_bytes_max=2**20,
        base_environment={"PATH": "/usr/bin:/bin"},
        clock=clock,
    )
    vault = Vault(None, {"PASSWORD": SECRET})
    engine = Engine(store, clock, {"local": executor}, node="node-1", version="0.1.0", vault=vault)
    await engine.open()
    stopped = asyncio.Event()
    working = asyncio.create_task(engine.run(until=stopped))
    yield engine
    stopped.set()
    await working
    await engine.close(stop_jobs=True)
    await store.close()


@pytest.fixture
async def running(at_work: Engine) -> AsyncIterator[httpx.AsyncClient]:
    """The application over it."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app(at_work)), base_url=BASE) as client:
        yield client


async def _run(http: httpx.AsyncClient, script: str, **more: Any) -> str:
    job = {"application": "a", "jobName": "j", "command": script, "shell": True, **more}
    assert (await http.put("job", json=job)).status_code in {200, 201}
    response = await http.post("jobTrigger", json={"application": "a", "jobName": "j"})
    trigger_id: str = response.json()["trigger"]["triggerId"]
    return trigger_id


async def _events(http: httpx.AsyncClient, trigger_id: str, **headers: str) -> list[dict[str, Any]]:
    """All events of a followed log, until the stream ends."""
    params = {"triggerId": trigger_id, "follow": "true"}
    response = await asyncio.wait_for(http.get("jobLog", params=params, headers=headers), DEADLINE_S)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    events = []
    for block in response.text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if fields:
            events.append({"id": int(fields["id"]), "event": fields["event"], **json.loads(fields["data"])})
    return events


def _text(events: list[dict[str, Any]]) -> str:
    return "".join(each["text"] for each in events if each["event"] == "log")


async def test_a_log_is_followed_to_its_end_with_state_and_exit_code(running: httpx.AsyncClient) -> None:
    events = await _events(running, await _run(running, "echo one; echo zwei ü; exit 3"))
    assert _text(events) == "one\nzwei ü\n"
    end = events[-1]
    assert (end["event"], end["state"], end["exitCode"], end["attempt"]) == ("end", "failed", 3, 1)
    assert end["id"] == len("one\nzwei ü\n".encode())


async def test_what_is_written_between_a_look_at_the_output_and_one_at_the_trigger_is_told(
    running: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The follower is there first; by when it asks how the trigger stands, all is over."""
    is_follower = ContextVar("is_follower", default=False)
    asked, has_looked = 0, asyncio.Event()
    get, start = Triggers.get, ProcessExecutor.start

    async def slow_get(triggers: Triggers, trigger_id: str) -> Trigger:
        nonlocal asked
        asked += is_follower.get()
        trigger = await get(triggers, trigger_id)
        while is_follower.get() and asked > 1 and trigger.state not in FINISHED:
            has_looked.set()
            trigger = await get(triggers, trigger_id)
        return trigger

    async def slow_start(executor: ProcessExecutor, launches: Sequence[Launch]) -> None:
        await has_looked.wait()
        await start(executor, launches)

    monkeypatch.setattr(Triggers, "get", slow_get)
    monkeypatch.setattr(ProcessExecutor, "start", slow_start)
    trigger_id = await _run(running, "printf one")
    is_follower.set(True)
    assert _text(await _events(running, trigger_id)) == "one"


async def test_who_comes_back_gets_only_the_rest(running: httpx.AsyncClient) -> None:
    trigger_id = await _run(running, "printf 0123456789")
    assert _text(await _events(running, trigger_id)) == "0123456789"
    assert _text(await _events(running, trigger_id, **{"last-event-id": "4"})) == "456789"
    for last in ("x", "0" * 20 + "9" * 5000):
        response = await running.get(
            "jobLog", params={"triggerId": trigger_id, "follow": "true"}, headers={"last-event-id": last}
        )
        assert response.status_code == 400


async def test_plain_text_is_the_bytes_as_written_in_parts(running: httpx.AsyncClient) -> None:
    trigger_id = await _run(running, r"printf 'a\377b\000c'")
    assert _text(await _events(running, trigger_id)) == "a\ufffdb\0c"
    response = await running.get("jobLog", params={"triggerId": trigger_id})
    assert response.content == b"a\xffb\0c"
    assert response.headers["content-type"].startswith("text/plain")
    assert response.headers["x-log-complete"] == "true"
    response = await running.get("jobLog", params={"triggerId": trigger_id, "offset": "1", "limit": "2"})
    assert response.content == b"\xffb"
    assert (response.headers["x-next-offset"], response.headers["x-log-complete"]) == ("3", "false")


async def test_of_a_long_output_a_line_says_what_is_left_out_wherever_one_reads(running: httpx.AsyncClient) -> None:
    written = b"".join(b"%099d\n" % line for line in range(50_000)) + b"the error\n"
    trigger_id = await _run(running, "seq -f %099.0f 0 49999; echo the error; exit 3")
    await _until(running, trigger_id, lambda trigger: trigger["state"] == "failed")
    head, tail = await _read(running, trigger_id, 0), await _read(running, trigger_id, len(written) - 10)
    assert head.content == written[: len(head.content)]
    assert (tail.content, tail.headers["x-log-complete"]) == (b"the error\n", "true")
    begin = int(head.headers["x-next-offset"])
    assert (begin, head.headers["x-log-complete"]) == (len(head.content), "false")
    for offset in (begin, begin + 1, begin + 1_000_000):
        response = await _read(running, trigger_id, offset)
        note, rest = response.content[1:].split(b"\n", 1)
        left_out = int(note.removeprefix(b"[clickclock: ").removesuffix(b" bytes of output are left out here]"))
        assert rest == written[offset + left_out :]
        assert (response.headers["x-next-offset"], response.headers["x-log-complete"]) == (str(len(written)), "true")
    events = await _events(running, trigger_id)
    told = head.content.decode() + (await _read(running, trigger_id, begin)).content.decode()
    assert _text(events) == told
    assert [event["id"] for event in events][-1] == len(written)
    resumed = await _events(running, trigger_id, **{"last-event-id": str(begin + 5)})
    assert _text(resumed).endswith("the error\n")


async def _read(http: httpx.AsyncClient, trigger_id: str, offset: int) -> httpx.Response:
    return await http.get("jobLog", params={"triggerId": trigger_id, "offset": str(offset)})


async def test_a_job_may_cut_its_own_output_and_write_without_appending(running: httpx.AsyncClient) -> None:
    """`> /dev/stdout` cuts the file, and writes on from a place of its own."""
    script = "seq 1 300000; exec 3> /dev/stdout; echo anew >&3; seq 1 300000; echo amid >&3; echo the end"
    trigger_id = await _run(running, script)
    await _until(running, trigger_id, lambda trigger: trigger["state"] == "succeeded")
    events = await _events(running, trigger_id)
    assert _text(events).startswith("anew\n")
    assert "bytes of output are left out here" in _text(events)
    assert _text(events).endswith("299999\n300000\nthe end\n")


async def test_a_retry_has_a_log_of_its_own(running: httpx.AsyncClient) -> None:
    script = "echo attempt $CLICKCLOCK_ATTEMPT; test $CLICKCLOCK_ATTEMPT = 2"
    trigger_id = await _run(running, script, maxRetries=1, retryBackoff={"initialSeconds": 0, "maxSeconds": 0})
    first = await _events(running, trigger_id)
    assert _text(first) == "attempt 1\n"
    assert (first[-1]["attemptState"], first[-1]["exitCode"]) == ("failed", 1)
    await _until(running, trigger_id, lambda trigger: trigger["state"] == "succeeded")
    for params, text in (({}, "attempt 2\n"), ({"attempt": "1"}, "attempt 1\n")):
        assert (await running.get("jobLog", params={"triggerId": trigger_id, **params})).text == text
    response = await running.get("jobLog", params={"triggerId": trigger_id, "attempt": "3"})
    assert (response.status_code, response.json()["code"]) == (404, "logNotFound")


async def test_a_trigger_that_never_started_has_an_end_but_no_log(http: httpx.AsyncClient, job: None) -> None:
    call = {"application": "shop", "jobName": "export"}
    trigger_id = (await http.post("jobTrigger", json=call)).json()["trigger"]["triggerId"]
    await http.delete("jobTrigger", params={"triggerId": trigger_id})
    (end,) = await _events(http, trigger_id)
    assert (end["event"], end["state"], end["attemptState"]) == ("end", "cancelled", None)
    response = await http.get("jobLog", params={"triggerId": trigger_id})
    assert (response.status_code, response.json()["code"]) == (404, "logNotFound")
    assert (await http.get("jobLog?triggerId=none")).json()["code"] == "triggerNotFound"
    assert (await http.get("jobLog")).status_code == 400


async def _until(http: httpx.AsyncClient, trigger_id: str, told: Callable[[dict[str, Any]], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not told((await http.get("jobTrigger", params={"triggerId": trigger_id})).json()["triggers"][0]):
            await asyncio.to_thread(lambda: None)


async def test_head_of_a_log_that_is_followed_does_not_wait_for_its_end(running: httpx.AsyncClient) -> None:
    trigger_id = await _run(running, "sleep 600")
    asked = running.head("jobLog", params={"triggerId": trigger_id, "follow": "true"})
    response = await asyncio.wait_for(asked, DEADLINE_S)
    assert (response.status_code, response.headers["content-type"][:17]) == (200, "text/event-stream")


async def _matches(http: httpx.AsyncClient, trigger_id: str, text: str, **query: Any) -> dict[str, Any]:
    response = await http.get("jobLogSearch", params={"triggerId": trigger_id, "text": text, **query})
    assert response.status_code == 200, response.text
    found = response.json()["logMatches"]
    assert isinstance(found, dict)
    return found


async def test_a_text_is_found_where_it_is_however_the_pieces_are_cut(
    running: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger_id = await _run(
        running, "i=0; while [ $i -lt 50 ]; do echo row $i; i=$((i+1)); done; echo the End; echo Über"
    )
    await _events(running, trigger_id)
    output = (await running.get("jobLog", params={"triggerId": trigger_id})).content
    end = output.index(b"the End")
    for size in (1, 7, 100, 262_144):
        monkeypatch.setattr(job_log_search, "PIECE_BYTES", size)
        found = await _matches(running, trigger_id, "THE end")
        assert found["matches"] == [{"offset": end, "line": "the End" if size > 20 else found["matches"][0]["line"]}]
        assert found["atEnd"] is True
    rows = await _matches(running, trigger_id, "row 4", limit=3)
    assert ([each["line"] for each in rows["matches"]], rows["atEnd"]) == (["row 4", "row 40", "row 41"], False)
    rest = await _matches(running, trigger_id, "row 4", offset=rows["nextOffset"])
    assert [each["line"] for each in rest["matches"]] == [f"row {n}" for n in range(42, 50)]
    assert output[rest["matches"][0]["offset"] :].startswith(b"row 42")
    assert [each["line"] for each in (await _matches(running, trigger_id, "Über"))["matches"]] == ["Über"]
    monkeypatch.setattr(job_log_search, "SCANNED_BYTES_MAX", 100)
    monkeypatch.setattr(job_log_search, "PIECE_BYTES", 50)
    part = await _matches(running, trigger_id, "the end")
    assert (part["matches"], part["atEnd"], part["nextOffset"] < end) == ([], False, True)
    monkeypatch.undo()
    gone = await running.get("jobLogSearch", params={"triggerId": trigger_id, "text": "x", "attempt": 9})
    assert (gone.status_code, gone.json()["code"]) == (404, "logNotFound")
    refused = await running.get("jobLogSearch", params={"text": "", "limit": 0})
    assert [each["field"] for each in refused.json()["errors"]] == ["triggerId", "text", "limit"]


async def test_a_search_finds_no_secret_and_what_stands_beside_one(running: httpx.AsyncClient) -> None:
    script = "seq 3000; echo 'the password is hunter2''-hunter2, said twice'; seq 3000; echo far away"
    assert SECRET not in script
    trigger_id = await _run(running, script)
    await _events(running, trigger_id)
    for guess in (SECRET, SECRET[:9], SECRET[-9:]):
        assert (await _matches(running, trigger_id, guess))["matches"] == []
    (beside,) = (await _matches(running, trigger_id, "said twice"))["matches"]
    assert beside["line"] == "the password is ***, said twice"
    part = await running.get("jobLog", params={"triggerId": trigger_id, "offset": beside["offset"], "limit": 8192})
    assert b"said twice" in part.content
    (away,) = (await _matches(running, trigger_id, "far away"))["matches"]
    part = await running.get("jobLog", params={"triggerId": trigger_id, "offset": away["offset"]})
    assert part.content == b"far away\n", "exact again behind it"


async def _in_pieces(http: httpx.AsyncClient, trigger_id: str, size: int) -> bytes:
    found, offset, is_complete = b"", 0, False
    while not is_complete:
        piece = await http.get("jobLog", params={"triggerId": trigger_id, "offset": offset, "limit": size})
        found, offset = found + piece.content, int(piece.headers["x-next-offset"])
        is_complete = piece.headers["x-log-complete"] == "true"
    return found


async def test_an_attempt_acts_with_its_token_in_its_application_and_its_output_does_not_show_it(
    at_work: Engine, running: httpx.AsyncClient, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "token")
    os.mkfifo(tmp_path / "go")
    script = "echo begin; T=$CLICKCLOCK_TOKEN; printf %.20s $T; printf %s $T > token;"
    script += "printf '%s\\n' ${T#????????????????????};"
    script += 'echo "said $T twice $T"; read now < go'
    trigger_id = await _run(running, script, token="operator", workingDirectory=str(tmp_path))
    reading = asyncio.create_task(_events(running, trigger_id))
    token = await asyncio.wait_for(asyncio.to_thread((tmp_path / "token").read_text), DEADLINE_S)
    app = create_app(at_work, access=Access(Mode.TOKENS, at_work.authenticator))
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE, headers=headers) as attempt:
        who = (await attempt.get("whoami")).json()["whoami"]
        assert (who["kind"], who["name"]) == ("attempt", "a/j")
        assert who["grants"] == [{"role": "operator", "applications": ["a"], "clients": []}]
        assert (await attempt.get("jobTrigger", params={"triggerId": trigger_id})).json()["triggers"] != []
        job = {"application": "a", "jobName": "j", "command": "id"}
        for refused in (attempt.put("job", json=job), attempt.post("session"), attempt.post("signInLink")):
            assert (await refused).json()["code"] == "forbidden"
        await asyncio.to_thread((tmp_path / "go").write_text, "now\n")
        assert _text(await reading).splitlines() == ["begin", "***", "said *** twice ***"]
        at_work.authenticator.forget()  # else what was known a moment ago counts, for two seconds
        ended = await attempt.get("whoami")
        assert (ended.status_code, "whose attempt has ended" in ended.json()["message"]) == (401, True)
    for size in (1, 7, 60, 10_000):
        assert await _in_pieces(running, trigger_id, size) == b"begin\n***\nsaid *** twice ***\n", size
