"""`/schedulerService/commandPrefixImageMapping`: the mapping, and which image a command would get and why.

Parse, call, render.
"""

import re

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Invalid
from clickclock.foundation.permission import Permission
from clickclock.scheduler.api.operation import BASE, Call, Operation, success
from clickclock.scheduler.api.paging import columns, key_in, page
from clickclock.scheduler.api.reading import Body, Page, Query, Word
from clickclock.scheduler.errors import MappingExists, MappingNotFound
from clickclock.scheduler.jobs import command as commands
from clickclock.scheduler.jobs import image_mapping
from clickclock.scheduler.jobs.image_mapping import Choice, ImageMapping

RESOURCE = "commandPrefixImageMapping"
_PARAMETER = re.compile(r"\{\{\s*parameters\.(\w+)\s*\}\}", re.ASCII)
"""A job declares what its command uses; of a command alone, it is taken as declared."""


class MappingFilters(Page):
    """Which mappings, and a command to try them on."""

    prefix: Word | None = Field(None, description="The mapping of this prefix.", examples=["python -m etl"])
    image: Word | None = Field(None, description="Mappings to this image.", examples=["python:3.13"])
    command: str | None = Field(
        None,
        max_length=65_536,
        description="A command: the answer's `choice` says which image it would get, and why.",
        examples=["python -m etl load"],
    )
    shell: bool = Field(False, description="Whether a shell is to run that command.", examples=[False])


class MappingTarget(Query):
    """One mapping that is to go."""

    prefix: Word = Field(description="Its prefix.", examples=["python -m etl"])


BODY = Body(ImageMapping)


async def create(call: Call[Query]) -> Response:
    """POST: a new mapping."""
    stored = await call.engine.store.image_mappings.create(BODY.read(call.body), call.engine.clock.now())
    return success(201, commandPrefixImageMapping=stored)


async def find(call: Call[MappingFilters]) -> Response:
    """GET: by prefix."""
    wanted = call.filters
    mappings = await call.engine.store.image_mappings.all()
    choice = None
    if wanted.command is not None:
        declared = frozenset(_PARAMETER.findall(wanted.command))
        words = commands.parse(wanted.command, shell=wanted.shell, parameter_names=declared).words
        choice = image_mapping.choose(words, mappings, None)
    given = columns(wanted)
    prefix = wanted.prefix and image_mapping.spelled(wanted.prefix)
    after = key_in(wanted.cursor, RESOURCE, given)
    found = [
        each
        for each in mappings
        if (after is None or each.prefix > after[0])
        and prefix in {None, each.prefix}
        and wanted.image in {None, each.image}
    ]
    told, cursor = page(RESOURCE, given, found, wanted.limit, lambda each: [each.prefix])
    return success(commandPrefixImageMappings=told, nextCursor=cursor, choice=choice)


async def put(call: Call[Query]) -> Response:
    """PUT: the whole mapping."""
    stored, created = await call.engine.store.image_mappings.put(BODY.read(call.body), call.engine.clock.now())
    return success(201 if created else 200, commandPrefixImageMapping=stored)


async def delete(call: Call[MappingTarget]) -> Response:
    """DELETE: by prefix."""
    prefix = image_mapping.spelled(call.filters.prefix)
    await call.engine.store.image_mappings.delete(prefix, call.engine.clock.now())
    return success()


OPERATIONS = (
    Operation(
        "GET",
        "List the mappings from command prefix to image",
        Permission.MAPPING_READ,
        find,
        MappingFilters,
        {200: {"commandPrefixImageMappings": list[ImageMapping], "nextCursor": str | None, "choice": Choice | None}},
        description="By prefix. The longest prefix of whole words wins: `python -m etl` before `python`, and `python` "
        "does not match `python3`. With `command`, `choice` says which image that command would get.",
        errors=(Invalid,),
    ),
    Operation(
        "POST",
        "Map a command prefix to an image",
        Permission.MAPPING_WRITE,
        create,
        Query,
        {201: {RESOURCE: ImageMapping}},
        description=f"`{BASE}/{RESOURCE}?command=…` tries it out.",
        body=ImageMapping,
        examples={"a tool": {"prefix": "python -m etl", "image": "registry.example.com/etl:1.4"}},
        errors=(MappingExists, Invalid),
    ),
    Operation(
        "PUT",
        "Create or replace a mapping",
        Permission.MAPPING_WRITE,
        put,
        Query,
        {200: {RESOURCE: ImageMapping}, 201: {RESOURCE: ImageMapping}},
        body=ImageMapping,
        examples={"a tool": {"prefix": "python -m etl", "image": "registry.example.com/etl:1.4"}},
        errors=(Invalid,),
    ),
    Operation(
        "DELETE",
        "Delete a mapping",
        Permission.MAPPING_WRITE,
        delete,
        MappingTarget,
        {200: {}},
        target_in_body=True,
        errors=(MappingNotFound,),
    ),
)
