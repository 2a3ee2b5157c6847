"""What attribution says of its own HTTP interface: valid, and true."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from clickclock.attribution.api.application import create_app
from clickclock.attribution.api.openapi import document
from clickclock.attribution.api.questions import READERS
from clickclock.attribution.reporting.figures import Dimension, Figure
from clickclock.foundation.errors import Malformed
from tests.house.tree import ROOT

DOCUMENT = document()
PAGE = (ROOT / "docs/reference/attribution-http.md").read_text(encoding="utf-8")
REPORTS = (ROOT / "docs/reference/reports.md").read_text(encoding="utf-8")


def parameters(name: str) -> list[str]:
    return [each["name"] for each in DOCUMENT["paths"][f"/attribution/{name}"]["get"]["parameters"]]


def fields(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {}).values()
        for part in schema.values():
            yield from fields(part)


async def test_the_document_is_valid_openapi_3_1(tmp_path: Path) -> None:
    transport = httpx.ASGITransport(create_app(tmp_path, desk=dict))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost/attribution/") as http:
        told = (await http.get("openapi.json")).json()
        assert (await http.post("openapi.json")).status_code == 405
        assert "/attribution/openapi.json lists every path" in (await http.get("nothing")).json()["message"]
    OpenAPIV31SpecValidator(told).validate()
    assert told == DOCUMENT


@pytest.mark.parametrize("name", READERS)
def test_every_path_has_the_parameters_that_it_reads(name: str) -> None:
    with pytest.raises(Malformed) as refused:
        READERS[name].read({"nonsense": ["x"]})
    (known,) = (fault.message for fault in refused.value.faults if fault.field == "nonsense")
    assert sorted(parameters(name)) == sorted(re.findall(r"\w+", known.partition("there are:")[2]))


def test_every_field_and_parameter_is_described_and_every_parameter_has_an_example() -> None:
    told = [each for path in DOCUMENT["paths"].values() for each in path["get"]["parameters"]]
    assert [each["name"] for each in told if not each["description"] or "example" not in each] == []
    named = [*fields(DOCUMENT["components"]["schemas"]), *fields(DOCUMENT["paths"])]
    assert [field for field in named if not field.get("description") and "$ref" not in field] == []


def test_the_reference_has_every_path_parameter_and_error() -> None:
    for path, operations in DOCUMENT["paths"].items():
        section = re.search(rf"^## GET {re.escape(path)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
        assert section is not None, path
        told = set(re.findall(r"^\| `(\w+)` \|", section[1], re.MULTILINE))
        assert {each["name"] for each in operations["get"]["parameters"]} <= told, path
    codes = {
        code
        for operations in DOCUMENT["paths"].values()
        for answer in operations["get"]["responses"].values()
        for code in re.findall(r"`(\w+)`: ", answer["description"])
    }
    assert codes - set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == set()


def test_the_reference_has_every_dimension_and_figure() -> None:
    told = set(re.findall(r"^\| `(\w+)` \|", REPORTS, re.MULTILINE))
    assert {*Dimension, *Figure} <= told
