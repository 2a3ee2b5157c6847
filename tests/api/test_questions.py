"""Questions of attribution over HTTP: answered in a process of its own, whatever becomes of that process."""

import asyncio
import csv
import io
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from starlette.types import Message

from clickclock.app.comparing import compare
from clickclock.app.desk import open_desk
from clickclock.app.lake import docket_of
from clickclock.app.proving import prove
from clickclock.app.reporting import report as reported
from clickclock.attribution.agents.prover import NoOrder
from clickclock.attribution.api import diff, order_proof, query_process, report, versions
from clickclock.attribution.api.application import create_app
from clickclock.attribution.api.query_context import Desk
from clickclock.attribution.api.query_process import Asker, TooManyQuestions
from clickclock.attribution.api.query_worker import ANSWERS
from clickclock.attribution.api.questions import READERS
from clickclock.attribution.erasing.erasure import Identifier
from clickclock.attribution.errors import VersionGone
from clickclock.attribution.lake import Lake
from clickclock.attribution.reporting.report import NoVersion
from clickclock.foundation.config import Config
from tests.credited import START_MS, attributor, click, load, order
from tests.house.tree import ROOT
from tests.lakes import SmallLake, credited, small_desk
from tests.shop import asked

DEADLINE_S = 60
"""To start a process, on a busy machine."""


def die() -> None:
    os._exit(3)


def hang() -> None:
    signal.pause()


def fail() -> None:
    raise RuntimeError("this is told to nobody")


@pytest.fixture(autouse=True)
def _found_by_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds this file, from which some tests hand functions over."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(data_dir=tmp_path)


@pytest.fixture
def small(config: Config) -> SmallLake:
    return SmallLake(Path(config.lake))


@pytest.fixture
def desk(config: Config) -> Desk:
    """What the process would answer from, here."""
    return small_desk(config)


@pytest.fixture
async def stopping() -> AsyncIterator[asyncio.Event]:
    """Set at the end, so that no process outlives its test."""
    stopping = asyncio.Event()
    yield stopping
    stopping.set()
    async with asyncio.timeout(DEADLINE_S):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})


@pytest.fixture
def serve(tmp_path: Path, stopping: asyncio.Event) -> Callable[[Callable[[], Any]], httpx.AsyncClient]:
    """The application over a desk."""

    def client(desk: Callable[[], Any]) -> httpx.AsyncClient:
        app = create_app(tmp_path / "journal", desk=desk, stopping=stopping)
        transport = httpx.ASGITransport(app)
        return httpx.AsyncClient(transport=transport, base_url="http://localhost/attribution/", timeout=DEADLINE_S)

    return client


@pytest.fixture
async def http(
    config: Config, serve: Callable[[Callable[[], Any]], httpx.AsyncClient]
) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(partial(open_desk, config)) as client:
        yield client


async def test_a_report_is_json_csv_or_parquet(http: httpx.AsyncClient, small: SmallLake) -> None:
    small.fill()
    query = "report?by=channel&model=linear&currency=EUR&figures=clicks,credit,roas"
    answer = await http.get(query)
    assert answer.status_code == 200, answer.text
    told = answer.json()["report"]
    assert (answer.json()["status"], told["version"], told["models"]) == ("success", 1, ["linear"])
    assert told["rows"][0] == {
        "channel": "google",
        "model": "linear",
        "currency": "EUR",
        "clicks": 3,
        "credit": "25.00",
        "roas": "4.0000",
    }
    as_csv = await http.get(f"{query}&format=csv")
    assert as_csv.headers["content-type"].startswith("text/csv")
    assert as_csv.headers["content-disposition"] == 'attachment; filename="report-1.csv"'
    assert list(csv.reader(io.StringIO(as_csv.text)))[1] == ["google", "linear", "EUR", "3", "25.00", "4.0000"]
    assert (await http.get(f"{query}&format=csv&raw=true")).content == as_csv.content
    for refused in ("raw=true", "format=csv&raw=yes"):
        assert [each["field"] for each in (await http.get(f"{query}&{refused}")).json()["errors"]] == ["raw"]
    as_parquet = await http.get(f"{query}&format=parquet")
    assert pq.read_table(io.BytesIO(as_parquet.content)).column("clicks").to_pylist() == [3, 2, 0]


