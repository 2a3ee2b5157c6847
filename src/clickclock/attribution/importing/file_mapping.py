r"""A file mapping: which of a file's columns are ours, and how its values are written. People write it as TOML.

Never reads a file and holds no expressions: columns by name, constants, words translated, rows left out. Invariants: a
mapping is of one kind of row; each column that it names is one that this kind has; what is wrong with it is reported
all together.

>>> mapping = read('kind = "orders"\n[columns]\norder_id = "Name"\namount = ["Total", "Summe"]\n', "shop.toml")
>>> mapping.columns["amount"]
('Total', 'Summe')
"""

import json
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from clickclock.attribution.orders import money
from clickclock.foundation.errors import Fault, Invalid
from clickclock.foundation.record import Settings


class Kind(StrEnum):
    """What a row of a file is."""

    ORDERS = "orders"
    CLICKS = "clicks"
    COSTS = "costs"


CURRENCY: Final = "{currency}"
"""In the name of a column: three letters that say in which currency the column is."""
CANCELLED_AT: Final = "cancelled_at"
"""A column that is not empty where an order was cancelled."""
DAY_UNTIL: Final = "day_until"
"""A column with the last day of a cost, which has to be its first one."""
URL: Final = "url"
"""A column with the address of a page, whose parameters are the click's."""
_OF_ORDERS: Final = (
    *("client_id", "order_id", "event_time", "amount", "currency", "status", "refunded_amount", "cli_ubid"),
    *("device_id", "customer_id", "seller_id", "kind", "items", "sku_id", "price", "quantity", "received_at"),
    CANCELLED_AT,
)
_OF_COSTS: Final = (
    *("client_id", "day", DAY_UNTIL, "channel", "campaign", "ad_set", "ad", "amount", "currency"),
)  # fmt: skip
COLUMNS: Final[Mapping[Kind, tuple[str, ...] | None]] = {
    Kind.ORDERS: _OF_ORDERS,
    Kind.COSTS: _OF_COSTS,
    Kind.CLICKS: None,  # any parameter
}
REQUIRED: Final = {
    Kind.ORDERS: ("client_id", "order_id", "event_time", "amount", "currency"),
    Kind.COSTS: ("client_id", "day", "channel", "amount", "currency"),
    Kind.CLICKS: ("client_id",),
}
"""Columns without which there is nothing to keep; a mapping may give them as constants."""


