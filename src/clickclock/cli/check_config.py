"""`clickclock check-config`: what the service would run with, and where each setting comes from.

Never starts or opens anything. Invariant: the exit code is 0 exactly when `serve` would accept the configuration.

>>> check_config.name
'check-config'
"""

from pathlib import Path
from typing import Any

import click

from clickclock.cli.calling import print_json, refusal
from clickclock.cli.rendering import table
from clickclock.cli.settings import OF_SERVE, given, settings
from clickclock.foundation.errors import ConfigurationError


@click.command()
@settings(OF_SERVE)
@click.option("--json", "as_json", is_flag=True, help="Print the settings as JSON.")
def check_config(config: Path | None, as_json: bool, **options: Any) -> None:
    """Check the configuration, and print the settings in force."""
    from clickclock.app.checking import check  # noqa: PLC0415 (loaded when it is used)
    from clickclock.foundation.config import PREFIX, environment, load  # noqa: PLC0415 (as above)

    variables, overrides = environment(), given(options)
    try:
        loaded = load(config, variables, overrides)
        check(loaded)
    except ConfigurationError as error:
        raise refusal(error) from error

    def source(name: str) -> str:
        if name in overrides:
            return "the command line"
        if PREFIX + name.upper() in variables:
            return "the environment"
        return str(config) if name in loaded.model_fields_set else "the default"

    values = loaded.model_dump(mode="json")
    rows = [{"name": name, "value": value, "source": source(name)} for name, value in values.items()]
    if as_json:
        print_json({"settings": rows})
    else:
        table("settings", ("setting", "name"), ("value", "value"), ("from", "source"))({"settings": rows})
