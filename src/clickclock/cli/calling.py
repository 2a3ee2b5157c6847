"""How a command calls the service: a client, the forms of an answer, and refusals as sentences with an exit code.

Never loads the client before a command runs. Invariants: standard output carries answers, standard error everything
else; with `--json` the answer is printed as the service gave it.

>>> from clickclock.cli.rendering import says
>>> @click.command
... @calls(says("{cancelled}"))
... def cancel(client: "Client") -> "Payload": ...
"""

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.exit_codes import INTERRUPTED
from clickclock.cli.place import ca_file_of, token_of
from clickclock.cli.tables import Table
from clickclock.cli.words import in_arguments, in_commands, in_options
from clickclock.foundation.errors import ClickclockError, ConfigurationError

if TYPE_CHECKING:
    from clickclock.client import Client, Payload, Refused

UNAUTHENTICATED = "unauthenticated"
NOT_JSON = "clickclock.not_json"
"""Under this a context keeps, by field, why a value was not read as JSON."""

FORMS = ("json", "yaml", "wide", "name", "csv")
"""What `-o` takes: `wide` is a table with all fields; `output.py` writes the others."""
WIDE = "wide"
SORTED_MAX = 1000
"""So many rows are fetched to be sorted."""

Render = Callable[["Payload"], None]


class NoService(click.ClickException):
    """Nobody answered the call."""

    exit_code = 3


@contextmanager
def service(url: str) -> Iterator["Client"]:
    """A client of the service at `url`; what goes wrong ends the command."""
    # httpx would load its own command line, and with it all that draws on terminals.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # so Python says that there is none
    # Here and not at the top, because HTTP takes longer to load than all the rest together.
    from clickclock.client import Client, Refused, Unreachable  # noqa: PLC0415 (see the line above)

    try:
        ctx = click.get_current_context()
        with Client(url, headers=headers(), token=token_of(ctx), ca_file=ca_file_of(ctx)) as client:
            try:
                yield client
            except Refused as refused:
                further = [f"  ({refused.code}, request {refused.request_id})"] if refused.request_id else []
                if refused.code == UNAUTHENTICATED:
                    further.append(f"  To log in: clickclock login {url}")
                raise refusal(refused, *further, sentence=_instead(client, refused)) from refused
    except Unreachable as unreachable:
        raise NoService(str(unreachable)) from unreachable
    except ConfigurationError as error:  # the token of the environment
        raise refusal(error) from error


def _instead(client: "Client", refused: "Refused") -> str | None:
    """What to say of a name that is not there, as far as the service answers."""
    context = click.get_current_context(silent=True)
    if context is None or not refused.code.endswith("NotFound"):
        return None
    from clickclock.cli.naming import not_found  # noqa: PLC0415 (only a wrong name needs it)

    with suppress(ClickclockError):
        return not_found(client, refused.code, context.params)
    return None


def headers(ctx: click.Context | None = None) -> dict[str, str]:
    """The headers that the command line adds to each request; the token of a file among them.

    `ctx` is needed where no command runs, as while a shell completes a word.
    """
    root = (ctx or click.get_current_context()).find_root().params
    file: str | None = root.get("token_file")
    sent = {} if file is None else {"authorization": _bearer_in(file)}
    return sent | {name.lower(): value for name, value in root.get("headers", ())}


