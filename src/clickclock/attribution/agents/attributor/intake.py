"""Clicks → touches, and views → theirs: what came into the lake since the last time, in codes.

Never sees a click twice, and never misses one: the commit that brings touches notes the version of the clicks that they
are of. Invariants: the touches of a day are those of the clicks of that day in the noted version; all were made by one
engine under one set of rules, or are made anew.

If we die before the commit of the touches, some ads are there that no touch has: they are harmless, and come again. If
they are of other rules, they stand instead of those that the touches have; their note says so, and all is made anew.

>>> take_in(lake, engine, policies, now_ms).version   # doctest: +SKIP
12
"""

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.crediting.columns.codes import among
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.engines import Engine
from clickclock.attribution.errors import VersionGone
from clickclock.attribution.lake import (
    ADS,
    CLICKS,
    DAY,
    TOUCHES,
    VIEW_ADS,
    VIEW_TOUCHES,
    VIEWS,
    Lake,
    Stored,
    Table,
)

AT_ONCE_BYTES: Final = 2**27
"""Of days that are taken in together; a day is never cut. While some are, the files of those before go to disk."""
_DAY_US: Final = 86_400_000_000
_NOTE_OF_CLICKS: Final = "clicks"
_NOTE_OF_RULES: Final = "rules"


@dataclass(frozen=True)
class TakenIn:
    """Where the touches now stand. Versions are those of Delta's logs."""

    version: int
    """The version of the touches."""
    ads_version: int
    raw_version: int | None
    """The version of what was taken in; None if there is no such table."""
    engine: str
    """The fingerprint of what made them."""
    clicks: int
    """How many were taken in now, those of days that were made anew among them."""


@dataclass(frozen=True)
class Intake:
    """A raw table, and the tables that its rows become."""

    raw: Table
    touches: Table
    ads: Table
    is_of_views: bool = False


OF_CLICKS: Final = Intake(CLICKS, TOUCHES, ADS)
OF_VIEWS: Final = Intake(VIEWS, VIEW_TOUCHES, VIEW_ADS, is_of_views=True)


@dataclass(frozen=True)
class _Wanted:
    version: int | None
    files: tuple[Stored, ...]
    instead_of: frozenset[str] | None
    """The days whose touches are replaced; None for all."""


def take_in(lake: Lake, engine: Engine, policies: Policies, now_ms: int, intake: Intake = OF_CLICKS) -> TakenIn:
    """Make the touches those of the clicks, or of the views, as they are now.

    Raises `RunOvertaken`, `LakeUnreachable`.
    """
    made_by = engine.fingerprint(policies)
    rules = _number(made_by)
    ledger, ads_ledger = lake.ledger(intake.touches), lake.ledger(intake.ads)
    # Ads that an older version committed have no note, and are those of its touches.
    is_same = ledger.noted(_NOTE_OF_RULES) == rules and ads_ledger.noted(_NOTE_OF_RULES) in (rules, None)
    since = ledger.noted(_NOTE_OF_CLICKS) if is_same else None
    wanted = _wanted(lake, intake.raw.name, since)
    name = f"part-{uuid.uuid4().hex}"
    touches, ads = ledger.parts(name, now_ms), ads_ledger.parts(name, now_ms)
    known = _known_ads(lake, intake.ads) if is_same else np.empty(0, np.int64)
    with ThreadPoolExecutor(1, "ads") as beside:
        described: list[Future[pa.Table]] = []
        for some in _together(wanted.files):
            fresh: list[pa.Table] = []
            for made in engine.touches(lake.addresses(intake.raw.name, some), policies):
                batch = _of_views(made) if intake.is_of_views else made
                rows = pa.Table.from_batches([batch]).append_column(DAY, _days(batch["received_us"]))
                touches.write(rows)
                codes = batch["ad"].unique().to_numpy()
                codes = codes[~among(known, codes)]
                if len(codes):
                    known = np.sort(np.concatenate([known, codes]))
                    fresh.append(rows.take(pc.index_in(pa.array(codes), batch["ad"])).select(["id", DAY]))
            touches.settle()
            if fresh:
                described.append(beside.submit(_ads_of, lake, engine, policies, intake, some, pa.concat_tables(fresh)))
        # What waits to be written takes one core, as long as ads are described.
        files = touches.close()
        for each in described:
            ads.write(each.result())
    if not is_same or ads.rows:
        ads_ledger.commit(ads.close(), now_ms, instead_of=() if is_same else None, notes={_NOTE_OF_RULES: rules})
    if not is_same or wanted.version != since:
        notes = {_NOTE_OF_RULES: rules} | ({} if wanted.version is None else {_NOTE_OF_CLICKS: wanted.version})
        ledger.commit(files, now_ms, instead_of=wanted.instead_of, notes=notes)
    return TakenIn(ledger.version, ads_ledger.version, wanted.version, made_by, touches.rows)


