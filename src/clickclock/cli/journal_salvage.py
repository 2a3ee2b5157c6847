"""`clickclock journal salvage`: what is whole in damaged segments comes back, and the damaged files are set aside.

Needs no service, and never deletes anything. Invariants: the exit code is 1 exactly when a segment is still damaged, or
with `--dry-run` would be; with `--json`, standard output is what was found and nothing else.

>>> salvage.name
'salvage'
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clickclock.cli.calling import print_json
from clickclock.cli.rendering import counted, size
from clickclock.cli.settings import CONFIG, DATA_DIR, FILE, configuration, settings

if TYPE_CHECKING:
    from clickclock.attribution.journal import Salvage


@click.command()
@click.argument("segments", metavar="[SEGMENT]...", nargs=-1, type=FILE)
@settings((CONFIG, DATA_DIR))
@click.option("--dry-run", is_flag=True, help="Say what would be won and lost, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_context
def salvage(
    ctx: click.Context,
    config: Path | None,
    data_dir: Path | None,
    segments: Sequence[Path],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Salvage what is whole in damaged segments.

    Of every damaged segment, or of the files named, the whole frames are put in its place, so that the next compaction
    loads them. The damaged file is kept beside it.
    """
    # Here and not at the top, so that the help of all other commands does not wait for it.
    from clickclock.app import salvaging  # noqa: PLC0415 (see the line above)

    with configuration(config, {"data_dir": data_dir}) as loaded:
        done, failed = salvaging.salvage(loaded, segments, only_look=dry_run)
    if as_json:
        print_json({"segments": [_told(each) for each in done], "failed": failed})
    else:
        for each in done:
            click.echo(_sentence(each, dry_run=dry_run))
        if not done and not failed:
            click.echo("Nothing is damaged.")
    for sentence in failed:
        click.echo(sentence, err=True)
    ctx.exit(1 if failed or not all(each.frames for each in done) else 0)


def _sentence(found: "Salvage", *, dry_run: bool) -> str:
    lost = f"{size(found.lost_bytes)} are lost"
    if found.lost_lines is None:
        lost += ", nobody can know with how many entries, and so is what was cut off its end, if anything was"
    else:
        lost += f", with {counted(found.lost_lines, 'entry', 'entries')}"
    if not found.frames:
        become = "It was left as it is: restore it from a copy, or delete it."
    elif dry_run:
        become = "Nothing was changed."
    else:
        become = f"What is whole is loaded by the next compaction; the damaged file is now {found.aside}."
    return (
        f"{found.segment.path}: {counted(found.frames, 'frame')} with {counted(found.lines, 'entry', 'entries')} "
        f"({size(found.bytes)}) can be salvaged; {lost}. {become}"
    )


def _told(found: "Salvage") -> dict[str, object]:
    return {
        "file": str(found.segment.path),
        "frames": found.frames,
        "lines": found.lines,
        "bytes": found.bytes,
        "lostLines": found.lost_lines,
        "lostBytes": found.lost_bytes,
        "damages": [{"offset": each.offset, "sentence": each.sentence} for each in found.damages],
        "aside": None if found.aside is None else str(found.aside),
    }
