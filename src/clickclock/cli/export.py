"""`clickclock export`: what is there, as files that can be applied again.

Never overwrites a folder's other files. Invariants: what is exported can be applied and changes nothing; the order is
always the same, so that two exports can be compared.

>>> export.name
'export'
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import service
from clickclock.cli.rendering import counted
from clickclock.cli.settings import FOLDER

if TYPE_CHECKING:
    from clickclock.client import Payload

SHARED = "shared.yaml"
"""What belongs to no application."""


@click.command()
@click.option("--application", help="Only the jobs of this application, and their groups.")
@click.option(
    "--output-dir",
    type=FOLDER,
    help="Folder to write APPLICATION/JOB.yaml for each job, and shared.yaml, to; standard output if not given.",
)
def export(application: str | None, output_dir: Path | None) -> None:
    """Print jobs as YAML that `apply` takes, or write files.

    With their groups, schedules and calendars.
    """
    from clickclock.files import written  # noqa: PLC0415 (loaded when it is used)

    with service(click.get_current_context().obj) as client:
        whole = client.export(application)
    if output_dir is None:
        if whole:
            click.echo(written([whole]), nl=False)
        return
    count = 0
    for name, content in _files(whole):
        path = output_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written([content]), encoding="utf-8")
        count += 1
    click.echo(f"{counted(count, 'file is', 'files are')} written to {output_dir}.")


def _files(whole: "Payload") -> Iterator[tuple[Path, dict[str, Any]]]:
    """The tree: where each part goes, and what it holds."""
    shared = {name: things for name, things in whole.items() if name != "jobs"}
    if shared:
        yield Path(SHARED), shared
    taken: set[Path] = set()
    for job in whole.get("jobs", []):
        application, own = job["application"], {name: value for name, value in job.items() if name != "application"}
        path = Path(_file_name(application), f"{_file_name(job['jobName'])}.yaml")
        # Two names that differ only in signs that no file name has, or in case on some disks, get two files.
        while path.with_name(path.name.lower()) in taken:
            path = path.with_stem(f"{path.stem}_")
        taken.add(path.with_name(path.name.lower()))
        yield path, {"application": application, "jobs": [own]}


def _file_name(name: str) -> str:
    return name.replace("/", "-").replace(":", "-")
