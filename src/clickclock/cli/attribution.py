"""`clickclock attribution`: what brings clicks, orders and costs in, credits orders, and says why.

Never judges by itself. Invariant: `attribution replay` is `replay`.

>>> attribution.list_commands(click.Context(attribution))[:2]
['run', 'versions']
"""

import click

from clickclock.cli.lazy import LazyGroup

COMMANDS = {
    "run": "clickclock.cli.attribution_run:run",
    "versions": "clickclock.cli.attribution_run:versions",
    "report": "clickclock.cli.attribution_report:report",
    "orders": "clickclock.cli.attribution_orders:orders",
    "order": "clickclock.cli.attribution_order:order",
    "cohorts": "clickclock.cli.attribution_cohorts:cohorts",
    "diff": "clickclock.cli.attribution_diff:diff",
    "paths": "clickclock.cli.attribution_paths:paths",
    "import-clicks": "clickclock.cli.attribution_import:import_clicks",
    "import-orders": "clickclock.cli.attribution_import:import_orders",
    "import-identities": "clickclock.cli.attribution_import:import_identities",
    "import-costs": "clickclock.cli.attribution_import:import_costs",
    "replay": "clickclock.cli.replay:replay",
    "export": "clickclock.cli.attribution_export:export",
    "send": "clickclock.cli.attribution_send:send",
    "postbacks": "clickclock.cli.attribution_postbacks:postbacks",
    "erase": "clickclock.cli.attribution_erase:erase",
    "retain": "clickclock.cli.attribution_retain:retain",
}
"""Every command and where it is; add yours here."""


@click.group(cls=LazyGroup, commands_at=COMMANDS)
def attribution() -> None:
    """Credit orders to the clicks that earned them.

    What only reads asks the running service, or without one the files here. All else works on the files.
    """
