"""Which trigger somebody means: by its id, by the beginning of it, or as the latest of a job.

Never guesses: a beginning that several have is refused with them. Invariant: a whole id costs no call.

>>> len("01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11") == ID_CHARS
True
"""

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from clickclock.client import Client

ID_CHARS: Final = 36
LOOKED_AT: Final = 1000
"""The newest, among which a beginning is looked for."""
SHOWN_MAX: Final = 5


def whole_id(client: "Client", given: str) -> str:
    """The id that begins so."""
    if len(given) >= ID_CHARS:
        return given
    triggers = client.list_triggers(limit=LOOKED_AT)["triggers"]
    found = [each["triggerId"] for each in triggers if each["triggerId"].startswith(given)]
    if len(found) == 1:
        return str(found[0])
    if not found:
        sentence = f"None of the newest {LOOKED_AT:,} triggers has an id that begins with {given!r}"
        raise click.ClickException(f"{sentence}; clickclock triggers list shows them.")
    shown = "\n".join(f"  {each}" for each in found[:SHOWN_MAX])
    raise click.ClickException(
        f"{len(found)} triggers have an id that begins with {given!r}; give more of it:\n{shown}"
    )


def latest_that_ran(client: "Client", application: str, job_name: str) -> str:
    """The newest trigger of a job that has an attempt."""
    triggers = client.list_triggers(application=application, jobName=job_name, limit=LOOKED_AT)["triggers"]
    for each in triggers:
        if each["attempt"]:
            return str(each["triggerId"])
    client.job_detail(application, job_name)  # refuses a job that is not there, with the nearest name
    run = f"clickclock trigger {application} {job_name} --follow"
    raise click.ClickException(f"{application}/{job_name} has not run, so there is no output; run it: {run}")