def _names(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
"""One name, or several of which the file has one."""


class Times(Settings):
    """How times and days are written."""

    order: Literal["dmy", "mdy", "ymd"] | None = Field(None, description="The order of day, month and year.")
    zone: str | None = Field(None, description="The zone of times that name none.")
    unit: Literal["s", "ms", "us"] | None = Field(None, description="The unit of times that are numbers.")

    @field_validator("zone")
    @classmethod
    def _known(cls, zone: str | None) -> str | None:
        if zone is not None:
            try:
                ZoneInfo(zone)
            except (ZoneInfoNotFoundError, ValueError, OSError) as error:
                raise ValueError(f"`{zone}` is no time zone; give one such as Europe/Berlin") from error
        return zone


class Numbers(Settings):
    """How amounts are written."""

    decimal: Literal[".", ","] | None = Field(None, description="The decimal sign; the other one groups thousands.")
    micros: bool = Field(default=False, description="Whether amounts are millionths of the currency.")


class Lines(Settings):
    """That an order has a row for each of its line items, one below the other."""

    amount: Literal["once", "sum"] = Field(
        "once",
        description="Whether `amount` is the order's, or the line's: then lines add up, negative ones as refund.",
    )


class Totals(Settings):
    """Which rows are sums of others, or remarks of the exporter."""

    begin: Names = Field((), description="A row whose first text begins with one of these.")
    blank: Names = Field((), description="Our columns: a row in which one of them is empty.")


class FileMapping(Settings):
    """What the columns of a kind of file are."""

    kind: Kind
    name: str = Field("", description="What it is called; a preset's name.")
    title: str = Field("", description="What it reads, for people.")
    as_of: str = Field("", description="The exporter's version or the date of its documentation.")
    recognised_by: tuple[Names, ...] = Field((), description="Columns that a file of this kind has.")
    columns: dict[str, Names] = Field({}, description="Our columns, and the file's names of them.")
    constants: dict[str, str] = Field({}, description="Our columns, and what they are where the file has none.")
    optional: Names = Field((), description="Our columns that a file may lack.")
    hashed: Names = Field((), description="Our columns of which the SHA-256 is kept.")
    values: dict[str, dict[str, str]] = Field({}, description="Words of our columns, translated.")
    leave_out: dict[str, Names] = Field({}, description="The file's columns, and values whose rows are left out.")
    only: dict[str, Names] = Field({}, description="The file's columns, and values without which a row is left out.")
    needs_any: Names = Field((), description="Parameters: a click with none of them is left out.")
    header: tuple[str, ...] = Field((), description="The names of the columns of a file without a header.")
    ignored: Names = Field((), description="Further columns that the exporter writes.")
    times: Times = Times()
    numbers: Numbers = Numbers()
    lines: Lines | None = None
    totals: Totals = Totals()
    amends: bool = Field(default=False, description="Whether a later row of an order amends it.")
    adds_up: bool = Field(default=False, description="Whether costs of one day and ad in one file are added up.")

    @field_validator("columns", "constants", "values")
    @classmethod
    def _trimmed(cls, given: dict[str, Any]) -> dict[str, Any]:
        return {name.strip(): value for name, value in given.items()}

    @model_validator(mode="after")
    def _of_its_kind(self) -> "FileMapping":
        known = COLUMNS[self.kind]
        wrong = [
            f"`{name}` is no column of {self.kind}; there are {', '.join(known)}"
            for name in (*self.columns, *self.constants, *self.values, *self.hashed, *self.totals.blank)
            if known is not None and name not in known
        ]
        wrong += [f"{name} names no column of the file" for name, names in self.columns.items() if not all(names)]
        currency = self.constants.get("currency")
        if currency is not None and currency not in money.DIGITS:
            wrong.append(f"`{currency}` is no currency of ISO 4217; give its three letters in capitals, such as EUR")
        if self.lines is not None and self.kind is not Kind.ORDERS:
            wrong.append("lines belong to orders alone")
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of a column that it knows, without a key in brackets."""
        given = [name for names in self.columns.values() for name in names]
        given += [*self.leave_out, *self.only, *self.ignored, *self.header]
        given += [name for names in self.recognised_by for name in names]
        return tuple(dict.fromkeys(split_key(name)[0] for name in given))


def split_key(name: str) -> tuple[str, str | None]:
    """The name of a column, and which of the named values in its cells is meant.

    >>> split_key("Note Attributes[cli_ubid]"), split_key("Total")
    (('Note Attributes', 'cli_ubid'), ('Total', None))
    """
    if name.endswith("]") and "[" in name[1:]:
        column, _, key = name[:-1].rpartition("[")
        return column, key
    return name, None


def read(text: str, source: str) -> FileMapping:
    """The mapping that a TOML text is. Raises `Invalid` with every fault; `source` names it."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{source} is no TOML: {error}.", [Fault(source, f"{error}.")]) from error
    try:
        return FileMapping.model_validate(given)
    except ValidationError as error:
        faults = [
            Fault(".".join(map(str, each["loc"])), f"{each['msg'].removeprefix('Value error, ')}.")
            for each in error.errors(include_url=False)
        ]
        raise Invalid(f"{source} is no mapping; fix the named parts.", faults) from error


def written(mapping: FileMapping, comment: str = "") -> str:
    """A mapping as TOML that `read` reads back; `comment` stands in front of it."""
    given = mapping.model_dump(mode="json", exclude_defaults=True)
    head = [f"# {line}" for line in comment.splitlines()]
    plain = [f"{_key(name)} = {_value(value)}" for name, value in given.items() if not isinstance(value, dict)]
    tables = [
        line for name, value in given.items() if isinstance(value, dict) for line in ("", *_table(name, value))
    ]  # fmt: skip
    return "\n".join([*head, *plain, *tables]) + "\n"


def _table(name: str, table: Mapping[str, Any]) -> list[str]:
    inner = {key: value for key, value in table.items() if isinstance(value, dict)}
    lines = [f"[{name}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items() if key not in inner)]
    if inner and len(inner) == len(table):
        lines = []
    for key, value in inner.items():
        lines += _table(f"{name}.{_key(key)}", value)
    return lines


def _value(value: Any) -> str:
    if isinstance(value, list):
        return (
            f"[{', '.join(map(_value, value))}]" if len(value) != 1 or isinstance(value[0], list) else _value(value[0])
        )
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else json.dumps(name, ensure_ascii=False)
