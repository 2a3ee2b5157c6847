"""`clickclock backup`: copies of an installation, made while it works, and the way back.

Never asks the service to stop, and needs none. Invariants: exit code 0 exactly when the backup is there, whole or
restored; with `--json`, standard output is what was found and nothing else.

>>> sorted(backup.commands)
['create', 'list', 'restore', 'verify']
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import print_json
from clickclock.cli.rendering import counted, size
from clickclock.cli.settings import CONFIG, DATA_DIR, FILE, FOLDER, LAKE_URL, configuration, settings

if TYPE_CHECKING:
    from clickclock.app.backup import Head, Verified
    from clickclock.foundation.config import Config

NICENESS = 10
"""A backup is never in a hurry, and the service beside it is."""
PLACE = (
    click.option("--backup-url", help="Where backups are: a folder, s3://…, gs://… or az://…."),
    click.option("--key-file", "backup_key_file", type=FILE, help="The key of the backups: a file with 64 hex digits."),
)
DATABASE = (
    click.option("--database-url", help="sqlite:///FILE or postgresql://USER@HOST/NAME."),
    click.option("--database-url-file", type=FILE, help="The file with that URL, which has a password."),
)
NODE = click.option("--node", help="Of which data folder, where the place has backups of several.")
SCRATCH = click.option(
    "--scratch-dir",
    type=FOLDER,
    help="Where a backup is restored to be verified; if not given, in its own data folder.",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
BACKUP = click.argument("backup_id", metavar="[BACKUP]", required=False)


@click.group()
def backup() -> None:
    """Backups: of the store, the journals, the lake, the output of jobs."""


@backup.command()
@settings((CONFIG, DATA_DIR, *DATABASE, LAKE_URL, *PLACE))
@click.option("--keep", "backup_keep", type=int, help="How many are kept; older ones are deleted.")
@click.option("--verify", "verifies", is_flag=True, help="Verify it as soon as it is made.")
@click.option("--what-can-be-read", is_flag=True, help="Make one of the rest if something cannot be read.")
@SCRATCH
@AS_JSON
@click.pass_context
def create(
    ctx: click.Context,
    /,
    config: Path | None,
    verifies: bool,
    what_can_be_read: bool,
    scratch_dir: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Make a backup while the service works.

    A backup has the store, the journals, the outputs of attempts, the files for ad networks, and a lake in a folder.
    Unchanged files are not written again.
    """
    with configuration(config, options) as loaded:
        from clickclock.app import backup as backups  # noqa: PLC0415 (loaded when it is used)

        os.nice(NICENESS)
        head = backups.create(loaded, reads_what_it_can=what_can_be_read)
        verified = backups.verify(loaded, head.backup_id, node=head.node, scratch_dir=scratch_dir) if verifies else None
    if as_json:
        print_json({"backup": _wire(head), "verified": _wire(verified)})
    else:
        click.echo(
            f"Backup {head.backup_id} is made: {counted(head.files, 'file')}, {size(head.bytes)}, "
            f"{size(head.new_bytes)} of them new in {loaded.backup_url}."
        )
        if loaded.backup_key_file is None:
            click.echo(
                "It is not encrypted, and has personal data and secrets: give --key-file, or guard the place.", err=True
            )
        for sentence in head.missing:
            click.echo(f"It lacks: {sentence}", err=True)
        if verified is not None:
            _say(verified)
    ctx.exit(0 if verified is None or verified.is_whole else 1)


@backup.command("list")
@settings((CONFIG, DATA_DIR, *PLACE))
@NODE
@AS_JSON
def list_backups(config: Path | None, node: str | None, as_json: bool, **options: Any) -> None:
    """List the backups of a place, oldest first."""
    with configuration(config, options) as loaded:
        from clickclock.app import backup as backups  # noqa: PLC0415 (loaded when it is used)

        found = backups.listed(loaded, node)
    if as_json:
        print_json({"backups": [{**_wire(head), "verified": _wire(verified)} for head, verified in found]})
        return
    for head, verified in found:
        state = (
            "not verified" if verified is None else f"{'whole' if verified.is_whole else 'DAMAGED'} at {verified.at}"
        )
        lacks = f", lacks {counted(len(head.missing), 'thing')}" if head.missing else ""
        click.echo(
            f"{head.backup_id}  {head.node}  {counted(head.files, 'file')}, {size(head.bytes)}, "
            f"{size(head.new_bytes)} new"
            f"{lacks}  clickclock {head.version}  {state}"
        )
    if not found:
        click.echo(f"There is no backup in {loaded.backup_url}.")


@backup.command()
@BACKUP
@settings((CONFIG, DATA_DIR, *PLACE))
@NODE
@SCRATCH
@AS_JSON
@click.pass_context
def verify(
    ctx: click.Context,
    /,
    backup_id: str | None,
    config: Path | None,
    node: str | None,
    scratch_dir: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Restore a backup into a scratch folder, and look at it there.

    The newest, if none is named. Every part is read and compared; the doctor checks the store, the journals and
    the lake.
    """
    with configuration(config, options) as loaded:
        from clickclock.app import backup as backups  # noqa: PLC0415 (loaded when it is used)

        verified = backups.verify(loaded, backup_id, node=node, scratch_dir=scratch_dir)
    if as_json:
        print_json({"verified": _wire(verified)})
    else:
        _say(verified)
    ctx.exit(0 if verified.is_whole else 1)


@backup.command()
@BACKUP
@settings((CONFIG, DATA_DIR, *DATABASE, LAKE_URL, *PLACE))
@NODE
@click.option("--original-is-gone", is_flag=True, help="What answers where this installation did is another one.")
@click.option("--without-store", is_flag=True, help="Only the data folder; its database is there.")
@AS_JSON
def restore(
    backup_id: str | None,
    config: Path | None,
    node: str | None,
    original_is_gone: bool,
    without_store: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Make an installation of a backup, in a new data folder.

    The newest, if none is named. The folder is new or empty, and so are the database and the lake. The original
    must not live any more: two copies would start every job twice.
    """
    with configuration(config, options) as loaded:
        from clickclock.app import backup as backups  # noqa: PLC0415 (loaded when it is used)

        done = backups.restore(
            loaded, backup_id, node=node, original_is_gone=original_is_gone, without_store=without_store
        )
    if as_json:
        print_json({"backup": _wire(done.head), "notes": done.notes})
        return
    click.echo(f"Backup {done.head.backup_id} is restored in {loaded.data_dir}.")
    for note in done.notes:
        click.echo(f"- {note}")
    click.echo(f"Start it: {_how_to_start(loaded)}")


def _how_to_start(config: "Config") -> str:
    database = " --database-url …" if config.database_url is not None else ""
    lake = f" --lake-url {config.lake_url}" if config.lake_url is not None else ""
    return f"clickclock serve --data-dir {config.data_dir}{database}{lake}"


def _say(verified: "Verified") -> None:
    if verified.is_whole:
        click.echo(f"Backup {verified.backup_id} is whole: it was restored into a scratch folder and looked at there.")
    for sentence in verified.found:
        click.echo(f"Backup {verified.backup_id} is not whole. {sentence}", err=True)


def _wire(told: "Head | Verified | None") -> dict[str, Any]:
    from msgspec import to_builtins  # noqa: PLC0415 (loaded when it is used)

    return {} if told is None else to_builtins(told)
