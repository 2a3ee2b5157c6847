"""What `apply` and `import-crontab` share: the terms of an apply, the call, and how its outcome is shown.

Never reads a file. Invariants: a fault has file, line and column where there is one; the exit code of a
difference is its own.

>>> DIFFERENT
4
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import print_json, service
from clickclock.cli.progress import progress
from clickclock.foundation.errors import Fault

if TYPE_CHECKING:
    from clickclock.client import Payload

DIFFERENT = 4
"""The exit code of `--diff` where something would change."""
WORDS = {"create": "created", "update": "changed", "delete": "deleted"}
COLOURS = {"create": "green", "update": "yellow", "delete": "red"}
LINE_COLOURS = {"+": "green", "-": "red", "@": "cyan"}

TERMS = (
    click.option(
        "--set", "set_name", help="Name of the set that these files make up; what they create is marked as the set's."
    ),
    click.option("--prune", is_flag=True, help="Delete what the set created before and no longer names; needs --set."),
    click.option(
        "--diff",
        is_flag=True,
        help="Show what would change as a unified diff, and change nothing; exit code 4 if anything would.",
    ),
    click.option("--dry-run", is_flag=True, help="Check and count, but change nothing."),
    click.option("--adopt", is_flag=True, help="Take over what another set holds."),
    click.option("--force", is_flag=True, help="Delete jobs even if they are running; they are cancelled."),
    click.option("--allow-empty", is_flag=True, help="Allow deleting the last job that the set has in an application."),
    click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON."),
)
"""Options, first to last."""


def terms(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a declaration is meant."""
    for option in reversed(TERMS):
        command = option(command)
    return command


def bring_about(
    declarations: Sequence[Mapping[str, Any]],
    located: Callable[[Fault], Fault],
    *,
    set_name: str | None,
    diff: bool,
    dry_run: bool,
    as_json: bool,
    **asked: bool,
) -> None:
    """Send it, and tell what became of it. `asked` are the terms that go to the service as they are."""
    from clickclock.client import Refused  # noqa: PLC0415 (loaded when it is used)

    query = {
        "set": set_name,
        "dryRun": diff or dry_run or None,
        **{name: value or None for name, value in asked.items()},
    }
    with service(click.get_current_context().obj) as client:
        try:
            with progress("The service checks and changes jobs"):
                answer = client.apply(declarations, **query)
        except Refused as refused:
            refused.faults = [located(fault) for fault in refused.faults]
            raise
    if as_json:
        print_json(answer)
    elif diff:
        _show_differences(answer)
    else:
        _tell(answer)
    if diff and answer["alterations"]:
        click.get_current_context().exit(DIFFERENT)


def _tell(answer: "Payload") -> None:
    would = "would be " if answer["dryRun"] else ""
    counts = dict.fromkeys(WORDS, 0)
    for each in answer["alterations"]:
        counts[each["action"]] += 1
        word = click.style(would + WORDS[each["action"]], fg=COLOURS[each["action"]])
        click.echo(f"{each['kind']} {each['name']} {word}")
    told = [f"{count} {would}{WORDS[action]}" for action, count in counts.items() if count]
    click.echo(", ".join([*told, f"{answer['unchanged']} unchanged"]) + ".")


def _show_differences(answer: "Payload") -> None:
    from clickclock.files import difference  # noqa: PLC0415 (loaded when it is used)

    for each in answer["alterations"]:
        for line in difference(each).splitlines():
            click.secho(line, fg=LINE_COLOURS.get(line[:1]), bold=line.startswith(("---", "+++")))
