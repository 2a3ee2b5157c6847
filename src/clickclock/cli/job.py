"""`clickclock job`: jobs, one by one.

Never interprets a field. Invariant: a change leaves what it does not name, and fails if someone else was faster.

>>> "create" in job.commands
True
"""

import shlex
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.asking import confirm, may_ask
from clickclock.cli.calling import calls, service
from clickclock.cli.completing import complete_cluster, complete_group, complete_schedule, complete_zone
from clickclock.cli.fields import (
    Entry,
    Instant,
    Pair,
    body,
    field,
    flag,
    job_arguments,
    names,
    needs_fields,
    of_jobs,
    page,
    parameters,
)
from clickclock.cli.lazy import Commands
from clickclock.cli.rendering import counted, duration, field_names, record, says, sections, when
from clickclock.cli.tables import TRIGGERS, table

if TYPE_CHECKING:
    from clickclock.client import Client, Payload

OPTIONS = (
    field("--command", help="Command to run, split into words as a shell would."),
    flag("preemption", help="Whether running attempts may be preempted to make room."),
    field("--description", help="What the job is for."),
    field("--owner", help="Who is responsible for it."),
    field("--label", "labels", type=Pair(), help="A label; may be repeated."),
    field("--group", "group_name", shell_complete=complete_group, help="The group whose policy it shares."),
    flag("enabled", help="A disabled job does not run."),
    flag("shell", help="Run the command with /bin/sh -c."),
    field("--image", help="Container image."),
    field("--cluster", shell_complete=complete_cluster, help="Where it runs."),
    field("--node", help="The only replica that may run it."),
    field("--env", "environment", type=Pair(), help="An environment variable; may be repeated."),
    field("--user", help="The user that it runs as; see the setting job_users."),
    field("--working-directory", help="Folder to run in."),
    field(
        "--param",
        "parameters",
        type=Pair("name[=default]", is_value_needed=False),
        help="A parameter, required without a default; may be repeated.",
    ),
    field("--timeout-seconds", type=float, help="Stop an attempt that runs longer."),
    field("--grace-period-seconds", type=float, help="Time between SIGTERM and SIGKILL."),
    field("--max-retries", "--retries", "max_retries", type=int, help="Further attempts after a failure."),
    field("--priority", type=int, help="0 to 100; higher starts first."),
    field("--max-concurrent-triggers", type=int, help="How many triggers may run at once."),
    field("--expected-within-seconds", type=float, help="Raise an alarm if it has not succeeded for this long."),
    field(
        "--depends-on",
        "depends_on",
        multiple=True,
        type=Entry("jobName"),
        metavar="JOB[,when=END]",
        help="A job that it runs after; may be repeated. END is succeeded, finished, failed or anySucceeded; "
        "ifSkipped=unmet|met|ignored and application=APP may follow, too.",
    ),
    field("--retention-days", type=float, help="How long finished triggers and logs are kept."),
)


NEIGHBOURS = (
    ("application", "application"),
    ("job", "jobName"),
    ("when", "when"),
    ("if skipped", "ifSkipped"),
    ("last state", "lastTrigger.state"),
    ("trigger", "lastTrigger.triggerId"),
)
DETAIL = sections(
    record("jobDetail.job"),
    record(
        "jobDetail.command", ("runs", "argv"), ("image", "image.image"), ("image: why", "image.reason"), title="Command"
    ),
    table(
        "jobDetail.schedules",
        ("id", "schedule.scheduleId"),
        ("expression", "schedule.expression"),
        ("time zone", "schedule.timeZone"),
        ("paused", "schedule.paused"),
        ("next", "schedule.nextFireAt", when),
        title="Schedules",
    ),
    table("jobDetail.upstream", *NEIGHBOURS, title="Runs after"),
    table("jobDetail.dependents", *NEIGHBOURS, title="Runs before"),
    table(
        "jobDetail.alarms",
        ("id", "alarmId"),
        ("kind", "kind"),
        ("since", "openedAt", when),
        ("times", "count"),
        ("message", "message"),
        title="Open alarms",
    ),
    table("jobDetail.recent", *TRIGGERS, title="Last triggers"),
    table(
        "jobDetail.changes",
        ("at", "at", when),
        ("who", "principal"),
        ("what", "resource"),
        ("which", "resourceId"),
        ("operation", "operation"),
        ("changed", "changes", field_names),
        title="Last changes",
    ),
)


PREVIEW = sections(
    record(
        "commandPreview",
        ("nominal time", "nominalTime", when),
        ("time zone", "timeZone"),
        ("runs", "argv", shlex.join),
        ("folder", "workingDirectory"),
    ),
    record("commandPreview.environment", title="Environment"),
)


@click.group(cls=Commands)
def job() -> None:
    """Jobs: what to run."""


