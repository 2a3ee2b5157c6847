"""The settings as a service shows them: each with its value and its default, and none that is a secret.

Errs on the side of silence: of a setting with parts (clusters, targets, accounts, options), only the names of its parts
are shown. Invariants: a value that pydantic holds as a secret is `set` and nothing more; passwords in addresses are
covered; every setting is there.

>>> from clickclock.foundation.config import Config
>>> {each.name: each.value for each in shown(Config(port=9000))}["port"]
9000
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, SecretStr

from clickclock.foundation.record import Record
from clickclock.foundation.redaction import redacted_value

SET = "set"


class ShownSetting(Record):
    """One setting."""

    name: str = Field(description="As in the file of settings.", examples=["port"])
    value: Any = Field(description="What it is; of one with parts, the names of the parts.", examples=[8080])
    default: Any = Field(description="What it is where nobody says anything.", examples=[8080])
    is_default: bool = Field(description="Whether it is its default.", examples=[True])
    description: str = Field(description="What it means.", examples=["Port to listen on."])


def shown(config: BaseModel) -> list[ShownSetting]:
    """Every setting, in the order in which they are declared."""
    return [
        ShownSetting(
            name=name,
            value=_told(getattr(config, name)),
            default=_told(field.get_default(call_default_factory=True)),
            is_default=getattr(config, name) == field.get_default(call_default_factory=True),
            description=field.description or "",
        )
        for name, field in type(config).model_fields.items()
    ]


def _told(value: Any) -> Any:
    match value:
        case SecretStr():
            return SET
        case Enum():
            return value.value
        case None | bool() | int() | float():
            return value
        case str() | Path():
            return redacted_value(str(value))
        case BaseModel():
            return sorted(value.model_fields_set)
        case Mapping():
            return sorted(map(str, value))
        case Sequence():
            return [_name_of(each) for each in value]
    return SET


def _name_of(part: Any) -> Any:
    """Of a list of records, how each is called; a text as it is."""
    return getattr(part, "client_id", SET) if isinstance(part, BaseModel) else _told(part)
