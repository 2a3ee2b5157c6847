"""`clickclock check-config`: what the service would run with, and where each setting comes from.

Never starts anything, and never shows a password, not even one in a URL. Invariant: the exit code is 0 exactly
when `serve` would accept the configuration.

>>> check_config.name
'check-config'
"""

from pathlib import Path
from typing import Any

import click

from clickclock.cli.calling import print_json, refusal
from clickclock.cli.settings import OF_SERVE, given, settings
from clickclock.cli.tables import table
from clickclock.foundation.errors import ConfigurationError
from clickclock.foundation.redaction import redacted, redacted_value


@click.command()
@settings(OF_SERVE)
@click.option("--json", "as_json", is_flag=True, help="Print the settings as JSON.")
def check_config(config: Path | None, as_json: bool, **options: Any) -> None:
    """Check the configuration, and print the settings in force."""
    from clickclock.app.checking import check, lacking, unreadable  # noqa: PLC0415 (loaded when it is used)
    from clickclock.app.own_jobs import out_of_reach  # noqa: PLC0415 (as above)
    from clickclock.foundation.config import from_environment, load  # noqa: PLC0415 (as above)
    from clickclock.foundation.environment import environment  # noqa: PLC0415 (as above)

    variables, overrides = environment(), given(options)
    try:
        loaded = load(config, variables, overrides)
        check(loaded)
    except ConfigurationError as error:
        raise refusal(error) from error

    for fault in [*unreadable(loaded), *lacking(loaded), *out_of_reach(loaded, variables)]:
        click.echo(f"Warning: {fault.field}: {redacted(fault.message)}", err=True)
    told = from_environment(variables, [])

    def source(name: str) -> str:
        if name in overrides:
            return "the command line"
        if name in told:
            return "the environment"
        return str(config) if name in loaded.model_fields_set else "the default"

    values = {name: redacted_value(value) for name, value in loaded.model_dump(mode="json").items()}
    rows = [{"name": name, "value": value, "source": source(name)} for name, value in values.items()]
    if as_json:
        print_json({"settings": rows})
    else:
        # The value comes last: one that is long makes no other line longer.
        table("settings", ("setting", "name"), ("from", "source"), ("value", "value"))({"settings": rows})