def _wanted(lake: Lake, name: str, since: int | None) -> _Wanted:
    """The files of a table to be taken in, after its version `since`."""
    raw = lake.table(name)
    if raw is None:
        return _Wanted(None, (), None)
    if since is not None:
        try:
            changes = lake.changes(name, since)
        except VersionGone:
            since = None
    if since is None:
        version = raw.version()
        return _Wanted(version, tuple(lake.stored(name, version)), None)
    # Of days from which something went, and of files that were merged with others, all is made anew.
    days = {each.partition for each in changes.removed} | {
        each.partition for each in changes.added if not each.is_there
    }
    files = [each for each in changes.added if each.partition not in days]
    if days:
        files += [each for each in lake.stored(name, changes.version) if each.partition in days]
    return _Wanted(changes.version, tuple(files), frozenset(day for day in days if day is not None))


def _together(files: Iterable[Stored]) -> Iterator[list[Stored]]:
    """The files in the order of their days, as many days at a time as are worth it."""
    some: list[Stored] = []
    for file in sorted(files, key=lambda file: (file.partition or "", file.path)):
        is_next_day = bool(some) and some[-1].partition != file.partition
        if is_next_day and sum(each.size_bytes for each in some) >= AT_ONCE_BYTES:
            yield some
            some = []
        some.append(file)
    if some:
        yield some


def _ads_of(
    lake: Lake, engine: Engine, policies: Policies, intake: Intake, files: Iterable[Stored], touches: pa.Table
) -> pa.Table:
    """The ads of touches, which are of clicks in these files. Most days show few ads that no day before has shown."""
    days = set(map(str, touches[DAY].unique().to_pylist()))
    clicks = lake.addresses(intake.raw.name, [file for file in files if file.partition in days])
    ads = engine.ads(clicks, touches["id"].combine_chunks(), policies)
    if intake.is_of_views:
        ads = ads.set_column(ads.column_names.index("ad"), ads.schema.field("ad"), pc.bit_wise_not(ads["ad"]))
    if not policies.has_campaign_names:
        return ads
    names = policies.named(*(ads[name].to_pylist() for name in ("client_id", "channel", "campaign")))
    return ads.set_column(
        ads.column_names.index("campaign"), ads.schema.field("campaign"), pa.array(names, pa.string())
    )


def _days(instants_us: pa.Array) -> pa.Array:
    return pa.array((instants_us.to_numpy() // _DAY_US).astype(np.int32)).cast(pa.date32())


def _of_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Touches of views, whose numbers are others than those of clicks that say the same; a view spends no click id."""
    columns = {name: batch[name] for name in batch.schema.names}
    columns |= {name: pc.bit_wise_not(batch[name]) for name in ("ad", "ad_key", "parameters")}
    columns["click_id"] = pa.nulls(batch.num_rows, batch.schema.field("click_id").type)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def _known_ads(lake: Lake, table: Table) -> NDArray[np.int64]:
    """Their codes, sorted."""
    batches = [batch["ad"].to_numpy() for batch in lake.scan(table.name, columns=["ad"])]
    return np.sort(np.concatenate([np.empty(0, np.int64), *batches]))


def _number(text: str) -> int:
    """A text as a number that a note can hold."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1
