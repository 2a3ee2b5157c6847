"""The command line: one small file per group of commands; what they do is done by the service.

Never decides anything, and never loads what a command does not use: `clickclock --help` reads no HTTP library.
Invariants: exit codes are 0 done, 1 refused, 2 wrongly called, 3 service unreachable, 130 interrupted (and a followed
job's own); with `--json`, standard output is the answer of the service and nothing else.

>>> from click.testing import CliRunner
>>> CliRunner().invoke(main, ["--help"]).exit_code
0
"""

import os
from pathlib import Path

import click

from clickclock.cli.program import Program, address, headers_of

COMMANDS = {
    "serve": "clickclock.cli.serve:serve",
    "collect": "clickclock.cli.collect:collect",
    "check-config": "clickclock.cli.check_config:check_config",
    "cluster": "clickclock.cli.cluster:cluster",
    "open": "clickclock.cli.open_page:open_page",
    "doctor": "clickclock.cli.doctor:doctor",
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
    "whoami": "clickclock.cli.whoami:whoami",
    "events": "clickclock.cli.events:events",
    "alarms": "clickclock.cli.alarms:alarms",
    "notifications": "clickclock.cli.notifications:notifications",
    "audit": "clickclock.cli.audit:audit",
    "clicks": "clickclock.cli.clicks:clicks",
    "attribution": "clickclock.cli.attribution:attribution",
    "replay": "clickclock.cli.replay:replay",
    "compact": "clickclock.cli.compact:compact",
    "journal": "clickclock.cli.journal:journal",
    "completion": "clickclock.cli.completion:completion",
}
"""Every command and where it is; add yours here."""
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
    "import": "import-crontab FILE",
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
    titles=TITLES,
    others=OTHERS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="CLICKCLOCK_TOKEN_FILE",
    show_envvar=True,
    help="Send the token that is in this file, rather than CLICKCLOCK_TOKEN.",
)
@click.version_option(package_name="clickclock")
@click.pass_context
def main(ctx: click.Context, url: str, headers: tuple[tuple[str, str], ...], token_file: Path | None) -> None:
    """Jobs that run on time, and orders credited to the clicks that earned them."""
    ctx.obj = url  # `calling` reads the headers and the file where it calls
    del headers, token_file
    # Whatever a command does with numpy takes one thread, on every machine. Those that OpenBLAS makes when it is loaded
    # have nothing to do, and wait for that so busily that the start of a command takes a seventh more.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # noqa: TID251 (OpenBLAS reads it, and we never do)