@job.command("list")
@of_jobs(group=True)
@click.option("--enabled/--disabled", default=None, help="Only those that are enabled, or that are not.")
@page
@calls(
    table(
        "jobs",
        ("application", "application"),
        ("job", "jobName"),
        ("group", "groupName"),
        ("enabled", "enabled"),
        ("preemption", "preemption"),
        ("priority", "priority"),
        ("command", "command"),
    )
)
def list_jobs(client: "Client", **filters: Any) -> "Payload":
    """List jobs: all, or an application's."""
    return client.list_jobs(**names(filters))


@job.command()
@of_jobs(group=True)
@click.option("--enabled/--disabled", default=None, help="Only those that are enabled, or that are not.")
@page
@calls(
    table(
        "jobStates",
        ("application", "application"),
        ("job", "jobName"),
        ("last state", "recent.0.state"),
        ("due", "recent.0.dueTime", when),
        ("took", "recent.0.durationMs", duration),
        ("streak", "currentStreak"),
        ("running", "running"),
        ("queued", "queued"),
        ("next", "nextFireAt", when),
        empty="No jobs.",
    )
)
def states(client: "Client", **filters: Any) -> "Payload":
    """Show where jobs stand: how each last ended, what it has running, when it is due next."""
    return client.job_states(**names(filters))


@job.command()
@job_arguments()
@calls(DETAIL)
def show(client: "Client", application: str, job_name: str) -> "Payload":
    """Show one job with its schedules, alarms and last triggers."""
    return client.job_detail(application, job_name)


@job.command()
@job_arguments()
@body(*OPTIONS)
@calls(says("Job {application}/{job_name} is created."))
def create(client: "Client", application: str, job_name: str, fields: dict[str, Any]) -> "Payload":
    """Create a job."""
    return client.create_job({**fields, "application": application, "jobName": job_name})


@job.command()
@job_arguments()
@body(*OPTIONS)
@calls(says("Job {application}/{job_name} is changed (version {job[version]})."))
@needs_fields
def update(client: "Client", application: str, job_name: str, fields: dict[str, Any]) -> "Payload":
    """Change some fields of a job."""
    return client.change_job(application, job_name, fields)


@job.command()
@job_arguments(required=False)
@click.option("--nominal-time", type=Instant(), help="Fill it in for this nominal time; now if not given.")
@click.option(
    "--schedule-id", shell_complete=complete_schedule, help="The schedule of the run; its only one if not given."
)
@click.option("--command", help="A command to try, in place of the job's own; needs no job.")
@click.option("--shell/--no-shell", default=None, help="Whether /bin/sh runs the command.")
@click.option("--time-zone", shell_complete=complete_zone, help="The zone to try, where no job is named.")
@parameters
@click.option("--attempt", type=int, help="The number of the attempt; 1 if not given.")
@calls(PREVIEW)
def preview(client: "Client", **run: Any) -> "Payload":
    """Show what a command becomes for a nominal time, without running it."""
    return client.preview_command({name: value for name, value in names(run).items() if value is not None})


@job.command()
@job_arguments()
@click.pass_obj
def edit(url: str, application: str, job_name: str) -> None:
    """Edit a job as YAML in VISUAL or EDITOR.

    Faults are written into the file, and the file is opened again. Nobody else's change is overwritten.
    """
    from clickclock.cli.editing import Editable  # noqa: PLC0415 (loaded when it is used)
    from clickclock.cli.editing import edit as edited  # noqa: PLC0415 (as above)

    with service(url) as client:

        def read() -> "Payload":
            job: Payload = client.job_detail(application, job_name)["jobDetail"]["job"]
            return job

        def write(before: "Payload", changes: "Payload", version: int) -> "Payload":
            wanted = {name: value for name, value in (before | changes).items() if changes.get(name, ...) is not None}
            return client.put_job(wanted, version)

        answer = edited(Editable(f"{application}/{job_name}", read, write))
    if answer is not None:
        click.echo(f"Job {application}/{job_name} is changed (version {answer['job']['version']}).")


@job.command()
@job_arguments()
@click.option("--force", is_flag=True, default=None, help="Even if it is running or others depend on it.")
@may_ask
@calls(says("Job {application}/{job_name} is deleted, and its schedules with it."))
def delete(client: "Client", application: str, job_name: str, force: bool | None, yes: bool) -> "Payload":
    """Delete a job and its schedules."""
    confirm(lambda: _what_goes(client, application, job_name), yes=yes)
    return client.delete_job(application, job_name, force=force)


def _what_goes(client: "Client", application: str, job_name: str) -> str:
    schedules = len(client.job_detail(application, job_name)["jobDetail"]["schedules"])
    return f"Delete {application}/{job_name} and {counted(schedules, 'schedule') if schedules else 'no schedule'}?"


@job.command()
@job_arguments()
@calls(says("Job {application}/{job_name} is enabled."))
def enable(client: "Client", application: str, job_name: str) -> "Payload":
    """Enable a job; what it missed is not made up."""
    return client.change_job(application, job_name, {"enabled": True})


@job.command()
@job_arguments()
@calls(says("Job {application}/{job_name} is disabled."))
def disable(client: "Client", application: str, job_name: str) -> "Payload":
    """Disable a job: neither a schedule nor a call starts it."""
    return client.change_job(application, job_name, {"enabled": False})
