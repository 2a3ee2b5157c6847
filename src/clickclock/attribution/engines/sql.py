"""What all engines that speak SQL do alike: the texts they run, and the tables these are given.

Never knows how rows are got: a member does. Never loads ibis: a run whose texts are known needs none of it.
Invariant: user agents are judged here, each once and not by an engine, and so alike on every one.

>>> issubclass(SqlEngine, ABC)
True
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.clicks.identifier import SEPARATOR, SPACES
from clickclock.attribution.clicks.traffic import fingerprint
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.engines import (
    CLICKED,
    CREDITED,
    FLOODS,
    IDENTIFIED,
    LAST,
    LINKS,
    PATHS,
    RECEIVED,
    SEEN,
    SENT,
    USES,
    Kernel,
    Source,
)
from clickclock.attribution.engines.agents import judged
from clickclock.attribution.engines.batches import as_agreed, numbered
from clickclock.attribution.engines.dialects import Dialect
from clickclock.attribution.engines.files import are_of_today
from clickclock.attribution.engines.sources import NAMED
from clickclock.attribution.engines.sql_cache import Texts
from clickclock.attribution.engines.sql_text import Text
from clickclock.attribution.lake import ADS, TOUCHES

if TYPE_CHECKING:
    import ibis

SHOWN: Final = pa.schema([("click", pa.string())])
IDS: Final = pa.schema([("used", pa.int64())])
KINDS_OF_ORDERS: Final = tuple(name for name in IDENTIFIED.names if name in SPACES)
OLDER: Final = 5
"""One in so many of those who changed may have changed long ago, and is looked up in all touches."""


class SqlEngine(ABC):
    """All of `Engine` but how a text is run."""

    name: str
    version: str
    dialect: Dialect
    texts: Texts

    @abstractmethod
    def rows(self, text: Text, tables: Mapping[str, Source]) -> Iterator[pa.RecordBatch]:
        """The rows of a text as they come, of types that may be others."""

    @abstractmethod
    def walked(self, text: Text, tables: Mapping[str, Source], kernel: Kernel) -> Iterator[pa.RecordBatch]:
        """What the kernel makes of the rows of a text, sorted by `WALK_ORDER`, and of whole persons."""

    @abstractmethod
    def close(self) -> None: ...

    def fingerprint(self, rules: Policies) -> str:
        # What an earlier revision's rows lose is in a text of its own: with it in these, to write them takes a second.
        made = [self._text(f"expressions:{name}_of_today", self.dialect, rules).sql for name in ("touches", "ads")]
        made.append(self._text("expressions:cleaned").sql)
        if rules.has_campaign_names:
            made.append(json.dumps(rules.campaign_names, sort_keys=True))
        hashed = sha256(SEPARATOR.join((fingerprint(), str(NAMED.to_pydict()), *made)).encode()).hexdigest()[:16]
        return f"{self.name} {self.version} {hashed}"

    def touches(self, clicks: Sequence[str], rules: Policies) -> Iterator[pa.RecordBatch]:
        text = self._text("expressions:agents")
        batches = as_agreed(self.rows(text, {"clicks": clicks}), text.gives)
        agents = pa.Table.from_batches(batches, text.gives)["user_agent"].combine_chunks().drop_null()
        tables: dict[str, Source] = {"clicks": clicks, "agents": judged(agents), "sources": NAMED}
        return as_agreed(self.rows(self._of_clicks("touches", clicks, rules), tables), TOUCHES.schema)

    def ads(self, clicks: Sequence[str], ids: pa.Array, rules: Policies) -> pa.Table:
        tables: dict[str, Source] = {"clicks": clicks, "shown": pa.table([ids], SHOWN), "sources": NAMED}
        return self._found(self._of_clicks("ads", clicks, rules), tables, ADS.schema)

    def codes(self, texts: pa.Table, rules: Policies) -> pa.Table:
        schema = pa.schema([(name, pa.int64()) for name in ("number", *KINDS_OF_ORDERS)])
        found = self._found(self._text("expressions:codes", rules), {"texts": numbered(texts)}, schema)
        return found.sort_by("number").drop_columns("number")

    def uses(self, touches: Source) -> pa.Table:
        return self._found(self._text("tying:uses"), {"touches": touches}, USES)

    def floods(self, touches: Source, ads: pa.Table, rules: Policies) -> pa.Table:
        return self._found(self._text("tying:floods", rules), {"touches": touches, "ads": ads}, FLOODS)

    def links(self, touches: Source) -> pa.Table:
        return self._found(self._text("tying:links"), {"touches": touches}, LINKS)

    def received(self, touches: Source, click_ids: pa.Array) -> pa.Table:
        return self._found(self._text("tying:received"), {"touches": touches, "ids": _ids(click_ids)}, RECEIVED)

    def clicked(self, touches: Source, click_ids: pa.Array) -> pa.Table:
        return self._found(self._text("tying:clicked"), {"touches": touches, "ids": _ids(click_ids)}, CLICKED)

    def concerned(self, touches: Source, click_ids: pa.Array, sent: pa.Table, floods: pa.Table) -> pa.Table:
        tables = {"touches": touches, "ids": _ids(click_ids), "sent": sent, "floods": floods}
        text = self._text("tying:concerned").at(pc.min(sent[SENT.names[1]]).as_py())
        return self._found(text, tables, SEEN)

    def last(self, touches: Source, since_ms: int) -> pa.Table:
        return self._found(self._text("tying:last").at(since_ms), {"touches": touches}, LAST)

    def credited(self, rows: Source, order_ids: pa.Array) -> pa.Table:
        tables: dict[str, Source] = {"credits": rows, "keys": _keys(order_ids)}
        return self._found(self._text("revising:credited"), tables, CREDITED)

    def unconverted(self, rows: Source, persons: pa.Array) -> pa.Table:
        return self._found(self._text("revising:unconverted"), {"paths": rows, "keys": _keys(persons)}, PATHS)

    def walk(
        self,
        touches: Source,
        uses: pa.Table,
        floods: pa.Table,
        orders: pa.Table,
        persons: pa.Table,
        kernel: Kernel,
        of: pa.Table | None = None,
    ) -> Iterator[pa.RecordBatch]:
        tables: dict[str, Source] = {"touches": touches, "uses": uses, "floods": floods, "persons": persons}
        tables["orders"] = numbered(orders)
        if of is None:
            return self.walked(self._text("expressions:walk"), tables, kernel)
        text = self._text("expressions:walk_in_part").at(_cut_ms(of))
        return self.walked(text, tables | {"changed": of}, kernel)

    def query(
        self, expression: "ibis.Table", tables: Mapping[str, Source], instant: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        # Here and not at the top: that loads ibis, as whoever has an expression did.
        from clickclock.attribution.engines.columns import text_of  # noqa: PLC0415 (see the line above)

        text = text_of(self.dialect, expression)
        return as_agreed(self.rows(text if instant is None else text.at(instant), tables), text.gives)

    def _text(self, work: str, *given: Any) -> Text:
        return self.texts.of(self.dialect, work, *given)

    def _of_clicks(self, work: str, clicks: Sequence[str], rules: Policies) -> Text:
        """The text for these clicks: a shorter one where none is of an earlier revision."""
        return self._text(f"expressions:{work}{'_of_today' * are_of_today(clicks)}", self.dialect, rules)

    def _found(self, text: Text, tables: Mapping[str, Source], schema: pa.Schema) -> pa.Table:
        return pa.Table.from_batches(as_agreed(self.rows(text, tables), schema), schema)


def _ids(click_ids: pa.Array) -> pa.Table:
    return pa.table([click_ids], IDS)


def _keys(values: pa.Array) -> pa.Table:
    return pa.table({"key": values})


def _cut_ms(changed: pa.Table) -> int:
    """A time before which little is wanted: of a fifth of the persons, and nothing of the others."""
    since_ms = np.sort(changed["since_ms"].to_numpy())
    return int(since_ms[len(since_ms) // OLDER]) if len(since_ms) else 0
