"""The base of every noun that crosses the API: frozen, camelCase outside, unknown fields refused.

Never does I/O. Invariants: what `model_dump(mode="json", by_alias=True)` writes, `model_validate` reads back; what JSON
says is taken as what it is: `true` and `"5"` are no numbers, 1 is no boolean, and no number is a time.

>>> rfc3339(datetime(2026, 11, 20, 10, tzinfo=UTC))
'2026-11-20T10:00:00.000Z'
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, GetCoreSchemaHandler, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticKnownError, core_schema

_COUNT = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")
_WHOLE = re.compile(r"-?[0-9]+")
_WITHIN = ("schema", "items_schema", "values_schema")
"""Where a core schema has others within it."""


def _is_count(value: Any) -> bool:
    """Whether it is seconds since 1970, which pydantic would take for a time."""
    return not isinstance(value, date) and (not isinstance(value, str) or bool(_COUNT.fullmatch(value.strip())))


def _refuse_counts_as_dates(value: Any) -> Any:
    if _is_count(value):
        raise PydanticKnownError("date_type")
    return value


def _refuse_counts_as_times(value: Any) -> Any:
    if _is_count(value):
        raise PydanticKnownError("datetime_type")
    return value


def _refuse_booleans(value: Any) -> Any:
    """`True`, which pydantic would take for 1."""
    if isinstance(value, bool):
        raise PydanticKnownError("float_type")
    return value


def _refuse_odd_digits(value: Any) -> Any:
    """Beside booleans `1_0` and `5.0`, which pydantic would take for 10 and 5."""
    if isinstance(value, bool) or (isinstance(value, str) and not _WHOLE.fullmatch(value)):
        raise PydanticKnownError("int_type")
    return value


_OF_TEXT: dict[str, Callable[[Any], Any]] = {
    "int": _refuse_odd_digits,
    "float": _refuse_booleans,
    "date": _refuse_counts_as_dates,
    "datetime": _refuse_counts_as_times,
}


def as_text(leaf: Any) -> Any:
    """How a value is read that may be text: `5` is a number and `true` a boolean."""
    refuse = _OF_TEXT.get(leaf["type"])
    return leaf if refuse is None else core_schema.no_info_before_validator_function(refuse, leaf)


def as_json(leaf: Any) -> Any:
    """How JSON's values are read: numbers and booleans as they are, times as text."""
    return {**leaf, "strict": True} if leaf["type"] in {"int", "float", "bool"} else as_text(leaf)


def read_by(read: Callable[[Any], Any], source: Any, handler: GetCoreSchemaHandler) -> Any:
    """A model's core schema, with the values of its fields read by `read`; models within it have seen to theirs."""
    schema: Any = handler(source)
    model: Any = handler.resolve_ref_schema(schema)
    while "fields" not in model:
        model = model["schema"]
    for field in model["fields"].values():
        _read_within(field, read)
    return schema


def _read_within(outer: Any, read: Callable[[Any], Any]) -> None:
    for place in _WITHIN:
        match outer.get(place):
            case {**inner}:
                _read_within(inner, read)
                outer[place] = read(inner)
            case [*several]:
                for inner in several:
                    _read_within(inner, read)
                outer[place] = [read(inner) for inner in several]


def _to_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("give the time with its zone, for example 2026-11-20T10:00:00Z")
    try:
        return value.astimezone(UTC)
    except OverflowError as error:  # pydantic would let it through
        raise ValueError("give a time between the years 1 and 9999, in UTC") from error


def rfc3339(value: datetime) -> str:
    """RFC 3339 in UTC with milliseconds.

    >>> rfc3339(datetime(2026, 11, 20, 10, tzinfo=UTC))
    '2026-11-20T10:00:00.000Z'
    """
    text: str = (value if value.tzinfo is UTC else value.astimezone(UTC)).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


Instant = Annotated[
    datetime,
    AfterValidator(_to_utc),
    PlainSerializer(rfc3339, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A moment: RFC 3339 outside, an aware UTC datetime inside."""


@lru_cache
def _all_fields(record: "type[Record]") -> set[str]:
    """One set for all instances: it is never changed, and ten thousand copies of it are twenty megabytes."""
    return set(record.model_fields)


class Settings(BaseModel):
    """A frozen value that people write in a file, or as text; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler, /) -> Any:
        return read_by(as_text, source, handler)


class Record(BaseModel):
    """A frozen value whose field names are camelCase on the wire."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        validate_default=False,
        defer_build=True,
    )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler, /) -> Any:
        return read_by(as_json, source, handler)

    @classmethod
    def trusted(cls, **values: Any) -> Self:
        """An instance of values that are valid already, such as the store's own: all fields, by name, unchecked.

        `model_construct` looks up every field's aliases and defaults; this costs a tenth of it.
        """
        made = cls.__new__(cls)
        object.__setattr__(made, "__dict__", values)
        object.__setattr__(made, "__pydantic_fields_set__", _all_fields(cls))
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
        return made

    def wire(self) -> dict[str, Any]:
        """This record as the API writes it."""
        return self.model_dump(mode="json", by_alias=True)
