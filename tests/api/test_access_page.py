"""The page of permissions says what the code does: each role, each permission, each route."""

import re
from pathlib import Path

from clickclock.attribution.api import check, stream
from clickclock.attribution.api.questions import READERS
from clickclock.foundation.permission import REACHES, ROLES, Permission, Role
from clickclock.scheduler.api import TABLE

PAGE = (Path(__file__).parents[2] / "docs/reference/access.md").read_text(encoding="utf-8")


def test_the_table_of_roles_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| (\w+) \|((?: ✓? ?\|)+)$", PAGE, re.MULTILINE)
    told = {
        permission: (reach, {role for role, mark in zip(Role, marks.split("|"), strict=False) if mark.strip()})
        for permission, reach, marks in rows
    }
    assert told == {each: (REACHES[each].value, {role for role in Role if each in ROLES[role]}) for each in Permission}


def test_the_table_of_routes_is_that_of_the_code() -> None:
    told = dict(re.findall(r"^\| `(\w+ /\S+)` \| `([\w.]+)` \|$", PAGE, re.MULTILINE))
    assert told == {
        **{f"{each.method} {path}": each.permission for path, operations in TABLE.items() for each in operations},
        **{f"GET /attribution/{name}": reading.permission for name, reading in READERS.items()},
        "GET /attribution/check": check.PERMISSION,
        "POST /attribution/check": check.PERMISSION,
        "GET /attribution/clicks/stream": stream.PERMISSION,
        "GET /attribution/openapi.json": Permission.DESCRIPTION_READ,
        "GET /openapi.json": Permission.DESCRIPTION_READ,
        "GET /metrics": Permission.METRICS_READ,
    }
