"""Options that become fields of a request, and the forms in which their values are written.

Never knows a field: `--timeout-seconds` is `timeoutSeconds` by its name alone, and the service judges the value.
Invariants: only what was given is sent; `--set` wins over an option, an option over `--file`.

>>> names({"max_concurrent_triggers": 3})
{'maxConcurrentTriggers': 3}
"""

import functools
import re
from collections.abc import Callable
from datetime import UTC
from math import isinf
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from clickclock.cli.calling import NOT_JSON
from clickclock.cli.completing import complete_application, complete_group, complete_job
from clickclock.cli.words import camel_case

if TYPE_CHECKING:
    from clickclock.foundation.strict_json import StrictJson

P = ParamSpec("P")
R = TypeVar("R")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


_BEGINS_AS_JSON = re.compile(r"\{(?!\{)|\[(?!\s)")
"""Unlike a template, and the shell's `[ -f x ]`."""
HALF_A_PAIR = "has half of a surrogate pair, which is no text"


class Instant(click.ParamType[str]):
    """A moment, exact or relative to now; see `moment.py`. With `looks_back`, `2h` is two hours ago."""

    name = "time"

    def __init__(self, *, looks_back: bool = False) -> None:
        self._looks_back = looks_back

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from clickclock.cli.moment import FORMS, Ambiguous, read_moment  # noqa: PLC0415 (only a time needs it)
        from clickclock.foundation.clock import SystemClock  # noqa: PLC0415 (as above)

        try:
            moment = read_moment(value, SystemClock().now(), looks_back=self._looks_back).astimezone(UTC)
        except Ambiguous:
            self.fail(f"{value!r} may be past or to come; write -{value} or +{value}", param, ctx)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time; write one such as {FORMS}", param, ctx)
        text: str = moment.isoformat(timespec="milliseconds")
        return text.replace("+00:00", "Z")


class Day(click.ParamType[str]):
    """A day, exact or relative to today by this machine's calendar."""

    name = "day"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from clickclock.cli.moment import DAY_FORMS, read_day  # noqa: PLC0415 (only a day needs it)
        from clickclock.foundation.clock import SystemClock  # noqa: PLC0415 (as above)

        try:
            return read_day(value, SystemClock().now().astimezone().date()).isoformat()
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no day; write one such as {DAY_FORMS}", param, ctx)


class Pair(click.ParamType[dict[str, Any]]):
    """NAME=VALUE, as a dictionary of one. Where the value may be missing, NAME alone gives None."""

    def __init__(self, name: str = "name=value", *, is_value_needed: bool = True) -> None:
        self.name = name
        self._is_value_needed = is_value_needed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        name, equals, content = str(value).partition("=")
        if not name or (self._is_value_needed and not equals):
            self.fail(f"{value!r} is not NAME=VALUE", param, ctx)
        return {name: content if equals else None}


class Entry(click.ParamType[Any]):
    """NAME, or NAME,FIELD=VALUE,…: an object whose field `name` is NAME, or just NAME."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        name, *more = str(value).split(",")
        pairs = [each.partition("=") for each in more]
        if wrong := [field + equals + text for field, equals, text in pairs if not (field and equals)]:
            self.fail(f"{wrong[0]!r} in {value!r} is not FIELD=VALUE", param, ctx)
        return {self.name: name} | {field.strip(): text for field, _, text in pairs} if more else name


class Json(Pair):
    """FIELD=VALUE, the value being JSON; what is no JSON is taken as a string.

    Text may begin as JSON does. Its fault as JSON is reported only if the service refuses the field.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        from clickclock.foundation.errors import Malformed  # noqa: PLC0415 (only such a field needs it)

        pairs = super().convert(value, param, ctx)
        for name, content in pairs.items():
            try:
                pairs[name] = _json().read(content.encode())
            except Malformed as error:
                pairs[name] = content
                if ctx is not None and _BEGINS_AS_JSON.match(content):
                    ctx.meta.setdefault(NOT_JSON, {})[name] = str(error)
            if _has_half_a_pair(pairs[name]):
                self.fail(f"{value!r} {HALF_A_PAIR}", param, ctx)
        return pairs


