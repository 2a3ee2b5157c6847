"""`clickclock journal`: what the collector's journals hold, whether it is whole, and what comes in.

Never writes but to salvage (`journal_salvage.py`). It reads the files; `tail` asks the service, if there is one.
Invariants: `verify` ends with 1 exactly when something is damaged; a live journal can be looked at while it is written.

>>> sorted(journal.commands)
['inspect', 'salvage', 'tail', 'verify']
"""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from clickclock.cli.answering import names_files
from clickclock.cli.calling import NoService, print_json, service
from clickclock.cli.exit_codes import INTERRUPTED
from clickclock.cli.journal_salvage import salvage
from clickclock.cli.lazy import Commands
from clickclock.cli.rendering import plain, size, when
from clickclock.cli.settings import CONFIG, DATA_DIR, configuration, settings
from clickclock.cli.tables import table
from clickclock.foundation.redaction import redacted

if TYPE_CHECKING:
    from clickclock.attribution.clicks.entry import Entry
    from clickclock.client import Sighting

POLL_S = 0.1
"""How often `tail` looks: often enough to seem live, seldom enough to cost nothing."""

SLOTS = table(
    "journals",
    ("journal", "slot"),
    ("id", "id"),
    ("written now", "taken"),
    ("segments", "segmentCount"),
    ("entries", "lines"),
    ("size", "bytes", size),
    empty="There is no journal.",
)
SEGMENTS = table(
    "segments",
    ("journal", "slot"),
    ("segment", "number"),
    ("state", "state"),
    ("entries", "lines"),
    ("frames", "frames"),
    ("in use", "usedBytes", size),
    ("size", "bytes", size),
    ("first", "firstAt", when),
    ("last", "lastAt", when),
    empty="",
)
OF_JOURNALS = (CONFIG, DATA_DIR)
DAMAGES = table("damages", ("file", "file"), ("offset", "offset"), ("what", "sentence"), empty="Nothing is damaged.")


@click.group(cls=Commands)
def journal() -> None:
    """Inspect what the collectors wrote.

    These commands work on the files and need no service; tail asks the service, if there is one.
    """


journal.add_command(salvage)


