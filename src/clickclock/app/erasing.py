"""Erasure and retention: an `Eraser` or a `Retainer` made from the configuration, and run alone with the lake.

Never listens anywhere and starts nothing. Invariants: whoever erases or retains is the only one of this machine that
writes the lake or imports; the audit trail has an erasure before it begins; what is interrupted is on the docket, and
the next call does it first.

>>> erase(config, None)   # doctest: +SKIP
[]
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from clickclock.app.accounts import policies_of
from clickclock.app.data_folder import kept_secret, make_data_dir
from clickclock.app.exporting import folder_of
from clickclock.app.importing import SLOT
from clickclock.app.lake import compactor_of, docket_of, found_lake
from clickclock.app.lake_lock import alone
from clickclock.app.trail import record
from clickclock.attribution.agents.eraser import Eraser, Waiting
from clickclock.attribution.agents.retainer import Retainer, Retention
from clickclock.attribution.erasing.erasure import Erasure, Identifier
from clickclock.attribution.erasing.receipt import Receipt
from clickclock.attribution.errors import ErasureUnfinished, JournalTaken
from clickclock.attribution.files.export_files import ExportFiles
from clickclock.attribution.journal import held, is_taken
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.ids import new_id
from clickclock.scheduler.access.audit import Resource

POLL_S = 0.2
"""How often it is looked whether a segment has been sealed."""
SEALED_WITHIN_S = 30.0
"""So long after its time, when the disk is busy."""


def erase(
    config: Config, asked: Identifier | None, client_id: str = "", *, with_person: bool = False, reason: str = ""
) -> list[Receipt]:
    """Do what is on the docket, then what is asked; a receipt for each. See `Eraser.step` for what it raises."""
    lake = found_lake(config)
    make_data_dir(config.data_dir)
    docket, clock = docket_of(config), SystemClock()
    with alone(config), _no_imports(config):
        eraser = Eraser(
            config.journal_dir,
            lake,
            ExportFiles(folder_of(config)),
            docket,
            clock,
            compactor_of(config, processes=1).step,
            policies_of(config),
            bytes.fromhex(kept_secret(config.data_dir, "receipt-secret")),
        )
        made = asyncio.run(_finish(eraser, config.segment_age_s))
        if asked is not None:
            record(config, "attribution erase", Resource.ERASURE, client_id)
            erasure = Erasure(
                id=new_id().replace("-", ""),
                client_id=client_id,
                asked=asked,
                with_person=with_person,
                reason=reason,
                until_ms=clock.epoch_ms(),
            )
            docket.write(erasure)
            made += asyncio.run(_finish(eraser, config.segment_age_s))
    return made


async def _finish(eraser: Eraser, segment_age_s: float) -> list[Receipt]:
    """Step until it is done. A collector seals what it writes when it is old enough."""
    until_s = time.monotonic() + segment_age_s + SEALED_WITHIN_S
    while isinstance(done := await eraser.step(), Waiting):
        while any(segment.exists() for segment in done.segments):
            if time.monotonic() > until_s:
                raise ErasureUnfinished(f"{done.segments[0]} holds it and is still written to; run it again later.")
            await asyncio.sleep(POLL_S)
    return [] if done is None else [done]


@contextmanager
def _no_imports(config: Config) -> Iterator[None]:
    """Nobody imports meanwhile: what a replay has read from the lake could come back."""
    folder = config.journal_dir / SLOT
    if folder.exists() and not is_taken(folder):
        asyncio.run(compactor_of(config, processes=1).step())  # seals what an import has left that was killed
    try:
        with held(folder):
            yield
    except JournalTaken as taken:
        sentence = "An import or replay runs with this data folder; wait until it has ended, then erase again."
        raise JournalTaken(sentence) from taken


def retain(config: Config) -> Receipt | None:
    """Delete what is older than the configuration lets it be; see `Retainer.step`."""
    lake = found_lake(config)
    make_data_dir(config.data_dir)
    retention = Retention(config.click_retention_days, config.order_retention_days)
    with alone(config):
        return Retainer(lake, SystemClock(), retention).step()
