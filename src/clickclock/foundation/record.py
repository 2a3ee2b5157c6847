"""The base of every noun that crosses the API: frozen, camelCase outside, unknown fields refused.

Never does I/O. Invariant: what `model_dump(mode="json", by_alias=True)` writes, `model_validate` reads back.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel


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


class Record(BaseModel):
    """A frozen value whose field names are camelCase on the wire."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, validate_default=False
    )

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