@journal.command()
@settings(OF_JOURNALS)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def inspect(config: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Show the journals and their segments."""
    from clickclock.attribution import journal as door  # noqa: PLC0415 (loaded when it is used)

    found, rows = [], []
    for slot in _slots(config, data_dir):
        segments = [_row(slot, summary) for each in door.segments(slot) if (summary := _try(door.inspect, each))]
        rows += segments
        found.append(
            {
                "slot": slot.name,
                "id": _try(door.identity, slot),
                "taken": door.is_taken(slot),
                "segmentCount": len(segments),
                "lines": sum(each["lines"] for each in segments),
                "bytes": sum(each["bytes"] for each in segments),
            }
        )
    answer = {"journals": found, "segments": rows}
    if as_json:
        print_json(answer)
        return
    SLOTS(answer)
    if rows:
        click.echo()
        SEGMENTS(answer)


@journal.command()
@settings(OF_JOURNALS)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_context
def verify(ctx: click.Context, config: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Verify every checksum; exit code 1 if something is damaged."""
    from clickclock.attribution import journal as door  # noqa: PLC0415 (loaded when it is used)

    damages: list[door.Damage] = []
    looked_at = 0
    for slot in _slots(config, data_dir):
        for segment in door.segments(slot):
            damages += _try(door.verify, segment) or []
            looked_at += 1
    rows = [{"file": str(each.path), "offset": each.offset, "sentence": each.sentence} for each in damages]
    answer = {"segments": looked_at, "damages": rows}
    if as_json:
        print_json(answer)
    else:
        DAMAGES(answer)
    ctx.exit(1 if damages else 0)


@journal.command()
@settings(OF_JOURNALS)
@click.option("--from-start", is_flag=True, help="Begin with the oldest entry.")
@click.option("--no-follow", is_flag=True, help="Stop after the newest entry; implies --from-start.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object on each line.")
@click.pass_context
def tail(
    ctx: click.Context, config: Path | None, data_dir: Path | None, from_start: bool, no_follow: bool, as_json: bool
) -> None:
    """Show entries as they arrive.

    Those of the running service or, without one, with --data-dir, --from-start or --no-follow, those of the files.
    """
    if not (from_start or no_follow or names_files({"data_dir": data_dir}, config)) and _watched(ctx, as_json=as_json):
        return
    from clickclock.attribution.clicks.entry import decode  # noqa: PLC0415 (loaded when it is used)

    try:
        for line in _lines(config, data_dir, from_end=not (from_start or no_follow), follow=not no_follow):
            try:
                entry = decode(line)
            except ValueError as error:
                click.echo(f"Not an entry: {error}", err=True)
                continue
            told = _told(entry)
            click.echo(json.dumps(told, ensure_ascii=False) if as_json else _text(told))
    except KeyboardInterrupt:
        ctx.exit(INTERRUPTED)


def _watched(ctx: click.Context, *, as_json: bool) -> bool:
    """Show what the service sees arrive, until Ctrl-C; False if there is none and nobody named one."""
    try:
        with service(ctx.obj) as client:
            for seen in client.follow_clicks():
                if seen.seen == "watching":
                    click.echo(f"Watching {redacted(ctx.obj)}; press Ctrl-C to stop.", err=True)
                elif seen.seen == "missed":
                    click.echo(seen.fields["message"], err=True)
                elif as_json:
                    click.echo(json.dumps({"kind": seen.seen, **seen.fields}))  # in ASCII: it may not be Unicode
                else:
                    click.echo(_line(seen))
    except NoService:
        if ctx.find_root().get_parameter_source("url") is not ParameterSource.DEFAULT:
            raise
        return False
    except KeyboardInterrupt:
        ctx.exit(INTERRUPTED)
    return True


def _line(seen: "Sighting") -> str:
    told = seen.fields
    faults = "; ".join(f"{each.get('field')}: {each.get('message')}" for each in told.get("faults", ()))
    raw = told.get("query") or told.get("order")
    return "  ".join(filter(None, (when(told["receivedAt"]), seen.seen, plain(faults), plain(raw))))


def _lines(config: Path | None, data_dir: Path | None, *, from_end: bool, follow: bool) -> Iterator[bytes]:
    """The lines of all journals as they come, those that begin later as well."""
    from clickclock.attribution.errors import JournalDamaged  # noqa: PLC0415 (loaded when it is used)
    from clickclock.attribution.journal import Tail  # noqa: PLC0415 (loaded when it is used)

    tails = {slot: Tail(slot, from_end=from_end) for slot in _slots(config, data_dir)}
    rest = Event()
    while True:
        came = False
        for each in tails.values():
            try:
                for frame in each.read_more():
                    came = True
                    yield from frame.lines
            except JournalDamaged as damaged:
                came = True
                click.echo(str(damaged), err=True)
        if came:
            continue
        if not follow:
            return
        rest.wait(POLL_S)
        for slot in _slots(config, data_dir):
            if slot not in tails:
                tails[slot] = Tail(slot)


def _slots(config: Path | None, data_dir: Path | None) -> list[Path]:
    from clickclock.app.data_folder import expect_data_dir  # noqa: PLC0415 (loaded when it is used)
    from clickclock.attribution.journal import slots  # noqa: PLC0415 (loaded when it is used)

    with configuration(config, {"data_dir": data_dir}) as loaded:
        expect_data_dir(loaded.data_dir)
        return slots(loaded.journal_dir)


def _try(look: Callable[[Any], Any], segment: Any) -> Any:
    """The result of `look`; None if the segment was compacted meanwhile, or the damage was shown."""
    from clickclock.attribution.errors import JournalDamaged  # noqa: PLC0415 (loaded when it is used)

    try:
        return look(segment)
    except FileNotFoundError:
        return None
    except JournalDamaged as damaged:
        click.echo(str(damaged), err=True)
        return None


def _row(slot: Path, summary: Any) -> dict[str, Any]:
    return {
        "slot": slot.name,
        "number": summary.segment.number,
        "state": summary.state,
        "lines": summary.lines,
        "frames": summary.frames,
        "usedBytes": summary.used_bytes,
        "bytes": summary.bytes,
        "firstAt": _instant(summary.first_ms),
        "lastAt": _instant(summary.last_ms),
        "file": str(summary.segment.path),
    }


def _instant(ms: int | None) -> str | None:
    from clickclock.foundation.record import rfc3339  # noqa: PLC0415 (loaded when it is used)

    return None if ms is None else rfc3339(datetime.fromtimestamp(ms / 1000, UTC))


def _told(entry: "Entry") -> dict[str, Any]:
    return {
        "kind": entry.kind.name.lower(),
        "id": entry.id,
        "receivedAt": _instant(entry.received_ms),
        "address": entry.address,
        "agent": entry.agent.decode(errors="replace"),
        "referer": entry.referer.decode(errors="replace"),
        "detail": entry.detail.decode(errors="replace"),
        "raw": entry.raw.decode(errors="replace"),
    }


def _text(told: dict[str, Any]) -> str:
    """One line, whatever a client sent: what would move the cursor is shown as a space."""
    parts = (when(told["receivedAt"]), told["kind"].replace("_", " "), told["detail"], told["raw"])
    return "  ".join("".join(char if char.isprintable() else " " for char in part) for part in parts)
