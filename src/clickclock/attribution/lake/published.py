"""Results: the rows that make versions seen.

Never changes a row that is there. Invariant: of two runs that publish the same number, one is refused, whichever came
first to the table.

>>> published([])
[]
"""

import uuid
from collections.abc import Iterable, Sequence

import msgspec
import pyarrow as pa

from clickclock.attribution.errors import RunOvertaken
from clickclock.attribution.lake.derived import RESULTS
from clickclock.attribution.lake.ledger import Ledger
from clickclock.attribution.reporting.result import Result


def published(batches: Iterable[pa.RecordBatch]) -> list[Result]:
    """The versions that rows of `RESULTS` are, oldest first; columns of a later release are passed over."""
    results = [msgspec.convert(row, Result) for batch in batches for row in batch.to_pylist()]
    return sorted(results, key=lambda result: result.version)


def publish(ledger: Ledger, before: Sequence[Result], result: Result, now_ms: int) -> None:
    """Add a version after those that `ledger` has. Raises `RunOvertaken` if it is not the next one."""
    latest = before[-1].version if before else 0
    if result.version != latest + 1:
        raise RunOvertaken(f"Another run has published version {latest} meanwhile; nothing of this one is seen.")
    parts = ledger.parts(f"version-{result.version}-{uuid.uuid4().hex}", now_ms)
    parts.write(pa.Table.from_pylist([msgspec.structs.asdict(result)], RESULTS.whole))
    ledger.commit(parts.close(), now_ms, notes={"version": result.version})