async def test_a_question_that_has_waited_too_long_is_refused(stopping: asyncio.Event) -> None:
    asker = Asker(hang, stopping, limit_s=0.05)
    await asker._turn.acquire()
    with pytest.raises(TooManyQuestions, match=r"waited 0.05 s"):
        await asker.ask("report", None)
    stopping.set()


def test_before_the_first_run_a_report_says_what_to_run_and_there_are_no_versions(desk: Desk) -> None:
    with pytest.raises(NoVersion, match="clickclock attribution run"):
        report.answer(desk, report.read({}))
    assert json.loads(versions.answer(desk, versions.Wanted(10)).body) == {"status": "success", "versions": []}


def test_a_report_of_nothing_is_no_error(desk: Desk, small: SmallLake) -> None:
    small.fill()
    told = json.loads(report.answer(desk, report.read({"clientId": ["nobody"]})).body)["report"]
    assert (told["rows"], len(told["notes"])) == ([], 1)


def test_versions_are_told_latest_first(desk: Desk, small: SmallLake) -> None:
    small.fill()
    small.publish([])
    told = json.loads(versions.answer(desk, versions.read({})).body)["versions"]
    assert [each["version"] for each in told] == [2, 1]
    assert told[1]["settings"]["policies"]["clients"]["shop"]["time_zone"] == "Europe/Berlin"
    assert told[1]["createdAt"] == "2026-11-20T00:00:00.000Z"
    latest = json.loads(versions.answer(desk, versions.read({"limit": ["1"]})).body)["versions"]
    assert [each["version"] for each in latest] == [2]


def test_a_proof_of_an_order_that_is_not_there_is_not_found(desk: Desk, small: SmallLake) -> None:
    small.fill()
    with pytest.raises(NoOrder):
        order_proof.answer(desk, order_proof.read({"clientId": ["shop"], "orderId": ["Z"]}))


async def test_what_differs_between_two_versions_is_told_with_its_causes(
    http: httpx.AsyncClient, small: SmallLake
) -> None:
    small.fill()
    small.publish([*credited("E", 300, "EUR", [(1, 300, 1.0, 300, 1.0)]), *credited("F", 100, "EUR", [])])
    answer = await http.get("diff?from=1&to=2&clientId=shop&limit=1")
    assert answer.status_code == 200, answer.text
    told = answer.json()["diff"]
    assert (told["from"], told["to"], told["differing"], told["new"], told["gone"]) == (1, 2, 2, 2, 0)
    assert (told["models"], told["settings"]) == ({"added": [], "removed": []}, [])
    assert told["causes"] == {"new_order": 1}
    (order,) = told["orders"]
    assert (order["orderId"], order["before"], order["causes"][0]["cause"]) == ("E", None, "new_order")
    assert order["after"] == {
        "month": "2026-11",
        "currency": "EUR",
        "amount": "3.00",
        "refunded": "0.00",
        "touchpoints": ["t-1"],
        "credits": {"last": {"google": "3.00"}, "linear": {"google": "3.00"}},
    }


def test_a_difference_from_a_version_that_is_not_there_is_not_found(desk: Desk, small: SmallLake) -> None:
    small.fill()
    with pytest.raises(NoVersion):
        diff.answer(desk, diff.read({"from": ["1"], "to": ["2"]}))


@pytest.mark.parametrize(
    ("question", "fields"),
    [
        ("report?by=colour&from=2026-11-03&to=2026-11-02&modell=last", {"by", "from", "modell"}),
        ("report?format=xml&version=-1&figures=profit&currency=E", {"format", "version", "figures", "currency"}),
        ("report?clientId=%ff", {""}),
        ("versions?limit=0&from=1", {"limit", "from"}),
        ("order?orderId=&version=x", {"clientId", "orderId", "version"}),
        ("diff?to=0&limit=10001&clientId=", {"from", "to", "limit", "clientId"}),
        ("diff?from=1&to=2&limit=000000000099999", {"limit"}),
    ],
)
async def test_what_cannot_be_meant_is_refused_with_every_fault_before_anybody_is_asked(
    serve: Callable[[Callable[[], Any]], httpx.AsyncClient], question: str, fields: set[str]
) -> None:
    async with serve(die) as http:
        answer = await http.get(question)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
    assert {fault["field"] for fault in answer.json()["errors"]} == fields
    assert all(fault["message"].endswith(".") for fault in answer.json()["errors"])


