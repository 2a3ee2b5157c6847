"""Jobs on a cluster that runs images: refused without one, with the way out named; and shown with theirs."""

from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.api import create_app
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.store import Store
from tests.agents.scripted import ScriptedExecutor
from tests.api.conftest import BASE, JOB

BOXED = {**JOB, "cluster": "boxes"}


@pytest.fixture
async def engine(clock: ManualClock, store_url: Callable[[str], str]) -> AsyncIterator[Engine]:
    store = await Store.open(store_url("sqlite"))
    executors = {"local": ScriptedExecutor(clock), "boxes": ScriptedExecutor(clock, wants_image=True)}
    yield Engine(store, clock, executors, node="node-1", version="0.1.0")
    await store.close()


@pytest.fixture
async def http(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app(engine)), base_url=BASE) as client:
        yield client


async def test_a_command_without_an_image_is_422_and_the_closest_prefixes_are_named(http: httpx.AsyncClient) -> None:
    for prefix in ("python3", "ruby"):
        await http.post("commandPrefixImageMapping", json={"prefix": prefix, "image": "x"})
    for send in (http.post, http.put):
        response = await send("job", json=BOXED)
        assert response.status_code == 422
        (fault,) = response.json()["errors"]
        assert fault["field"] == "image"
        assert "the closest prefixes are `python3` or `ruby`" in fault["message"]
    assert (await http.get("job")).json()["jobs"] == []


async def test_an_image_without_a_name_is_none(http: httpx.AsyncClient) -> None:
    unnamed = {**BOXED, "image": ""}
    response = await http.post("job", json=unnamed)
    assert (response.status_code, [each["field"] for each in response.json()["errors"]]) == (422, ["image"])
    await http.post("commandPrefixImageMapping", json={"prefix": "python", "image": "python:3.13"})
    assert (await http.post("job", json=unnamed)).status_code == 201


async def test_in_an_array_each_that_lacks_an_image_is_named_and_none_is_made(http: httpx.AsyncClient) -> None:
    response = await http.post(
        "job", json=[{**BOXED, "image": "x"}, {**BOXED, "jobName": "b"}, {**BOXED, "jobName": "c"}]
    )
    assert [each["field"] for each in response.json()["errors"]] == ["[1].image", "[2].image"]
    assert "the mapping is empty" in response.json()["errors"][0]["message"]
    assert (await http.get("job")).json()["jobs"] == []


async def test_an_image_of_its_own_or_a_prefix_is_enough_and_processes_need_neither(http: httpx.AsyncClient) -> None:
    await http.post("commandPrefixImageMapping", json={"prefix": "python", "image": "python:3.13"})
    assert (await http.post("job", json=BOXED)).status_code == 201
    own = {**BOXED, "jobName": "own", "command": "ruby x", "image": "ruby:3", "pullPolicy": "always"}
    assert (await http.post("job", json=own)).json()["job"]["pullPolicy"] == "always"
    assert (await http.post("job", json={**JOB, "jobName": "plain", "command": "ruby x"})).status_code == 201
    detail = (await http.get("jobDetail", params={"application": "shop", "jobName": "export"})).json()["jobDetail"]
    assert detail["command"]["image"]["image"] == "python:3.13"


async def test_secret_references_are_kept_as_they_are_and_wrong_ones_are_named(http: httpx.AsyncClient) -> None:
    refs = [{"name": "A", "file": "a"}, {"name": "B", "environment": "B"}]
    stored = (await http.post("job", json={**JOB, "secretRefs": refs})).json()["job"]
    assert [{name: value for name, value in ref.items() if value} for ref in stored["secretRefs"]] == refs
    wrong = [{"name": "A", "file": "../a"}, {"name": "B"}]
    response = await http.put("job", json={**JOB, "secretRefs": wrong})
    assert response.status_code == 422
    assert {each["field"] for each in response.json()["errors"]} >= {"secretRefs[0].file"}
