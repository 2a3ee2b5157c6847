"""What the collector says of its own HTTP interface: valid, and true."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from openapi_spec_validator import OpenAPIV31SpecValidator

from clickclock.attribution.api.description import document
from clickclock.attribution.orders import amendment
from clickclock.attribution.registering import identification
from tests.api.port import Port, get, now_ms, post
from tests.house.tree import ROOT

DOCUMENT = document()
SCHEMAS = DOCUMENT["components"]["schemas"]
WHO = {"client_id": "c", "cli_ubid": "u", "customer_id": "7"}
GOOD = {**WHO, "order_id": "7", "event_time": now_ms(), "amount": "9.90", "currency": "EUR"}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    with Port(tmp_path_factory.mktemp("described")) as standing:
        yield standing


def test_the_document_is_valid_openapi_3_1_and_names_every_path(port: Port) -> None:
    told = json.loads(port.ask(get("/openapi.json")).body)
    OpenAPIV31SpecValidator(told).validate()
    assert told == DOCUMENT
    page = (ROOT / "docs/reference/collector.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(/[\w./]+)` \| ([A-Z, ]+) \|", page, re.MULTILINE))
    assert told["paths"].keys() == rows.keys()
    for path, methods in told["paths"].items():
        allowed = port.ask(get(path, method="OPTIONS")).fields["allow"]
        assert set(allowed.split(", ")) == set(rows[path].split(", "))
        assert {each.upper() for each in methods} == set(allowed.split(", ")) - {"HEAD", "OPTIONS"}


def test_orders_and_identifications_have_the_fields_that_are_read() -> None:
    assert SCHEMAS["Order"]["properties"].keys() == set(amendment.FIELDS)
    assert SCHEMAS["OrderPart"]["properties"].keys() == set(amendment.ITEM_FIELDS)
    assert SCHEMAS["Identification"]["properties"].keys() == set(identification.FIELDS)


def test_every_field_and_parameter_is_described() -> None:
    operations = [each for methods in DOCUMENT["paths"].values() for each in methods.values()]
    assert len({each["operationId"] for each in operations}) == len(operations)
    named = [parameter for each in operations for parameter in each.get("parameters", [])]
    assert [each["name"] for each in named if not each["description"]] == []
    assert [field for field in _fields(SCHEMAS) if not field.get("description")] == []


@pytest.mark.parametrize(
    ("request_", "operation"),
    [
        (get("/aclick?client_id=c"), ("/aclick", "get")),
        (post("/orders", json.dumps(GOOD).encode()), ("/orders", "post")),
        (post("/orders", json.dumps([GOOD, WHO]).encode()), ("/orders", "post")),
        (post("/orders", json.dumps(WHO).encode()), ("/orders", "post")),
        (post("/orders", b"nothing"), ("/orders", "post")),
        (post("/identify", json.dumps(WHO).encode()), ("/identify", "post")),
        (get("/identify?client_id=c&customer_id=7&cli_ubid=u"), ("/identify", "get")),
        (get("/identify?client_id=c"), ("/identify", "get")),
        (get("/appsflyer?client_id=c"), ("/appsflyer", "get")),
        (get("/appsflyer?client_id=c&event_name=funnel_salecomplete"), ("/appsflyer", "get")),
        (get("/aclick?client_id=" + "c" * 9000), ("/aclick", "get")),
        (post("/aclick", b"{}", "Content-Type: application/json\r\n"), ("/aclick", "post")),
    ],
)
def test_an_answer_is_what_the_document_says(port: Port, request_: bytes, operation: tuple[str, str]) -> None:
    heard = port.ask(request_)
    path, method = operation
    said = DOCUMENT["paths"][path][method]["responses"][str(heard.status)]
    schema = said["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(json.loads(heard.body))


def _fields(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        properties = schema.get("properties", {})
        yield from (each for each in properties.values() if "type" in each or "const" in each)
        for part in schema.values():
            yield from _fields(part)