async def test_an_error_comes_back_with_its_faults(http: httpx.AsyncClient, small: SmallLake) -> None:
    small.fill()
    answer = await http.get("report?model=markov")
    assert answer.status_code == 400
    assert answer.json()["errors"] == [
        {"field": "model", "message": "There is no model 'markov' in this version; there are: last, linear."}
    ]


def _delete(paths: list[str]) -> None:
    for path in paths:
        Path(path).unlink()


@pytest.mark.parametrize(
    ("question", "command"),
    [
        ("report", lambda config: reported(config, report.read({}))),
        ("order?clientId=shop&orderId=A", lambda config: prove(config, "shop", "A")),
        ("diff?from=1&to=2", lambda config: compare(config, 1, 2, None, 10)),
    ],
)
async def test_what_an_unfinished_erasure_keeps_from_being_read_says_how_to_finish_it(
    question: str, command: Callable[[Config], Any], config: Config, http: httpx.AsyncClient
) -> None:
    lake = Lake(config.lake)
    load(lake, click(1, START_MS, cli_ubid="a"), order(2, "A", START_MS + 1000, cli_ubid="a"))
    for _ in range(2):
        await attributor(lake, config.data_dir).step(full=True)
    await asyncio.to_thread(_delete, lake.uris("credits", 1) + lake.uris("credits"))
    assert "ask for a later one" in (await http.get(question)).json()["message"]
    docket_of(config).write(asked(Identifier("cli_ubid", "somebody")))
    answer = await http.get(question)
    assert (answer.status_code, answer.json()["code"]) == (404, "versionGone")
    assert "finish it with clickclock attribution erase" in answer.json()["message"]
    with pytest.raises(VersionGone, match="finish it with clickclock attribution erase"):
        command(config)


async def test_it_is_only_for_reading_and_a_head_asks_nobody(
    serve: Callable[[Callable[[], Any]], httpx.AsyncClient],
) -> None:
    async with serve(die) as http:
        assert (await http.post("report")).headers["allow"] == "GET, HEAD"
        head = await http.head("report")
        assert (head.status_code, head.content) == (200, b"")
        assert "content-length" not in head.headers  # nobody asks how long the answer would be


async def test_a_process_that_dies_is_a_503_and_another_one_answers(
    config: Config, small: SmallLake, tmp_path: Path, serve: Callable[[Callable[[], Any]], httpx.AsyncClient]
) -> None:
    small.fill()
    async with serve(partial(open_once_dead, config, tmp_path / "died")) as http:
        answer = await http.get("versions")
        assert (answer.status_code, answer.json()["code"]) == (503, "answererEnded")
        assert answer.headers["retry-after"] == "1"
        assert (await http.get("versions")).status_code == 200


def open_once_dead(config: Config, mark: Path) -> Any:
    if not mark.exists():
        mark.touch()
        die()
    return open_desk(config)


async def test_what_goes_wrong_inside_is_told_to_the_log_alone(
    serve: Callable[[Callable[[], Any]], httpx.AsyncClient],
) -> None:
    async with serve(fail) as http:
        answer = await http.get("versions")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "nobody" not in answer.text


async def test_a_question_that_takes_too_long_is_given_up(stopping: asyncio.Event) -> None:
    asker = Asker(hang, stopping, limit_s=0.01)
    with pytest.raises(query_process.QuestionTooLong):
        await asker.ask("versions", versions.Wanted(1))


