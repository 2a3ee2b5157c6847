"""The command line: one small file per group of commands; what they do is done by the service.

Never decides anything, and never loads what a command does not use: `clickclock --help` reads no HTTP library.
Invariants: exit codes are 0 done, 1 refused, 2 wrongly called, 3 service unreachable, 130 interrupted (and a followed
job's own); with `--json`, standard output is the answer of the service and nothing else.

>>> from click.testing import CliRunner
>>> CliRunner().invoke(main, ["--help"]).exit_code
0
"""

import gc
import os
from typing import Any

# All of these modules are kept: to look for garbage among them took a tenth of a short command.
gc.disable()
import click  # noqa: E402 (below the pause)

from clickclock.cli.place import address_of, complete_context  # noqa: E402 (as above)
from clickclock.cli.program import HELP_COLUMNS_MAX, Program, address, headers_of, print_version  # noqa: E402 (as above)
from clickclock.foundation.errors import ConfigurationError  # noqa: E402 (as above)

gc.enable()

COMMANDS = {
    "serve": "clickclock.cli.serve:serve",
    "collect": "clickclock.cli.collect:collect",
    "check-config": "clickclock.cli.check_config:check_config",
    "cluster": "clickclock.cli.cluster:cluster",
    "open": "clickclock.cli.open_page:open_page",
    "doctor": "clickclock.cli.doctor:doctor",
    "backup": "clickclock.cli.backup:backup",
    "demo": "clickclock.cli.demo:demo",
    "job": "clickclock.cli.job:job",
    "schedule": "clickclock.cli.schedule:schedule",
    "calendar": "clickclock.cli.calendar:calendar",
    "group": "clickclock.cli.group:group",
    "application": "clickclock.cli.application:application",
    "mapping": "clickclock.cli.mapping:mapping",
    "apply": "clickclock.cli.apply:apply",
    "export": "clickclock.cli.export:export",
    "import-crontab": "clickclock.cli.import_crontab:import_crontab",
    "schema": "clickclock.cli.schema:schema",
    "trigger": "clickclock.cli.trigger:trigger",
    "triggers": "clickclock.cli.triggers:triggers",
    "log": "clickclock.cli.log:log",
    "backfill": "clickclock.cli.backfill:backfill",
    "stat": "clickclock.cli.stat:stat",
    "search": "clickclock.cli.search:search",
    "bulk": "clickclock.cli.bulk:bulk",
    "token": "clickclock.cli.token:token",
    "session": "clickclock.cli.session:session",
    "whoami": "clickclock.cli.whoami:whoami",
    "login": "clickclock.cli.login:login",
    "context": "clickclock.cli.context:context",
    "events": "clickclock.cli.events:events",
    "alarms": "clickclock.cli.alarms:alarms",
    "notifications": "clickclock.cli.notifications:notifications",
    "audit": "clickclock.cli.audit:audit",
    "clicks": "clickclock.cli.clicks:clicks",
    "import": "clickclock.cli.import_files:import_files",
    "attribution": "clickclock.cli.attribution:attribution",
    "replay": "clickclock.cli.replay:replay",
    "compact": "clickclock.cli.compact:compact",
    "journal": "clickclock.cli.journal:journal",
    "completion": "clickclock.cli.completion:completion",
}
"""Every command and where it is; add yours here."""
HELPS = {
    "serve": "Run the scheduler and the click collectors.",
    "collect": "Run the click collectors alone.",
    "check-config": "Check the configuration, and print the settings in force.",
    "cluster": "Show the state of the service and its clusters.",
    "open": "Open the dashboard in a browser, signed in as you are here.",
    "doctor": "Check the installation: what is wrong, and what to do.",
    "backup": "Backups: of the store, the journals, the lake, the output of jobs.",
    "demo": "Send a small shop's clicks and orders, and credit them.",
    "job": "Jobs: what to run.",
    "schedule": "Schedules: when to run a job.",
    "calendar": "Calendars: which days are business days.",
    "group": "Groups: shared policy for a set of jobs.",
    "application": "Applications: defaults for all their jobs.",
    "mapping": "Mappings from command prefixes to container images.",
    "apply": "Create, change and delete jobs as files say.",
    "export": "Print jobs as YAML that `apply` takes, or write files.",
    "import-crontab": "Create jobs and schedules from a crontab.",
    "schema": "Print the JSON Schema of the files that `apply` takes.",
    "trigger": "Run a job now.",
    "triggers": "Triggers: single runs of jobs, past and present.",
    "log": "Show the output of an attempt.",
    "backfill": "Backfills: runs for past times of a schedule.",
    "stat": "Show statistics of jobs, applications or a group.",
    "search": "Find applications, groups, jobs, schedules and calendars by a part of their name.",
    "bulk": "Cancel or run again many triggers, or pause or resume many schedules, with an answer for each.",
    "token": "Tokens: who may do what.",
    "session": "Sessions: browsers that are signed in.",
    "whoami": "Show who the service takes you for, and what you may do.",
    "login": "Log in to the service at URL: a person lets this command line in, in the dashboard.",
    "context": "Contexts: services by name, with their tokens.",
    "events": "Show changes of triggers, jobs, schedules, groups, alarms.",
    "alarms": "Alarms: jobs that failed, did not run, or run too long.",
    "notifications": "Notifications: alarms on their way to webhooks and mail.",
    "audit": "The audit trail: who changed what, and when.",
    "clicks": "Watch clicks arrive, check what becomes of one, or export them from the lake.",
    "import": "Bring in orders, costs and clicks from files as they are.",
    "attribution": "Credit orders to the clicks that earned them.",
    "replay": "Register clicks from logs, or judge rejections again.",
    "compact": "Load the journals into the lake.",
    "journal": "Inspect what the collectors wrote.",
    "completion": "Print the script for tab completion in a shell.",
}
"""What each does, for the list of all: to load them for it would take longer than all the rest. A test compares."""
WITHOUT_SERVICE = frozenset({"serve", "collect", "check-config", "completion", "context", "login", "schema", "compact"})
"""Commands that a broken file of contexts does not stop."""
TITLES = {
    "serve": "The service",
    "job": "Jobs",
    "trigger": "Runs",
    "clicks": "Clicks and orders",
    "completion": "Your shell",
}
"""The parts of the list, by the command that begins each."""
OTHERS = {
    "cancel": "triggers cancel TRIGGER",
    "create": "job create APP JOB --command …",
    "delete": "job delete APP JOB",
    "get": "job list",
    "kill": "triggers cancel TRIGGER",
    "ls": "job list",
    "pause": "schedule pause SCHEDULE",
    "ps": "triggers list --state running",
    "retry": "bulk runAgain",
    "run": "trigger APP JOB",
    "start": "trigger APP JOB",
    "status": "job states",
    "stop": "triggers cancel TRIGGER",
    "tail": "log APP JOB --follow",
    "top": "triggers list --state running",
    "version": "--version",
}
"""What other systems call what is done here."""


