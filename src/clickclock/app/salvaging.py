"""Salvages of damaged segments, in the journals of a configuration.

Never listens anywhere and starts nothing. Invariants: no compaction and no erasure of this machine is at work on a
journal meanwhile; who only looks waits for nobody and changes nothing.

>>> salvage(load(None, {}, {}), [], only_look=True)   # doctest: +SKIP
([], [])
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from clickclock.app.data_folder import expect_data_dir, writing
from clickclock.app.lake_lock import among_others
from clickclock.attribution import journal
from clickclock.attribution.errors import JournalDamaged, JournalFailing
from clickclock.attribution.journal import Salvage, Segment, State, sealed_held, segments, slots
from clickclock.foundation.config import Config


def salvage(config: Config, wanted: Collection[Path], *, only_look: bool) -> tuple[list[Salvage], list[str]]:
    """Salvage every damaged segment, or those `wanted` alone; and a sentence for each that could not be.

    See `journal.salvage`. Raises `ConfigurationError`.
    """
    expect_data_dir(config.data_dir)
    chosen = set(map(_in_full, wanted))
    done: list[Salvage] = []
    failed: list[str] = []
    for folder in slots(config.journal_dir):
        with _sealed(config, folder, only_look=only_look) as sealed:
            for segment in sealed:
                path = _in_full(segment.path)
                if wanted and path not in chosen:
                    continue
                chosen.discard(path)
                try:
                    found = journal.salvage(segment, only_look=only_look)
                except (JournalDamaged, JournalFailing) as error:
                    failed.append(str(error))
                else:
                    done += [] if found is None else [found]
    failed += [f"{path} is not a sealed segment of a journal in {config.journal_dir}." for path in sorted(chosen)]
    return done, failed


def _in_full(path: Path) -> Path:
    """The path of a file that may itself lead nowhere."""
    return path.parent.resolve() / path.name


@contextmanager
def _sealed(config: Config, folder: Path, *, only_look: bool) -> Iterator[list[Segment]]:
    """The sealed segments of a journal; nobody else works on them meanwhile, unless it is to `only_look`."""
    if only_look:
        yield [segment for segment in segments(folder) if segment.state is State.SEALED]
        return
    with among_others(config), writing(folder), sealed_held(folder, waits=True):
        yield [segment for segment in segments(folder) if segment.state is State.SEALED]
