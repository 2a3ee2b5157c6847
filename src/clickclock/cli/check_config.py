"""`clickclock check-config`: what the service would run with, and where each setting comes from.

Never starts anything, and never shows a password, not even one in a URL. Invariant: the exit code is 0 exactly
when `serve` would accept the configuration.

>>> check_config.name
'check-config'
"""

import re
from pathlib import Path
from typing import Any

import click

from clickclock.cli.calling import print_json, refusal
from clickclock.cli.rendering import table
from clickclock.cli.settings import OF_SERVE, given, settings
from clickclock.foundation.errors import ConfigurationError

_PASSWORD = re.compile(r"(?<=://)([^:/@]*):.*(?=@)|([?&](?:ssl)?password=)[^&]*")


@click.command()
@settings(OF_SERVE)
@click.option("--json", "as_json", is_flag=True, help="Print the settings as JSON.")
def check_config(config: Path | None, as_json: bool, **options: Any) -> None:
    """Check the configuration, and print the settings in force."""
    from clickclock.app.checking import check, unreadable  # noqa: PLC0415 (loaded when it is used)
    from clickclock.app.own_jobs import out_of_reach  # noqa: PLC0415 (as above)
    from clickclock.foundation.config import environment, from_environment, load  # noqa: PLC0415 (as above)

    variables, overrides = environment(), given(options)
    try:
        loaded = load(config, variables, overrides)
        check(loaded)
    except ConfigurationError as error:
        raise refusal(error) from error

    for fault in [*unreadable(loaded), *out_of_reach(loaded, variables)]:
        click.echo(f"Warning: {fault.field}: {fault.message}", err=True)
    told = from_environment(variables, [])

    def source(name: str) -> str:
        if name in overrides:
            return "the command line"
        if name in told:
            return "the environment"
        return str(config) if name in loaded.model_fields_set else "the default"

    values = {name: _without_passwords(value) for name, value in loaded.model_dump(mode="json").items()}
    rows = [{"name": name, "value": value, "source": source(name)} for name, value in values.items()]
    if as_json:
        print_json({"settings": rows})
    else:
        # The value comes last: one that is long makes no other line longer.
        table("settings", ("setting", "name"), ("from", "source"), ("value", "value"))({"settings": rows})


def _without_passwords(value: Any) -> Any:
    """The value, with stars for the passwords of all URLs in it.

    >>> _without_passwords({"url": "postgresql://me:hush@db/jobs?password=hush&sslmode=require"})
    {'url': 'postgresql://me:**********@db/jobs?password=**********&sslmode=require'}
    """
    match value:
        case str():
            return _PASSWORD.sub(lambda found: f"{found[2] or found[1] + ':'}**********", value)
        case dict():
            return {name: _without_passwords(each) for name, each in value.items()}
        case list():
            return [_without_passwords(each) for each in value]
    return value
