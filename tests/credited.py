r"""Small worlds for attribution: clicks and orders in a lake, attributed by the real engine, and what came of it.

>>> click(1, START_MS)[:2]
b'C\t'
"""

import asyncio
import json
import uuid
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.agents.attributor import Attributor, Ran, Settings
from clickclock.attribution.clicks.entry import EntryKind, connection, encode
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.engines import Engine
from clickclock.attribution.engines.duckdb import DuckDB
from clickclock.attribution.engines.sql_cache import Texts
from clickclock.attribution.lake import (
    COUNTS,
    CREDITS,
    DERIVED,
    FITTED,
    FOLDED,
    IDENTITIES,
    TIES,
    UNCONVERTED,
    Lake,
    credits_table,
)
from clickclock.attribution.reporting.result import Result
from clickclock.foundation.clock import SystemClock

START_MS = 1_793_440_800_000
"""31 October 2026, 10:00 UTC."""
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
KEYS = {
    CREDITS: ("client_id", "order_id", "place"),
    IDENTITIES.name: ("code",),
    UNCONVERTED.name: ("client_id", "month", "person"),
    TIES.name: ("kind", "code", "other", "at_ms"),
    FITTED.name: ("client_id", "order_month", "model", "channel"),
    COUNTS.name: ("client_id", "order_month", "model", "path"),
    FOLDED.name: ("client_id", "order_id"),
}
"""What tells the rows of each table apart."""
MODELS = ("last", "linear", "markov", "shapley_rate")
TEXTS = Texts()
"""What engines of all tests know: to have ibis write the texts of a run takes as long as all else in a small one."""


def click(
    number: int,
    time_ms: int,
    *,
    received_ms: int | None = None,
    network: str = "n",
    agent: str = "iPhone",
    detail: str = "observed",
    **said: str,
) -> bytes:
    """The entry of a click; what is not said is usual, and what is said to be empty is left out."""
    query = {"client_id": "shop", "seller_id": "s1", "asvt": "v", "atag": "t", "source": "google", **said}
    raw = "&".join(f"{name}={value}" for name, value in {**query, "event_time": str(time_ms)}.items() if value)
    origin = connection(network, agent.encode(), b"")
    received_ms = time_ms + 1000 if received_ms is None else received_ms
    return encode(EntryKind.CLICK, f"{number:032x}", received_ms, origin, detail.encode(), raw.encode())


def view(number: int, time_ms: int, **said: Any) -> bytes:
    """The entry of a view, as that of a click."""
    return EntryKind.VIEW.encode() + click(number, time_ms, **said)[1:]


def order(number: int, order_id: str, placed_ms: int, *, received_ms: int | None = None, **said: Any) -> bytes:
    """The entry of an order, or of its amendment."""
    usual = {"client_id": "shop", "order_id": order_id, "event_time": placed_ms, "amount": "10.00", "currency": "EUR"}
    received_ms = placed_ms + 1000 if received_ms is None else received_ms
    raw = json.dumps({**usual, **said}).encode()
    return encode(EntryKind.ORDER, f"{number:032x}", received_ms, connection("", b"", b""), b"", raw)


def identify(number: int, time_ms: int, *, received_ms: int | None = None, **said: str) -> bytes:
    """The entry of an identification."""
    raw = "&".join(f"{name}={value}" for name, value in {"client_id": "shop", **said, "event_time": time_ms}.items())
    received_ms = time_ms if received_ms is None else received_ms
    return encode(EntryKind.OTHER, f"{number:032x}", received_ms, connection("", b"", b""), b"identify", raw.encode())


def load(lake: Lake, *entries: bytes) -> None:
    """Bring entries into the lake, as the compactor does."""
    journal = uuid.uuid4().hex
    loading = lake.load()
    writer = lake.writer(f"part-{journal}", START_MS)
    writer.add(journal, 1, [b"".join(entries)], loading.lacking(journal, 1))
    loading.commit([writer.close()], {journal: [1]}, {})


def erase(lake: Lake, table: str, ids: Iterable[str]) -> None:
    """Take rows out of the lake."""
    delta = lake.table(table)
    if delta is not None and (wanted := ", ".join(f"'{each}'" for each in ids)):
        delta.delete(f"id IN ({wanted})")


def duckdb(scratch: Path, lake: Lake) -> DuckDB:
    """An engine with little, for the files of a lake."""
    return DuckDB(memory_mb=256, threads=1, temp_dir=scratch, storage_options=lake.storage_options, texts=TEXTS)


def attributor(
    lake: Lake,
    scratch: Path,
    settings: Settings | None = None,
    code_version: str = "1",
    history_days: float = 7.0,
    engine: Engine | None = None,
) -> Attributor:
    """An attributor with some models of each kind, on DuckDB if no engine is given."""
    settings = settings or Settings(Policies(), {name: {} for name in MODELS})
    engine = engine or duckdb(scratch, lake)
    clock = SystemClock()
    return Attributor(
        lake, engine, settings, clock, code_version=code_version, scratch=scratch, history_days=history_days
    )


def run(
    lake: Lake,
    scratch: Path,
    settings: Settings | None = None,
    *,
    full: bool = False,
    engine: Engine | None = None,
) -> Ran:
    """One run."""
    return asyncio.run(attributor(lake, scratch, settings, engine=engine).step(full=full))


def rows(lake: Lake, result: Result, table: str) -> pa.Table:
    """The rows of a table in a version, all in one order; those of credits with all models' columns."""
    if table == CREDITS:
        models = sorted(chain(*lake.models(result)))
        schema = credits_table(models).whole
        facts = credits_table(()).whole.names
        whole = lake.credits(result, None, facts, models)
        found = pa.concat_tables([schema.empty_table(), *(some.select(schema.names).cast(schema) for some in whole)])
    else:
        whole = {each.name: each.whole for each in DERIVED}[table]
        found = pa.Table.from_batches(lake.scan(table, version=result.reads(table)), whole)
    if table == COUNTS.name:  # lists have no order
        found = found.set_column(found.column_names.index("path"), "path", pc.binary_join(found["path"], " > "))
    return found.select(sorted(found.column_names)).sort_by([(name, "ascending") for name in KEYS[table]])


def journeys(lake: Lake, result: Result) -> dict[str, list[str]]:
    """The touchpoints of each order, by the numbers of the clicks; or why there is none."""
    found: dict[str, list[str]] = {}
    for row in rows(lake, result, CREDITS).to_pylist():
        touchpoint = row["reason"] or f"{int(row['click_id'], 16)}"
        found.setdefault(row["order_id"], []).append(touchpoint)
    return found
