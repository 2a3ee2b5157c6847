"""Reading a request: its filters and its body, with everything that is wrong told together.

Never acts on what it read. Invariants: a filter is the same whether it stands in `jsonQuery` or by itself; JSON means
RFC 8259 with names used once, so no NaN and nothing said twice; a body's size is checked while it arrives.

>>> read_filters(Page, b"limit=5").limit
5
"""

import asyncio
import contextlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Annotated, Any, NoReturn, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, Field, GetCoreSchemaHandler, StringConstraints, TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from clickclock.foundation.errors import ClickclockError, Fault, Invalid, Malformed
from clickclock.foundation.problem import FAULTS_MAX, TooLarge, UnsupportedMediaType
from clickclock.foundation.record import Record, as_text, read_by
from clickclock.foundation.strict_json import StrictJson
from clickclock.scheduler.api.faults import (
    NOT_UNICODE,
    WORD_PATTERN,
    failing_in,
    faults_of,
    hidden_faults,
    wire_names,
)

ITEMS_MAX = 10_000
"""Jobs or schedules in one array: they are one transaction, and others wait for it."""
CHUNK = 500
"""Items checked in one go; then the loop runs whatever else waits (about 5 ms)."""
PARAMETERS_MAX = 100
JSON_QUERY = "jsonQuery"
_ESCAPED = re.compile(rb"\\u(0000|[dD][89a-fA-F])")
"""What JSON can say and nobody takes: NUL, and halves of a surrogate pair (whole pairs are found, too)."""
_HALF = re.compile("[\ud800-\udfff]")

Word = Annotated[str, StringConstraints(max_length=4096, pattern=WORD_PATTERN)]
"""A filter's text. It need not be a possible name: what cannot exist is not found, and that is no error."""
M = TypeVar("M", bound=BaseModel)


