"""`/schedulerService/settings`: what this service was started with, without its secrets.

Parse, call, render. Never changes a setting: they are read once, at the start.
"""

import platform
from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Instant, Record
from clickclock.foundation.shown_settings import ShownSetting
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.reading import Query


class Program(Record):
    """What runs here."""

    version: str = Field(description="The program's version.", examples=["0.1.0"])
    python: str = Field(description="Python's version.", examples=["3.12.4"])
    node: str = Field(description="The data folder's name among others.", examples=["web-1-5f0c6c1d9a11"])
    started_at: Instant = Field(description="When it started.", examples=["2026-11-20T08:00:00.000Z"])


async def read(call: Call[Query]) -> Response:
    """GET: those of the replica that answers."""
    engine = call.engine
    program = Program(
        version=engine.version, python=platform.python_version(), node=engine.node, started_at=engine.started_at
    )
    return success(200, program=program, settings=engine.settings)


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "Read the settings of the service",
        Permission.SETTING_READ,
        read,
        Query,
        {200: {"program": Program, "settings": list[ShownSetting]}},
        description="Those with which the replica that answers was started, and its version. A secret is `set` or "
        "null. Of a setting with parts, such as clusters, targets and accounts, there are the names alone.",
    ),
)
