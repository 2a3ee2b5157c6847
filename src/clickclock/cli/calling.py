"""How a command calls the service: a client, `--json`, and refusals as sentences with an exit code.

Never loads the client before a command runs. Invariants: standard output carries answers, standard error everything
else; with `--json` the answer is printed as the service gave it.

>>> from clickclock.cli.rendering import says
>>> @click.command
... @calls(says("{cancelled}"))
... def cancel(client: "Client") -> "Payload": ...
"""

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from clickclock.foundation.errors import ClickclockError, ConfigurationError

if TYPE_CHECKING:
    from clickclock.client import Client, Payload

COMPLETION_TIMEOUT_S = 1.0
"""Who presses Tab does not wait for long."""
TRIGGERS_COMPLETED = 100
STATES = ("queued", "starting", "running", "succeeded", "failed", "timedOut", "cancelled", "lost", "skipped")
"""Those of triggers; a test compares."""
OPTIONS = {"Last-Event-ID": "--after"}
"""Headers that are options here."""

NOT_JSON = "clickclock.not_json"
"""Under this a context keeps, by field, why a value was not read as JSON."""

FORMS = ("json", "yaml", "csv", "name")
"""What `-o` takes; `output.py` writes them."""

Render = Callable[["Payload"], None]


class NoService(click.ClickException):
    """Nobody answered the call."""

    exit_code = 3


@contextmanager
def service(url: str) -> Iterator["Client"]:
    """A client of the service at `url`; what goes wrong ends the command."""
    # Here and not at the top, because HTTP takes longer to load than all the rest together.
    from clickclock.client import Client, Refused, Unreachable  # noqa: PLC0415 (see the line above)

    try:
        with Client(url, headers=headers()) as client:
            yield client
    except Refused as refused:
        known_as = [f"  ({refused.code}, request {refused.request_id})"] if refused.request_id else []
        raise refusal(refused, *known_as) from refused
    except Unreachable as unreachable:
        raise NoService(str(unreachable)) from unreachable
    except ConfigurationError as error:  # the token of the environment
        raise refusal(error) from error


def headers(ctx: click.Context | None = None) -> dict[str, str]:
    """The headers that the command line adds to each request; the token of a file among them.

    `ctx` is needed where no command runs, as while a shell completes a word.
    """
    root = (ctx or click.get_current_context()).find_root().params
    file: Path | None = root.get("token_file")
    sent = {} if file is None else {"authorization": _bearer_in(file)}
    return sent | {name.lower(): value for name, value in root.get("headers", ())}


def _bearer_in(file: Path) -> str:
    from clickclock.foundation.http_header import bearer  # noqa: PLC0415 (only a file needs it)

    try:
        return bearer(file.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "it is no text in ASCII"
        raise click.ClickException(f"The token of {file} cannot be read: {said}.") from None
    except ConfigurationError:
        raise click.ClickException(f"{file} holds no token: give one line of printable ASCII without spaces.") from None


def refusal(error: ClickclockError, *further: str) -> click.ClickException:
    """What is wrong, and every fault, for standard error; exit code 1."""
    named = ((OPTIONS.get(fault.field, fault.field), fault.message) for fault in error.faults)
    context = click.get_current_context(silent=True)
    not_json = context.meta.get(NOT_JSON, {}) if context else {}
    named = (
        (field, f"{message} It was taken as text. {not_json[field]}" if field in not_json else message)
        for field, message in named
    )
    faults = (f"  {field}: {message}" if field else f"  {message}" for field, message in named)
    return click.ClickException("\n".join([str(error), *faults, *further]))


def calls(render: Render) -> Callable[[Callable[..., "Payload"]], Callable[..., None]]:
    """Give a command its client and `--json`, and print what it returns: as JSON, or by `render`."""

    def decorate(command: Callable[..., "Payload"]) -> Callable[..., None]:
        @click.option("--json", "form", flag_value="json", help="Print the answer as JSON.")
        @click.option("-o", "--output", "form", type=click.Choice(FORMS), help="Print the answer in another form.")
        @functools.wraps(command)
        def run(*, form: str | None, **arguments: Any) -> None:
            with service(click.get_current_context().obj) as client:
                payload = command(client, **arguments)
            if form is not None:
                from clickclock.cli.output import written  # noqa: PLC0415 (only these forms need it)

                click.echo(written(payload, form), nl=False)
            else:
                render(payload)

        return run

    return decorate


def print_json(payload: "Payload") -> None:
    """The answer of the service, for a machine or a careful reader."""
    click.echo(json.dumps(payload, indent=2, ensure_ascii=False))


def complete_application(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The applications that begin so."""
    return _complete(ctx, "application", incomplete)


def complete_job(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The jobs of the application named before that begin so."""
    return _complete(ctx, "jobName", incomplete, application=ctx.params.get("application"))


def complete_schedule(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The schedules whose ids begin so."""
    return _ids(ctx, incomplete, lambda client: client.list_schedules(limit=1000)["schedules"], "scheduleId")


def complete_trigger(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The newest triggers whose ids begin so, each with its job and its state."""
    return _ids(ctx, incomplete, lambda client: client.list_triggers(limit=TRIGGERS_COMPLETED)["triggers"], "triggerId")


def complete_zone(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The time zones that begin so, in any case."""
    from zoneinfo import available_timezones  # noqa: PLC0415 (only who presses Tab needs it)

    wanted = incomplete.lower()
    return [CompletionItem(zone) for zone in sorted(available_timezones()) if zone.lower().startswith(wanted)]


def complete_state(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The states of triggers that begin so; of several with commas between, the last one."""
    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{state}") for state in STATES if state.startswith(last)]


def _ids(
    ctx: click.Context, incomplete: str, found: "Callable[[Client], list[dict[str, Any]]]", field: str
) -> list[CompletionItem]:
    rows = _asked(ctx, found)
    told = ((row[field], " ".join(filter(None, (row.get("jobName"), row.get("state"))))) for row in rows)
    return [CompletionItem(name, help=help_) for name, help_ in told if name.startswith(incomplete)]


def _complete(ctx: click.Context, field: str, incomplete: str, **filters: object) -> list[CompletionItem]:
    jobs = _asked(ctx, lambda client: client.list_jobs(limit=1000, **filters)["jobs"])
    return [CompletionItem(name) for name in sorted({job[field] for job in jobs}) if name.startswith(incomplete)]


def _asked(ctx: click.Context, question: "Callable[[Client], list[dict[str, Any]]]") -> list[dict[str, Any]]:
    """What the service answers while a word is completed; nothing if it does not."""
    from clickclock.client import Client  # noqa: PLC0415 (as above: loaded when it is used)

    try:
        root = ctx.find_root().params
        with Client(root["url"], headers=headers(ctx), timeout_s=COMPLETION_TIMEOUT_S, retries=0) as client:
            return question(client)
    except ClickclockError:
        return []