class Document(click.ParamType[dict[str, Any]]):
    """A JSON or TOML file with fields; `-` is JSON from standard input."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        import codecs  # noqa: PLC0415 (only a file needs it)
        import json  # noqa: PLC0415 (as above)
        import tomllib  # noqa: PLC0415 (as above)

        from clickclock.foundation.errors import Malformed  # noqa: PLC0415 (as above)

        try:
            with click.open_file(value, "rb") as file:
                raw = file.read().removeprefix(codecs.BOM_UTF8)
            if value.endswith(".toml"):
                # TOML has times and dates of its own, which JSON writes as text.
                raw = json.dumps(tomllib.loads(raw.decode()), default=str).encode()
            fields = _json().read(raw)
        except OSError as error:
            self.fail(f"{value} cannot be read: {error.strerror}", param, ctx)
        except RecursionError:
            self.fail(f"{value} is nested too deeply", param, ctx)
        except (ValueError, Malformed) as error:
            self.fail(f"{value} is not valid: {error}", param, ctx)
        if not isinstance(fields, dict):
            self.fail(f"{value} does not hold one object with fields", param, ctx)
        if _has_half_a_pair(fields):
            self.fail(f"{value} {HALF_A_PAIR}", param, ctx)
        return fields


class _Field(click.Option):
    """An option whose value is a field of the request."""


def field(*names: str, **attributes: Any) -> Decorator:
    """An option that becomes a field; a `Pair` may be given many times and becomes one object."""
    if isinstance(attributes.get("type"), Pair):
        attributes |= {"multiple": True, "callback": _merge}
    elif attributes.get("multiple"):
        attributes |= {"callback": lambda _ctx, _param, values: list(values) or None}
    return click.option(*names, cls=_Field, **{"default": None, **attributes})


def parameters(command: Callable[P, R]) -> Callable[P, R]:
    """Add `--param` for the values of parameters."""
    values = "A value for a parameter; may be repeated."
    return click.option("--param", "parameters", type=Pair(), multiple=True, callback=_merge, help=values)(command)


def flag(name: str, **attributes: Any) -> Decorator:
    """A field that is true or false: `--name` and `--no-name`."""
    return field(f"--{name}/--no-{name}", **attributes)


def body(*options: Decorator) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Add these options, `--file` and `--set`; the command gets all that was given as its argument `fields`."""

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(command)
        def run(*args: Any, file: dict[str, Any] | None, more: dict[str, Any] | None, **rest: Any) -> R:
            fields = dict(file or {})
            for param in click.get_current_context().command.params:
                if isinstance(param, _Field):
                    assert param.name is not None
                    value = rest.pop(param.name)
                    if value is not None:
                        fields[camel_case(param.name)] = value
            return command(*args, fields=fields | (more or {}), **rest)

        last: Callable[..., Any] = click.option(
            "--set", "more", type=Json("field=json"), multiple=True, callback=_merge, help="Any field, by its API name."
        )(run)
        last = click.option("--file", type=Document(), help="JSON or TOML file with fields; `-` is standard input.")(
            last
        )
        for option in reversed(options):
            last = option(last)
        return last

    return decorate


def page(command: Callable[P, R]) -> Callable[P, R]:
    """Add `--limit` and `--cursor` to a list."""
    command = click.option("--cursor", help="Continue where the last page ended.")(command)
    return click.option("--limit", type=click.IntRange(1, 1000), help="Show at most this many; 100 if not given.")(
        command
    )


def job_arguments(*, required: bool = True) -> Decorator:
    """The arguments APP and JOB, completed from the service."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        app, job = ("APP", "JOB") if required else ("[APP]", "[JOB]")
        second = click.argument("job_name", metavar=job, required=required, shell_complete=complete_job)
        first = click.argument("application", metavar=app, required=required, shell_complete=complete_application)
        return first(second(command))

    return decorate


def of_jobs(*, group: bool = False) -> Decorator:
    """What a list is narrowed to: APP and JOB as arguments or as options, and with `group` `--group`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def run(*, of_application: str | None, of_job: str | None, **rest: Any) -> Any:
            for name, option, value in (
                ("application", "--application", of_application),
                ("job_name", "--job", of_job),
            ):
                if value is not None and rest[name] is not None:
                    raise click.UsageError(f"Give {option} or the argument, not both.")
                rest[name] = rest[name] or value
            return command(**rest)

        last = job_arguments(required=False)(run)
        if group:
            last = click.option(
                "--group", "group_name", shell_complete=complete_group, help="Only those of this group."
            )(last)
        last = click.option("--job", "of_job", shell_complete=complete_job, help="Only those of jobs with this name.")(
            last
        )
        return click.option(
            "--application",
            "of_application",
            shell_complete=complete_application,
            help="Only those of this application.",
        )(last)

    return decorate


def needs_fields(command: Callable[..., R]) -> Callable[..., R]:
    """Refuse a change that changes nothing."""

    @functools.wraps(command)
    def run(client: Any, *, fields: dict[str, Any], **arguments: Any) -> R:
        if not fields:
            raise click.UsageError("Say what to change, with at least one option.")
        return command(client, fields=fields, **arguments)

    return run


def names(options: dict[str, Any]) -> dict[str, Any]:
    """Options by their API names, as filters of a call."""
    return {camel_case(name): value for name, value in options.items()}


def _finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise ValueError(text)
    return number


@functools.cache
def _json() -> "StrictJson":
    from clickclock.foundation.strict_json import StrictJson  # noqa: PLC0415 (only a field or a file needs it)

    return StrictJson(number=_finite)


def _has_half_a_pair(value: Any) -> bool:
    r"""Whether JSON says something, as `"\ud800"`, that cannot be sent as UTF-8."""
    import json  # noqa: PLC0415 (only a field or a file needs it)

    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _merge(_ctx: click.Context, _param: click.Parameter, pairs: tuple[dict[str, Any], ...]) -> dict[str, Any] | None:
    return {name: value for pair in pairs for name, value in pair.items()} or None
