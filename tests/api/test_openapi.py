"""The OpenAPI document: valid, complete, and true."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.api.conftest import JOB
from tests.openapi import SCHEDULER

OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in SCHEDULER["paths"].items()
    for method, operation in methods.items()
}


def _fields(schema: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field of every object in a schema, with its path."""
    if isinstance(schema, dict):
        for name, field in schema.get("properties", {}).items():
            yield f"{path}.{name}", field
        for name, part in schema.items():
            if name not in {"examples", "example", "default"}:
                yield from _fields(part, f"{path}.{name}")
    elif isinstance(schema, list):
        for place, part in enumerate(schema):
            yield from _fields(part, f"{path}[{place}]")


async def test_the_document_is_valid_openapi_3_1(http: httpx.AsyncClient) -> None:
    response = await http.get("http://127.0.0.1/openapi.json")
    assert response.json()["openapi"] == "3.1.0"
    OpenAPIV31SpecValidator(response.json()).validate()


def test_every_field_has_a_description_and_an_example() -> None:
    schemas = _fields(SCHEDULER["components"]["schemas"], "")
    bodies = _fields({name: each["responses"] for name, each in OPERATIONS.items()}, "")
    lacking = [
        path
        for path, field in (*schemas, *bodies)
        if "properties" not in path.rpartition(".")[2] and not (field.get("description") and field.get("examples"))
    ]
    assert lacking == []


def test_every_parameter_has_a_description_and_an_example() -> None:
    lacking = [
        f"{name} {parameter['name']}"
        for name, operation in OPERATIONS.items()
        for parameter in operation["parameters"]
        if not parameter["description"]
        or "example" not in (parameter["content"]["application/json"] if "content" in parameter else parameter)
    ]
    assert lacking == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_tells_of_its_errors(name: str) -> None:
    responses = OPERATIONS[name]["responses"]
    wanted = {"400", "403", "500"} | ({"413", "415", "422"} if not name.startswith("GET") else set())
    wanted |= {"503"} if not name.endswith("/livez") else set()
    assert wanted <= responses.keys()
    assert any(status.startswith("2") for status in responses)
    assert OPERATIONS[name]["description"].endswith(".")


NAMES_SOMETHING = {
    "PUT /schedulerService/alarm": "alarmNotFound",
    "PUT /schedulerService/notification": "notificationNotFound",
    "POST /schedulerService/session": "signInNotFound",
    "PUT /schedulerService/login": "signInNotFound",
    "PUT /schedulerService/loginApproval": "signInNotFound",
}
"""What these examples name is made by no call: they are accepted, and not found."""


async def test_every_example_of_a_body_is_accepted(http: httpx.AsyncClient) -> None:
    job = {**JOB, "jobName": "nightly-export"}
    for name, operation in OPERATIONS.items():
        method, path = name.split()
        if "requestBody" not in operation:
            continue
        examples = operation["requestBody"]["content"]["application/json"]["examples"]
        assert examples, name
        for example in examples.values():
            await _reset(http)
            if not path.endswith("/job"):
                await http.put("job", json={**job, "parameters": {"day": "today"}})
            if path.endswith("/schedules") and method == "PUT":
                schedule = {**job, "scheduleId": "every-night", "expression": "0 0 * * *"}
                del schedule["command"], schedule["preemption"]
                assert (await http.post("schedules", json=schedule)).status_code == 201
            body = dict(example["value"]) if isinstance(example["value"], dict) else example["value"]
            if path.endswith("/backfill"):
                body = await _for_a_backfill(http, method, body)
            response = await http.request(method, f"http://127.0.0.1{path}", json=body)
            if name in NAMES_SOMETHING:
                assert response.json()["code"] == NAMES_SOMETHING[name]
                continue
            assert response.status_code in {200, 201}, f"{name}: {response.text}"


async def _reset(http: httpx.AsyncClient) -> None:
    await http.delete("job?application=shop&jobName=nightly-export&force=true")
    await http.delete("group?groupName=exports")
    await http.delete("commandPrefixImageMapping", params={"prefix": "python -m etl"})


async def test_the_docs_page_needs_nothing_from_elsewhere(http: httpx.AsyncClient) -> None:
    for path, media_type in (("", "text/html"), ("/docs.js", "text/javascript"), ("/docs.css", "text/css")):
        response = await http.get(f"http://127.0.0.1/docs{path}")
        assert response.status_code == 200
        assert response.headers["content-type"].startswith(media_type)
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert "//" not in response.text.replace("// ", "")
    response = await http.get("http://127.0.0.1/schedulerService/")
    assert (response.status_code, response.headers["location"]) == (307, "/docs")


async def test_no_other_page_can_show_the_docs_page_in_a_frame_and_have_its_buttons_clicked(
    http: httpx.AsyncClient,
) -> None:
    assert "frame-ancestors 'none'" in (await http.get("http://127.0.0.1/docs")).headers["content-security-policy"]


async def _for_a_backfill(http: httpx.AsyncClient, method: str, body: dict[str, Any]) -> dict[str, Any]:
    """The example, once there is what it names."""
    schedule = {
        "application": "shop",
        "jobName": "nightly-export",
        "scheduleId": "every-night",
        "expression": "0 2 * * *",
    }
    assert (await http.post("schedules", json=schedule)).status_code == 201
    if method == "POST":
        return body
    past = {"scheduleId": "every-night", "from": "2026-10-01T00:00:00Z", "to": "2026-10-31T00:00:00Z"}
    made = (await http.post("backfill", json=past)).json()["backfill"]
    return {**body, "backfillId": made["backfillId"]}
