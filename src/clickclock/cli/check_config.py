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
    from clickclock.app.clusters import clusters  # noqa: PLC0415 (loaded when it is used)
    from clickclock.app.targets import open_targets  # noqa: PLC0415 (as above)
    from clickclock.foundation.clock import SystemClock  # noqa: PLC0415 (as above)
    from clickclock.foundation.config import PREFIX, environment, load  # noqa: PLC0415 (as above)

    variables, overrides = environment(), given(options)
    try:
        loaded = load(config, variables, overrides)
        clusters(loaded, "", SystemClock(), {})
        open_targets(loaded)
        if loaded.names_models:
            from clickclock.app.models import chosen_models  # noqa: PLC0415 (see `names_models`)

            chosen_models(loaded)
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