def _bearer_in(file: str) -> str:
    from pathlib import Path  # noqa: PLC0415 (only a file needs it)

    from clickclock.foundation.http_header import bearer  # noqa: PLC0415 (only a file needs it)

    try:
        return bearer(Path(file).read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "it is no text in ASCII"
        raise click.ClickException(f"The token of {file} cannot be read: {said}.") from None
    except ConfigurationError:
        raise click.ClickException(f"{file} holds no token: give one line of printable ASCII without spaces.") from None


def refusal(error: ClickclockError, *further: str, sentence: str | None = None) -> click.ClickException:
    """The error, and every fault, for standard error, in the command's own words; exit code 1."""
    context = click.get_current_context(silent=True)
    params = context.command.params if context else []
    not_json = context.meta.get(NOT_JSON, {}) if context else {}
    faults = []
    for fault in error.faults:
        message = in_commands(fault.message)
        if fault.field in not_json:
            message = f"{message} It was taken as text. {not_json[fault.field]}"
        name = in_options(fault.field, params)
        faults.append(f"  {name}: {message}" if name else f"  {message}")
    return click.ClickException("\n".join([sentence or in_arguments(str(error)), *faults, *further]))


def calls(render: Render) -> Callable[[Callable[..., "Payload"]], Callable[..., None]]:
    """Give a command its client and its forms, and print what it returns: in a form, or by `render`.

    Ids may be given by their beginning. A list, whose `render` is a table, can be sorted and watched as well.
    """

    def decorate(command: Callable[..., "Payload"]) -> Callable[..., None]:
        @in_forms
        @functools.wraps(command)
        def run(*, form: str | None, sort: str | None = None, watch: bool = False, **arguments: Any) -> None:
            from clickclock.cli.naming import with_whole_ids  # noqa: PLC0415 (loaded when it is used)

            with service(click.get_current_context().obj) as client:
                arguments = with_whole_ids(client, arguments)
                ask = functools.partial(command, client, **arguments)
                if isinstance(render, Table):
                    if sort is not None:
                        ask = functools.partial(_sorted, ask, render, sort, arguments)
                    if watch:
                        _watch(lambda: _text(ask(), form, render))
                payload = ask()
                if isinstance(render, Table) and form in {None, WIDE} and not render.rows(payload):
                    _explain(client, arguments)
            show(payload, form, render)

        return listed(run, render) if isinstance(render, Table) else run

    return decorate


def in_forms(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--json` and `-o`, which the command gets as its argument `form`."""
    other = click.option("-o", "--output", "form", type=click.Choice(FORMS), help="Print the answer in another form.")
    return click.option("--json", "form", flag_value="json", help="Print the answer as JSON.")(other(command))


def listed(command: Callable[..., None], shown: Table) -> Callable[..., None]:
    """Add `--sort` and `--watch` to a list."""
    keys = shown.keys()

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        return [f"{sign}{key}" for sign in ("", "-") for key in keys if f"{sign}{key}".startswith(incomplete)]

    command = click.option("--watch", "-w", is_flag=True, help="Show it anew as it changes, until Ctrl-C.")(command)
    sort = "Sort by a column or a field; after a minus, the greatest first."
    return click.option("--sort", metavar="COLUMN", shell_complete=complete, help=sort)(command)


def _sorted(ask: Callable[..., "Payload"], shown: Table, key: str, arguments: dict[str, Any]) -> "Payload":
    """A list in another order: all of it, up to `SORTED_MAX`, and of that as much as was asked for."""
    if arguments.get("cursor") is not None:
        raise click.UsageError("--cursor continues a list in its own order; leave out --sort.")
    payload = ask(limit=SORTED_MAX) if "limit" in arguments else ask()
    shown.sort(payload, key)
    if payload.pop("nextCursor", None):
        click.echo(f"Only the first {SORTED_MAX:,} are sorted; narrow the list to see others.", err=True)
    del shown.rows(payload)[arguments.get("limit") or SORTED_MAX :]
    return payload


def _watch(look: Callable[[], str]) -> None:
    from clickclock.cli.watching import watch  # noqa: PLC0415 (loaded when it is used)

    try:
        watch(look)
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None


def _explain(client: "Client", arguments: dict[str, Any]) -> None:
    """Say why nothing is listed, if a name is wrong."""
    from clickclock.cli.naming import nothing_listed  # noqa: PLC0415 (only an empty list needs it)

    with suppress(ClickclockError):
        if sentence := nothing_listed(client, arguments):
            click.echo(sentence, err=True)


def _text(payload: "Payload", form: str | None, shown: Table) -> str:
    if form is None or form == WIDE:
        return "".join(f"{line}\n" for line in shown.lines(payload, wide=form == WIDE))
    from clickclock.cli.output import written  # noqa: PLC0415 (only these forms need it)

    return written(payload, form)


def show(payload: "Payload", form: str | None, render: Render) -> None:
    """Print an answer: in a form, or as people read it."""
    if isinstance(render, Table):
        click.echo(_text(payload, form, render), nl=False)
        if form in {None, WIDE}:
            render.tell_of_more(payload)
    elif form is None or form == WIDE:
        render(payload)
    else:
        from clickclock.cli.output import written  # noqa: PLC0415 (only these forms need it)

        click.echo(written(payload, form), nl=False)


def print_json(payload: "Payload") -> None:
    """The answer of the service, for a machine or a careful reader."""
    click.echo(json.dumps(payload, indent=2, ensure_ascii=False))
