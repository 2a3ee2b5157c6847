"""`clickclock trigger`: run a job now, and see it through if asked to.

Never runs anything here: the service does, and goes on when this command is interrupted.
Invariant: with `--follow`, the exit code says how the trigger ended.

>>> trigger.name
'trigger'
"""

from typing import Any

import click

from clickclock.cli.calling import print_json, service
from clickclock.cli.fields import Instant, job_arguments, names, parameters
from clickclock.cli.following import exit_code, see_through


@click.command()
@job_arguments()
@parameters
@click.option("--at", "run_at", type=Instant(), help="When to run it; now if not given.")
@click.option("--priority", type=int, help="0 to 100; higher starts first.")
@click.option("--idempotency-key", help="A call with a known key returns its trigger instead of a new one.")
@click.option("--reason", help="Why; recorded on the trigger.")
@click.option("--nominal-time", type=Instant(), help="Run it for this nominal time, as its schedule would have.")
@click.option("--dependents/--no-dependents", default=None, help="Whether jobs that depend on it run after it.")
@click.option("--follow", "-f", is_flag=True, help="Show its output until it ends, and exit with its exit code.")
@click.option("--cancel-on-interrupt", is_flag=True, help="With --follow: Ctrl-C also ends the job.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON; followed output goes to stderr.")
@click.pass_context
def trigger(ctx: click.Context, /, *, follow: bool, cancel_on_interrupt: bool, as_json: bool, **fields: Any) -> None:
    """Run a job now."""
    with service(ctx.obj) as client:
        payload = client.trigger_job(fields.pop("application"), fields.pop("job_name"), **names(fields))
        trigger_id = payload["trigger"]["triggerId"]
        if follow:
            if payload["trigger"]["finishedAt"] is None:  # else it was asked for before, and its end is shown below
                click.echo(f"Trigger {trigger_id} is {payload['trigger']['state']}.", err=True)
            payload = see_through(client, trigger_id, cancel_on_interrupt=cancel_on_interrupt, log_to_stderr=as_json)
    if as_json:
        print_json(payload)
    elif not follow:
        click.echo(trigger_id)
    if follow:
        ctx.exit(exit_code(payload["triggers"][0]))
