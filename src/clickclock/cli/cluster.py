"""`clickclock cluster`: the state of the whole.

Never judges it: what is not as it should be, the service says.

>>> cluster.name
'cluster'
"""

from typing import TYPE_CHECKING

import click

from clickclock.cli.calling import calls
from clickclock.cli.rendering import record, sections, when
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.client import Client, Payload


@click.command()
@calls(
    sections(
        table(
            "cluster.clusters",
            ("cluster", "cluster"),
            ("executor", "executor"),
            ("capacity", "capacity"),
            ("running", "running"),
            ("queued", "queued"),
            ("reachable", "reachable"),
            ("message", "message"),
            title="Clusters",
        ),
        table(
            "cluster.replicas",
            ("replica", "replicaId"),
            ("node", "node"),
            ("host", "host"),
            ("version", "version"),
            ("started", "startedAt", when),
            ("heartbeat", "heartbeatAt", when),
            ("clock skew, ms", "clockSkewMs"),
            title="Replicas",
        ),
        record("cluster.store", title="Store"),
        record("cluster.totals", title="Totals"),
        record("cluster.invariants", title="Invariants (each should be 0)"),
        record("cluster.alarms", title="Alarms"),
        table(
            "cluster.findings",
            ("finding", "code"),
            ("severity", "severity"),
            ("what is wrong", "message"),
            title="What is wrong",
            empty="Nothing.",
        ),
    )
)
def cluster(client: "Client") -> "Payload":
    """Show the state of the service and its clusters."""
    return client.cluster()
