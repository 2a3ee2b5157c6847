"""The reference page tells of everything that can be sent, answered or refused, and the code does all that it tells."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clickclock.foundation.errors import ClickclockError, ConfigurationError
from clickclock.foundation.problem import INTERNAL, INTERNAL_STATUS, status_of
from clickclock.scheduler.api import TABLE
from clickclock.scheduler.api.operation import BASE
from tests.openapi import SCHEDULER

PAGE = (Path(__file__).parents[2] / "docs/reference/http.md").read_text(encoding="utf-8")
OPERATIONS = [
    (method.upper(), path.removeprefix(f"{BASE}/"), operation)
    for path, methods in SCHEDULER["paths"].items()
    for method, operation in methods.items()
]
RECORDS = {
    name: schema
    for name, schema in SCHEDULER["components"]["schemas"].items()
    if "properties" in schema and not name.endswith(("Filters", "Target", "Change", "Answer", "Item"))
}


def _section(heading: str) -> str:
    """The text below a heading of the third level, up to the next heading."""
    found = re.search(rf"^### {re.escape(heading)}\n(.*?)(?=^##)", PAGE + "\n##", re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def _codes(kind: type[ClickclockError]) -> Iterator[tuple[str, int]]:
    # Other parts' errors are no answers of the service, whoever imported them; attribution has pages of its own.
    if kind.__module__.startswith(("clickclock.foundation", "clickclock.scheduler.api", "clickclock.scheduler.errors")):
        yield kind.code, status_of(kind)
    for each in kind.__subclasses__():
        yield from _codes(each)


def test_the_page_has_every_endpoint_and_no_other() -> None:
    told = set(re.findall(r"^### (GET|POST|PUT|DELETE) (\S+)$", PAGE, re.MULTILINE))
    assert told == {(method, path) for method, path, _ in OPERATIONS}


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_an_endpoints_section_has_its_parameters_statuses_and_errors(
    method: str, path: str, operation: dict[str, Any]
) -> None:
    section = _section(f"{method} {path}")
    told = set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))
    assert told == {parameter["name"] for parameter in operation["parameters"]} - {"jsonQuery"}
    assert set(re.findall(r"^- (2\d\d):", section, re.MULTILINE)) == {
        status for status in operation["responses"] if status.startswith("2")
    }
    declared = [error for each in TABLE.get(f"{BASE}/{path}", ()) if each.method == method for error in each.errors]
    for error in declared:
        if error.code not in {"invalid", "storeUnreachable"}:  # every endpoint may answer with these
            assert f"{status_of(error)} `{error.code}`" in section


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_a_records_section_has_its_fields_and_no_other(name: str) -> None:
    section = _section(name)
    told = set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))
    if base := re.search(r"all fields of \[(\w+)\]", section):
        told |= set(RECORDS[base[1]]["properties"])
    assert told == set(RECORDS[name]["properties"])


def test_the_page_has_every_error_code_with_its_status_and_no_other() -> None:
    told = {(code, int(status)) for status, code in re.findall(r"^\| (\d{3}) \| `(\w+)` \|", PAGE, re.MULTILINE)}
    ours = {
        pair
        for pair in _codes(ClickclockError)
        if pair[0] not in {ConfigurationError.code, INTERNAL}  # never an answer
    }
    assert told == {*ours, (INTERNAL, INTERNAL_STATUS)}
