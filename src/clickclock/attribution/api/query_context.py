"""What questions are answered from, and what an answer is: all of it lives in the process that answers.

Never imported by the service, which has no use for an engine. Invariant: a reply is whole before any of it is sent.

>>> reply({"status": "success"}).body
b'{"status":"success"}'
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from clickclock.attribution.agents.exporter import Exporter
from clickclock.attribution.engines import Engine
from clickclock.attribution.files.docket import Docket
from clickclock.attribution.lake import Lake
from clickclock.attribution.models import Factory
from clickclock.attribution.uploads.postback import Partner
from clickclock.attribution.uploads.upload import Conversion
from clickclock.foundation.clock import Clock


@dataclass(frozen=True)
class Desk:
    """A lake, what computes over it, every model that there is, by name, and what is being erased from the lake."""

    lake: Lake
    engine: Engine
    models: Mapping[str, Factory]
    docket: Docket
    journals: Path
    """The folder of all journals: what is not in the lake yet."""
    exporter: Exporter
    upload_model: str
    """The model whose credit is sent to ad networks."""
    conversions: tuple[Conversion, ...]
    """Conversions, beside purchases, that networks get."""
    partners: tuple[Partner, ...]
    exports: Path
    """The folder of files for ad networks and partners."""
    clock: Clock


@dataclass(frozen=True)
class Reply:
    """An answer's body and what it is."""

    body: bytes
    media_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def reply(payload: Mapping[str, Any]) -> Reply:
    """A payload as JSON."""
    return Reply(msgspec.json.encode(payload))