class Query(Record):
    """Filters of a call that takes none, and the base of all others. A plain query parameter is text."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler, /) -> Any:
        return read_by(as_text, source, handler)


class Page(Query):
    """Filters of a list: which part of it."""

    limit: int = Field(100, ge=1, le=1000, description="At most this many entries.", examples=[100])
    cursor: str | None = Field(
        None,
        max_length=8192,
        description="Where to continue: `nextCursor` of the previous answer, with the same filters.",
        examples=["WyIwMTk5M2YyZSJd.1f0c6c1d9a11aa02"],
    )


def read_filters(model: type[M], raw: bytes, check: Callable[[M], Sequence[Fault]] | None = None) -> M:
    """The filters in a query string. Raises `Malformed` naming every fault, those of several filters by `check`."""
    given, faults = _given(raw) if raw else ({}, [])
    failing = {each.field for each in faults}
    filters = None
    try:
        filters = model.model_validate(given, by_alias=True, by_name=False)
    except ValidationError as error:
        faults += _further(error, faults_of(error, model, noun="filter"), failing, given)
        failing |= failing_in(error, "")
    if check is not None and JSON_QUERY not in failing:
        # One faulty filter does not hide what is wrong with the others.
        rest = {name: value for name, value in given.items() if name not in failing}
        whole = filters if filters is not None and not faults else model.model_validate(rest)
        faults += [each for each in check(whole) if each.field not in failing]
    if filters is None or faults:
        raise Malformed(faults=faults)
    return filters


def read_target(model: type[M], raw: bytes, body: bytes) -> M:
    """Filters that may stand in the query string, in the body, or in both. Raises `Malformed`, `Invalid`."""
    if not body:
        return read_filters(model, raw)
    given = read_object(body)
    named, faults = _given(raw) if raw else ({}, [])
    faults += _contradictions(named, given, "the body")
    try:
        target = model.model_validate({**named, **given})
    except ValidationError as error:
        found = faults_of(error, model)
        if not faults:
            raise Invalid(faults=found) from error
        failing = {each.field for each in faults}
        raise Malformed(faults=[*faults, *_further(error, found, failing, {**named, **given})]) from error
    if faults:
        raise Malformed(faults=faults)
    return target


def _given(raw: bytes) -> tuple[dict[str, Any], list[Fault]]:
    """The filters that a query string names, and what is wrong with how it names them."""
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX)
    except ValueError as error:
        sentence = f"Give at most {PARAMETERS_MAX} parameters, in UTF-8."
        raise Malformed("The query string cannot be read.", [Fault("", sentence)]) from error
    plain: dict[str, Any] = {}
    faults: list[Fault] = []
    for name, value in pairs:
        if plain.setdefault(name, value) is not value:
            faults.append(Fault(name, "This is given twice; give it once."))
    json_query = plain.pop(JSON_QUERY, None)
    if json_query is None:
        return plain, faults
    try:
        given = load_json(json_query.encode())
    except Malformed as malformed:
        return plain, [*faults, Fault(JSON_QUERY, f"{malformed}")]
    if not isinstance(given, dict):
        sentence = 'Give a JSON object, URL-encoded, for example {"application":"shop"}.'
        return plain, [*faults, Fault(JSON_QUERY, sentence)]
    if any(map(_HALF.search, given)):  # pydantic would tell of nothing else, and not which it is
        return plain, [*faults, Fault(JSON_QUERY, NOT_UNICODE)]
    return {**given, **plain}, faults + _contradictions(plain, given, JSON_QUERY)


def _contradictions(plain: Mapping[str, Any], given: Mapping[str, Any], where: str) -> list[Fault]:
    return [
        Fault(name, f"The query string and {where} give different values; give one.")
        for name, value in plain.items()
        if name in given and (given[name] if isinstance(given[name], str) else json.dumps(given[name])) != value
    ]


def _further(
    error: ValidationError, found: Sequence[Fault], told: Collection[str], given: Collection[str]
) -> list[Fault]:
    """Those of the faults that are of no filter in `told`; what an unread `jsonQuery` may hold is not missing."""
    names = [str(each["loc"][0]) if each["loc"] else "" for each in error.errors(include_context=False)]
    unread = JSON_QUERY in told
    return [
        fault for fault, name in zip(found, names, strict=True) if name not in told and (name in given or not unread)
    ]


async def read_body(receive: Receive, headers: Mapping[str, str], bytes_max: int) -> bytes:
    """The body, as it came. Raises `TooLarge`, `UnsupportedMediaType`.

    It is read as JSON whatever its Content-Type says: `curl -d` says it is a form.
    """
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaType
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > bytes_max:
        _refuse_size(bytes_max)
    body = b""
    rest: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > bytes_max:
            _refuse_size(bytes_max)
        if not message.get("more_body", False):
            return b"".join([*rest, piece]) if rest else body + piece
        rest.append(piece)


def _refuse_size(bytes_max: int) -> NoReturn:
    raise TooLarge(f"The request body is larger than {bytes_max} bytes; send it in smaller parts.")


def _number(text: str) -> int | float:
    """JSON has one kind of number: `5.0` is 5."""
    value = float(text)
    return int(value) if value.is_integer() else value


load_json = StrictJson(encoding="utf-8-sig", number=_number).read
"""The value of a body, or of a query's parameter. Raises `Malformed`."""