async def test_so_many_may_wait_and_no_more(stopping: asyncio.Event) -> None:
    asker = Asker(hang, stopping)
    waiting = [asyncio.create_task(asker.ask("versions", versions.Wanted(1))) for _ in range(query_process.WAITING_MAX)]
    await asyncio.wait(waiting, timeout=0)
    with pytest.raises(query_process.TooManyQuestions):
        await asker.ask("versions", versions.Wanted(1))
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting, timeout=DEADLINE_S)
    assert all(each.cancelled() for each in waiting)


async def test_whoever_leaves_lets_the_next_one_be_answered(
    config: Config, small: SmallLake, tmp_path: Path, stopping: asyncio.Event
) -> None:
    small.fill()
    mark = tmp_path / "hung"
    asker = Asker(partial(open_once_hung, config, mark), stopping)
    first = asyncio.create_task(asker.ask("versions", versions.Wanted(1)))
    second = asyncio.create_task(asker.ask("versions", versions.Wanted(1)))
    async with asyncio.timeout(DEADLINE_S):
        while not mark.exists():
            await asyncio.to_thread(os.sched_yield)
        first.cancel()
        assert b"success" in (await second).pieces[0]


def open_once_hung(config: Config, mark: Path) -> Any:
    if not mark.exists():
        mark.touch()
        hang()
    return open_desk(config)


async def test_whoever_hangs_up_gets_no_answer(tmp_path: Path, stopping: asyncio.Event) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    path = "/attribution/versions"
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    async with asyncio.timeout(DEADLINE_S):
        await create_app(tmp_path, desk=hang, stopping=stopping)(scope, receive, send)
    assert sent == []


async def test_the_process_ends_when_the_service_stops(stopping: asyncio.Event) -> None:
    asker = Asker(hang, stopping)
    asked = asyncio.create_task(asker.ask("versions", versions.Wanted(1)))
    async with asyncio.timeout(DEADLINE_S):
        while asker._process is None:
            await asyncio.to_thread(os.sched_yield)
        process = asker._process
        stopping.set()
        with pytest.raises(query_process.AnswererEnded):
            await asked
        assert await process.wait() == -signal.SIGKILL


QUESTIONS: dict[str, dict[str, list[str]]] = {
    "report": {"by": ["client", "channel"]},
    "versions": {},
    "orders": {},
    "paths": {},
    "cohorts": {},
    "diff": {"from": ["1"], "to": ["2"]},
    "clicks": {},
    "funnel": {"from": ["2026-11-01T00:00:00Z"], "to": ["2026-11-04T00:00:00Z"]},
    "erasures": {},
}


@pytest.mark.parametrize("name", sorted(set(READERS) - {"order", "uploads", "postbacks"}))
def test_who_may_see_some_clients_alone_gets_what_is_theirs(desk: Desk, small: SmallLake, name: str) -> None:
    small.fill()
    small.publish(credited("E", 1250, "JPY", [(3, 1250, 1.0, 1250, 1.0)], client_id="tokyo"))
    reading = READERS[name]

    def told(clients: tuple[str, ...] | None = None, **more: list[str]) -> dict[str, Any]:
        question = reading.read(QUESTIONS[name] | more)
        if clients is not None:
            question = reading.narrowed(question, clients)
        answer: dict[str, Any] = json.loads(ANSWERS[name](desk, question).body)
        return answer

    assert "tokyo" not in json.dumps(told(("shop",)))
    assert told(("shop", "tokyo")) == told()
    if name != "versions":
        of_one = told(clientId=["shop"])
        if name == "report":
            del of_one["report"]["filters"]["clientId"]
        if name == "funnel":
            of_one["funnel"]["clientId"] = None
        if name == "diff":
            of_one["diff"]["settings"] = told(("shop",))["diff"]["settings"]
        assert told(("shop",)) == of_one
    else:
        assert set(told(("shop",))["versions"][0]["settings"]["policies"]["clients"]) == {"shop"}
        assert told(("tokyo",))["versions"][0]["settings"]["policies"]["clients"] == {}


def test_uploads_are_narrowed_too() -> None:
    assert READERS["uploads"].narrowed(READERS["uploads"].read({}), ("shop",)).clients == ("shop",)
