"""What all engines that speak SQL do alike: the expressions they run, and the tables these are given.

Never knows how rows are got: a member does. Invariant: which user agents are bots is asked of `traffic`, once for each
of them, and so is the same on every engine.

>>> issubclass(SqlEngine, ABC)
True
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import ibis
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clickclock.attribution.engines import FLOODS, USES, Kernel, Source, expressions
from clickclock.attribution.engines.batches import as_agreed, numbered
from clickclock.attribution.engines.columns import arrow_schema
from clickclock.attribution.engines.dialects import Dialect
from clickclock.attribution.lake import ADS, TOUCHES
from clickclock.attribution.policy import Policies
from clickclock.attribution.traffic import is_bot

OLDER: Final = 5
"""One in so many of those who changed may have changed long ago, and is looked up in all touches."""


class SqlEngine(ABC):
    """All of `Engine` but how an expression is run."""

    name: str
    version: str
    dialect: Dialect

    @abstractmethod
    def rows(self, expression: ibis.Table, tables: Mapping[str, Source]) -> Iterator[pa.RecordBatch]:
        """The rows of an expression as they come, of types that may be others."""

    @abstractmethod
    def walked(self, expression: ibis.Table, tables: Mapping[str, Source], kernel: Kernel) -> Iterator[pa.RecordBatch]:
        """What the kernel makes of the rows of an expression, sorted by `WALK_ORDER`, and of whole persons."""

    @abstractmethod
    def close(self) -> None: ...

    def fingerprint(self, rules: Policies) -> str:
        return f"{self.name} {self.version} {expressions.rules_hash(self.dialect, rules)}"

    def touches(self, clicks: Sequence[str], rules: Policies) -> Iterator[pa.RecordBatch]:
        agents = self.query(expressions.agents(), {"clicks": clicks})
        bots = [agent for batch in agents for agent in batch["user_agent"].to_pylist() if is_bot(agent)]
        tables = {"clicks": clicks, "bots": pa.table({"user_agent": bots}, expressions.BOTS)}
        return as_agreed(self.rows(expressions.touches(self.dialect, rules), tables), TOUCHES.schema)

    def ads(self, clicks: Sequence[str], ids: pa.Array, rules: Policies) -> pa.Table:
        tables = {"clicks": clicks, "shown": pa.table([ids], expressions.SHOWN)}
        found = self.rows(expressions.ads(self.dialect, rules), tables)
        return pa.Table.from_batches(as_agreed(found, ADS.schema), ADS.schema)

    def codes(self, texts: pa.Table, rules: Policies) -> pa.Table:
        batches = self.query(expressions.codes(rules), {"texts": numbered(texts)})
        schema = pa.schema([(name, pa.int64()) for name in ("number", *expressions.KINDS_OF_ORDERS)])
        return pa.Table.from_batches(batches, schema).sort_by("number").drop_columns("number")

    def uses(self, touches: Source) -> pa.Table:
        return pa.Table.from_batches(as_agreed(self.rows(expressions.uses(), {"touches": touches}), USES), USES)

    def floods(self, touches: Source, ads: pa.Table, rules: Policies) -> pa.Table:
        found = self.rows(expressions.floods(rules), {"touches": touches, "ads": ads})
        return pa.Table.from_batches(as_agreed(found, FLOODS), FLOODS)

    def links(self, touches: Source) -> NDArray[np.int64]:
        batches = self.query(expressions.links(), {"touches": touches})
        pairs = [np.column_stack([column.to_numpy() for column in batch.columns]) for batch in batches]
        return np.concatenate([np.empty((0, 2), np.int64), *pairs])

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
            return self.walked(expressions.walk(), tables, kernel)
        return self.walked(expressions.walk(_cut_ms(of)), tables | {"changed": of}, kernel)

    def query(self, expression: ibis.Table, tables: Mapping[str, Source]) -> Iterator[pa.RecordBatch]:
        return as_agreed(self.rows(expression, tables), arrow_schema(expression))


def _cut_ms(changed: pa.Table) -> int:
    """A time before which little is wanted: of a fifth of the persons, and nothing of the others."""
    since_ms = np.sort(changed["since_ms"].to_numpy())
    return int(since_ms[len(since_ms) // OLDER]) if len(since_ms) else 0