class Body:
    """How the body of a call is read: a model, the check over several of its fields, what stands in for what fails."""

    def __init__(
        self,
        model: type[BaseModel],
        *,
        whole: str = "",
        stand_ins: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self._whole = whole
        self._stand_ins = stand_ins or {}

    @cached_property
    def _list(self) -> TypeAdapter[list[Any]]:
        return TypeAdapter(list[self.model])  # type: ignore[name-defined] # the model is a value here

    def read(
        self, raw: bytes, check: Callable[[Any], object] = bool, *, leave_out: frozenset[str] = frozenset()
    ) -> Any:
        """One record, its fields in `leave_out` passed over. Raises `Malformed`, `Invalid` naming every fault.

        `check` may raise `Invalid`, too.
        """
        return self.validate(read_object(raw, leave_out), check)

    def validate(self, given: Any, check: Callable[[Any], object] = bool) -> Any:
        """One record from the value of its JSON. Raises `Invalid` naming every fault."""
        try:
            record = self.model.model_validate(given, by_alias=True, by_name=False)
        except ValidationError as error:
            faults = faults_of(error, self.model, whole=self._whole)
            if isinstance(given, dict):
                failing = failing_in(error, self._whole)
                faults += hidden_faults(given, failing, self.model, self._stand_ins, check, self._whole)
            raise Invalid(faults=faults) from error
        check(record)
        return record

    async def read_several(self, raw: bytes, check: Callable[[Any], object] = bool) -> tuple[list[Any], bool]:
        """Records, and whether they came as an array. Raises as `read`, each fault with its item's place."""
        given = read_value(raw)
        if not isinstance(given, list):
            return [self.validate(given, check)], False
        if not 0 < len(given) <= ITEMS_MAX:
            raise Invalid(faults=[Fault("", f"Give between 1 and {ITEMS_MAX} entries in one array.")])
        records, faults = await self.read_items(given, [f"[{place}]" for place in range(len(given))], check)
        if faults:
            raise Invalid(faults=faults)
        return records, True

    async def read_items(
        self, items: Sequence[Any], places: Sequence[str], check: Callable[[Any], object] = bool
    ) -> tuple[list[Any], list[Fault]]:
        """Records from the values of their JSON, and every fault (or the first hundred) by the items' places."""
        records: list[Any] = []
        faults: list[Fault] = []
        for start in range(0, len(items), CHUNK):
            if start:
                await asyncio.sleep(0)
            chunk = items[start : start + CHUNK]
            try:
                # All at once when all is well; one by one when the faults are wanted.
                valid = self._list.validate_python(chunk, by_alias=True, by_name=False)
                for record in valid:
                    check(record)
                records += valid
            except (ValidationError, Invalid):
                faults += self._faults_in(chunk, places[start:], check)
                if len(faults) > FAULTS_MAX:
                    break
        return records, faults

    def _faults_in(self, items: Sequence[Any], places: Sequence[str], check: Callable[[Any], object]) -> list[Fault]:
        faults: list[Fault] = []
        for item, place in zip(items, places, strict=False):
            try:
                self.validate(item, check)
            except Invalid as invalid:
                faults += [
                    Fault(f"{place}.{each.field}" if each.field else place, each.message) for each in invalid.faults
                ]
        return faults


@contextlib.contextmanager
def numbered(records: Sequence[Any], as_array: bool) -> Iterator[None]:
    """Within, faults of a record that is alone in an array have its number, too; the store cannot know of the array."""
    try:
        yield
    except ClickclockError as error:
        if as_array and len(records) == 1:
            error.faults = [Fault(f"[0].{each.field}", each.message) for each in error.faults]
        raise


def read_object(raw: bytes, leave_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The JSON object that a body is, without the fields in `leave_out`. Raises `Malformed`, `Invalid`."""
    given = read_value(raw)
    if not isinstance(given, dict):
        raise Invalid(faults=[Fault("", "Give a JSON object.")])
    return {name: value for name, value in given.items() if name not in leave_out}


def set_by_service(stored: type[BaseModel], own: type[BaseModel]) -> frozenset[str]:
    """The fields that a stored record has and its user's part has not: to be passed over when they are sent back."""
    return frozenset(wire_names(stored)) - frozenset(wire_names(own))


def read_value(raw: bytes) -> Any:
    """The JSON that a body is. Raises `Malformed`, `Invalid`."""
    if not raw.strip():
        raise Malformed("There is no body; send a JSON object.")
    given = load_json(raw)
    if _ESCAPED.search(raw) and (faults := list(islice(_faults_of_texts(given), FAULTS_MAX + 1))):
        raise Invalid(faults=faults)
    return given


def _faults_of_texts(given: Any, path: str = "") -> Iterator[Fault]:
    """Each text, or name of a field, that neither a process nor a database takes."""
    if isinstance(given, str):
        if "\0" in given:
            yield Fault(path, "This has a NUL character, which no program can be given; remove it.")
        elif _HALF.search(given):
            yield Fault(path, NOT_UNICODE)
    elif isinstance(given, dict):
        for name, value in given.items():
            said = _HALF.sub("", name.replace("\0", ""))
            place = f"{path}.{said}" if path else said
            yield from _faults_of_texts(name, place)
            yield from _faults_of_texts(value, place)
    elif isinstance(given, list):
        for number, value in enumerate(given):
            yield from _faults_of_texts(value, f"{path}[{number}]")