@click.group(
    cls=Program,
    commands_at=COMMANDS,
    helps=HELPS,
    titles=TITLES,
    others=OTHERS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": HELP_COLUMNS_MAX},
)
@click.option(
    "--url",
    envvar="CLICKCLOCK_URL",
    default="http://127.0.0.1:8080",
    show_default=True,
    show_envvar=True,
    callback=address,
    help="Where the service is.",
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    callback=headers_of,
    help="Send a header with each request, as a proxy may want it; @FILE reads headers, one a line. May be given more "
    "than once. CLICKCLOCK_TOKEN is sent as a bearer's token.",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False),
    envvar="CLICKCLOCK_TOKEN_FILE",
    show_envvar=True,
    help="Send the token that is in this file, rather than CLICKCLOCK_TOKEN.",
)
@click.option(
    "--context",
    envvar="CLICKCLOCK_CONTEXT",
    show_envvar=True,
    shell_complete=complete_context,
    help="Use the address and token of this context, which `clickclock login` or `clickclock context` made.",
)
@click.option(
    "--ca-file",
    type=click.Path(dir_okay=False),
    envvar="CLICKCLOCK_CA_FILE",
    show_envvar=True,
    help="Believe these certificates, too: those of a CA, or the service's own.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=print_version,
    help="Show the version and exit.",
)
@click.pass_context
def main(ctx: click.Context, /, **options: Any) -> None:
    """Jobs that run on time, and orders credited to the clicks that earned them."""
    del options  # `calling` and `place` read them where a command calls
    try:
        ctx.obj = address_of(ctx)
    except ConfigurationError as error:
        if ctx.invoked_subcommand not in WITHOUT_SERVICE:
            raise click.ClickException(str(error)) from None
        ctx.obj = ctx.params["url"]
    # Whatever a command does with numpy takes one thread, on every machine. Those that OpenBLAS makes when it is loaded
    # have nothing to do, and wait for that so busily that the start of a command takes a seventh more.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # noqa: TID251 (OpenBLAS reads it, and we never do)
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":  # noqa: TID251 (what all programs heed)
        ctx.color = False
