"""`clickclock attribution run` and `versions`: orders are credited, and what runs have made.

Never asks the service. Invariants: the exit code is 0 whether or not anything had changed; with `--json`, standard
output is the result version, or null, and nothing else.

>>> run.name, versions.name
('run', 'versions')
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.answering import answered
from clickclock.cli.calling import print_json
from clickclock.cli.progress import progress
from clickclock.cli.rendering import counted, when
from clickclock.cli.settings import OF_LAKE, configuration, expect_lake, settings
from clickclock.cli.tables import table
from clickclock.foundation import memory

if TYPE_CHECKING:
    from clickclock.attribution.reporting.result import Result
    from clickclock.client import Payload
    from clickclock.foundation.config import Config

VERSIONS = table(
    "versions",
    ("version", "version"),
    ("made", "createdAt", when),
    ("kind", "kind"),
    ("orders", "orders"),
    ("credited", "credited"),
    ("touchpoints", "touchpoints"),
    ("changed orders", "changed"),
    ("seconds", "seconds"),
    ("why everybody", "why"),
    empty="No version yet; make one with: clickclock attribution run",
)
ENGINES = ("duckdb", "spark")


@click.command()
@settings(OF_LAKE)
@click.option("--full", is_flag=True, help="Recompute everybody, not only those who could have changed.")
@click.option("--engine", "attribution_engine", type=click.Choice(ENGINES), help="Engine to run on.")
@click.option("--master", "spark_master", help="Where Spark runs: local[*], spark://HOST:7077, ….")
@click.option("--json", "as_json", is_flag=True, help="Print the result version as JSON.")
def run(config: Path | None, full: bool, as_json: bool, **options: Any) -> None:
    """Credit every order to the clicks that earned it."""
    with configuration(config, options) as loaded:
        expect_lake(loaded)
        memory.keep()
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app import attribution  # noqa: PLC0415 (see the line above)
        from clickclock.attribution.reporting.result import told  # noqa: PLC0415 (see the line above)

        with progress("Crediting orders"):
            ran = attribution.run(loaded, full=full)
    if as_json:
        print_json({"result": None if ran.result is None else told(ran.result), "isNew": ran.is_new})
    else:
        click.echo(_sentence(ran.result, is_new=ran.is_new))


@click.command()
@settings(OF_LAKE)
@click.option("--json", "as_json", is_flag=True, help="Print the versions as JSON.")
def versions(config: Path | None, as_json: bool, **options: Any) -> None:
    """List the result versions, latest first."""

    def read(loaded: "Config") -> "Payload":
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app import attribution  # noqa: PLC0415 (see the line above)
        from clickclock.attribution.reporting.result import told  # noqa: PLC0415 (see the line above)

        return {"versions": [told(each) for each in reversed(attribution.versions(loaded))]}

    found = answered(lambda client: client.versions(), read, config, options)
    payload = {"versions": found["versions"]}
    if as_json:
        print_json(payload)
    else:
        VERSIONS(payload)


def _sentence(result: "Result | None", *, is_new: bool) -> str:
    if result is None:
        return "There is nothing in the lake to credit yet."
    if not is_new:
        return f"Nothing has changed since version {result.version}."
    whom = (
        f"Everybody was looked at: {result.why}" if result.why else "Only those who could have changed were looked at."
    )
    return (
        f"Version {result.version}: {result.credited:,} of {counted(result.orders, 'order')} credited to "
        f"{counted(result.touchpoints, 'touchpoint')}; {counted(result.changed, 'order')} changed, in "
        f"{result.seconds:.1f} s. {whom}"
    )
