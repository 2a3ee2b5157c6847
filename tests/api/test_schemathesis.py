"""What the OpenAPI document allows, and what it does not, sent to the real application over a real store.

Never asks about what exists by accident: names are drawn from the document's examples as well. Invariant: no answer
is 5xx, and no answer is one that the document does not tell of.
"""

import asyncio
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.applications import Starlette

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.api import create_app
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.executors.process import ProcessExecutor
from clickclock.scheduler.jobs.group import Group
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.store import Store
from tests.api.conftest import NOW
from tests.conftest import Databases
from tests.openapi import SCHEDULER

EXAMPLES = 12
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def app(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, databases: Databases
) -> Iterator[Starlette]:
    folder: Path = tmp_path_factory.mktemp("schemathesis")
    clock = ManualClock(NOW)
    store = asyncio.run(Store.open(databases.copy(request.param)))
    asyncio.run(store.groups.create(Group(group_name="exports"), NOW))
    asyncio.run(store.jobs.create([Job(application="shop", job_name="nightly-export", command="true")], NOW))
    executor = ProcessExecutor(
        name="local", data_dir=folder, node="node-1", slots=1, log_bytes_max=1024, base_environment={}, clock=clock
    )
    engine = Engine(store, clock, {"local": executor}, node="node-1", version="0.1.0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clickclock.foundation.lifecycle.STALLED_AFTER_S", float("inf"))  # its loops do not run
        yield create_app(engine, allowed_hosts=None)
    asyncio.run(store.close())


SCHEMA = schemathesis.openapi.from_dict(SCHEDULER)
OPERATIONS = {
    found.ok().label: found.ok()
    for found in SCHEMA.include(path_regex="^/schedulerService/").get_all_operations()
    if isinstance(found, Ok) and found.ok().path not in {"/schedulerService/session", "/schedulerService/signInLink"}
}
"""All that can be asked in more than one way: signing in and out, and asking for a link, cannot."""


@cache
def requests(label: str, mode: str) -> list[schemathesis.Case[Any]]:
    """What is sent to both stores: it takes longer to think of than to answer."""
    found: list[schemathesis.Case[Any]] = []

    @given(case=OPERATIONS[label].as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def think(case: schemathesis.Case[Any]) -> None:
        if label.endswith("/events") and mode == "positive":
            # Followed, they have no end.
            case.query = {name: value for name, value in case.query.items() if name != "jsonQuery"} | {"follow": False}
        found.append(case)

    think()
    return found


@pytest.mark.parametrize("label", OPERATIONS)
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_request_brings_an_answer_that_the_document_does_not_tell_of(app: Starlette, label: str, mode: str) -> None:
    for case in requests(label, mode):
        case.call_and_validate(app=app, checks=CHECKS)
