"""Expressions as engines read them: texts, kept from one run to the next.

Never loads ibis for a text that is known: to load it, and to have it write what a run asks, takes a second, which is
longer than most runs' work. Invariants: what was kept by another program or under other rules, or is not whole, counts
as nothing; to keep a text is never worth an error.

>>> from clickclock.attribution.engines.dialects import DUCKDB
>>> Texts().of(DUCKDB, "tying:clicked").gives.names[:2]
['click_id', 'parameters']
"""

import json
from base64 import b64decode, b64encode
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any, Final

import pyarrow as pa

from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.engines.dialects import Dialect
from clickclock.attribution.engines.sql_text import Text

ALWAYS: Final = (
    *(f"expressions:{name}" for name in ("agents", "cleaned", "walk", "walk_in_part")),
    *(f"revising:{name}" for name in ("credited", "unconverted")),
    *(f"tying:{name}" for name in ("clicked", "concerned", "last", "links", "received", "uses")),
)
"""Texts that do not depend on rules."""
_WRITERS: Final = ("clickclock", "ibis-framework", "sqlglot")
_PROGRAM: Final = Path(__file__).parents[1]
_WRITING: Final = Lock()
"""Held by whoever has ibis write: what it remembers of equal expressions is one for all threads, and not safe."""


class Texts:
    """The texts of what runs ask. Several threads may ask at once."""

    def __init__(self, file: Path | None = None, rules: str = "") -> None:
        """In `file` they are kept, for those who have the same rules."""
        self._file = file
        self._rules = rules
        self._known: dict[str, Text] | None = None

    def of(self, dialect: Dialect, work: str, *given: Any) -> Text:
        """What a function of this room (`module:function`) makes of what it is given."""
        name = _name(dialect, work, given)
        with _WRITING:
            if self._known is None:
                self._known = self._kept()
            if name not in self._known:
                self._known[name] = _written(dialect, work, given)
                self._keep(dialect, self._known)
            return self._known[name]

    def _kept(self) -> dict[str, Text]:
        with suppress(OSError, ValueError):
            if self._file is not None:
                seal, _, kept = self._file.read_text().partition("\n")
                if seal == self._seal(kept):
                    return {name: _read(each) for name, each in json.loads(kept).items()}
        return {}

    def _keep(self, dialect: Dialect, known: dict[str, Text]) -> None:
        if self._file is None:
            return
        # The next run asks otherwise than this one, and is to need no ibis at all.
        known |= {name: _written(dialect, work, ()) for name, work in _always(dialect).items() if name not in known}
        kept = json.dumps({name: _said(text) for name, text in known.items()})
        new = self._file.with_name(f"{self._file.name}.new")
        with suppress(OSError):
            new.touch(mode=0o600)
            new.write_text(f"{self._seal(kept)}\n{kept}")
            new.replace(self._file)

    def _seal(self, kept: str) -> str:
        return sha256("\0".join((_program(), self._rules, kept)).encode()).hexdigest()


def _name(dialect: Dialect, work: str, given: tuple[Any, ...]) -> str:
    said = [each.settings if isinstance(each, Policies) else each for each in given]
    return f"{dialect.name} {work} {sha256(repr(said).encode()).hexdigest()}"


def _always(dialect: Dialect) -> dict[str, str]:
    return {_name(dialect, work, ()): work for work in ALWAYS}


def _written(dialect: Dialect, work: str, given: tuple[Any, ...]) -> Text:
    # Here and not at the top: that loads ibis.
    from clickclock.attribution.engines.columns import text_of  # noqa: PLC0415 (see the line above)

    module, _, function = work.partition(":")
    return text_of(dialect, getattr(import_module(f"clickclock.attribution.engines.{module}"), function)(*given))


@cache
def _program() -> str:
    """Another one for each state of this program, and of who writes its texts."""
    lines = sha256(repr([version(name) for name in _WRITERS]).encode())
    for file in sorted(_PROGRAM.rglob("*.py")):
        lines.update(file.read_bytes())
    return lines.hexdigest()


def _said(text: Text) -> dict[str, Any]:
    """As JSON can say it."""
    reads = {table: _schema_said(schema) for table, schema in text.reads.items()}
    return {"sql": text.sql, "reads": reads, "gives": _schema_said(text.gives)}


def _read(said: dict[str, Any]) -> Text:
    reads = {table: _schema_read(schema) for table, schema in said["reads"].items()}
    return Text(said["sql"], reads, _schema_read(said["gives"]))


def _schema_said(schema: pa.Schema) -> str:
    return b64encode(schema.serialize().to_pybytes()).decode()


def _schema_read(said: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(b64decode(said)))
