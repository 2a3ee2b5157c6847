"""Attribution's own recurring work, as jobs on the scheduler: created over HTTP, as any user's jobs are.

Never changes what a user changed: limits, times and the rest stay as they were left; who wants a job to rest pauses its
schedule, as what is missing is created again. Invariants: only a job's command is kept up to date, because it names
this installation's program and data folder; safe to repeat, and to be cut off anywhere.

>>> [job["jobName"] for job, _ in own_jobs(Config(), None)]
['compaction', 'run', 'exports', 'retention']
"""

import logging
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from clickclock.client import Client, Payload
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ClickclockError

APPLICATION = "attribution"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OwnJob:
    """One of them: what it runs, and when."""

    name: str
    description: str
    command: tuple[str, ...]
    schedule: Payload
    timeout_s: int
    retention_days: int


OWN_JOBS = (
    OwnJob(
        "compaction",
        "Moves sealed segments of the journal into the lake, and merges small files there.",
        ("compact", "--all"),
        {
            "scheduleName": "every-minute",
            "kind": "interval",
            "expression": "PT1M",
            "description": "A click is in the lake about two minutes after it was acknowledged.",
        },
        timeout_s=3600,
        retention_days=3,
    ),
    OwnJob(
        "run",
        "Credits every order to the clicks that earned it; a new version of the results if anything changed.",
        ("attribution", "run"),
        {
            "scheduleName": "every-quarter-of-an-hour",
            "kind": "interval",
            "expression": "PT15M",
            "description": "An order is credited at most twenty minutes after it came.",
        },
        timeout_s=6 * 3600,
        retention_days=30,
    ),
    OwnJob(
        "exports",
        "Writes the files of conversions that ad networks are to get, each conversion once.",
        ("attribution", "export"),
        {"scheduleName": "daily", "expression": "20 4 * * *", "description": "Networks want them once a day."},
        timeout_s=3600,
        retention_days=90,
    ),
    OwnJob(
        "retention",
        "Deletes clicks and orders that are older than the configuration lets them be.",
        ("attribution", "retain"),
        {"scheduleName": "daily", "expression": "40 3 * * *", "description": "Retention is by days."},
        timeout_s=6 * 3600,
        retention_days=90,
    ),
)


def own_jobs(config: Config, file: Path | None) -> list[tuple[Payload, Payload]]:
    """Each job with its schedule, as they are first created. `file` is the configuration's, if it came from one."""
    settings = ["--data-dir", str(config.data_dir.absolute())]
    if file is not None:
        settings += ["--config", str(file.absolute())]
    if config.lake_url is not None:
        settings += ["--lake-url", config.lake_url]
    return [_payloads(job, settings) for job in OWN_JOBS]


def _payloads(job: OwnJob, settings: list[str]) -> tuple[Payload, Payload]:
    whose = {"application": APPLICATION, "jobName": job.name}
    made = {
        **whose,
        "description": job.description,
        "command": shlex.join([sys.executable, "-m", "clickclock.cli", *job.command, *settings]),
        "maxRetries": 2,
        "maxConcurrentTriggers": 1,
        "timeoutSeconds": job.timeout_s,
        "retentionDays": job.retention_days,
    }
    return made, {**whose, "scheduleId": f"{APPLICATION}.{job.name}", **job.schedule}


def ensure_own_jobs(url: str, config: Config, file: Path | None) -> None:
    """Create what is not there, on the scheduler at `url`."""
    try:
        with Client(url) as client:
            for job, schedule in own_jobs(config, file):
                _ensure(client, job, schedule)
    except ClickclockError as error:
        _log.error("the jobs of attribution could not be set up, and are at the next start: %s", error)


def _ensure(client: Client, job: Payload, schedule: Payload) -> None:
    there = client.list_jobs(application=APPLICATION, jobName=job["jobName"])["jobs"]
    if not there:
        client.create_job(job)
    elif there[0]["command"] != job["command"]:
        client.change_job(APPLICATION, job["jobName"], {"command": job["command"]})
    if not client.list_schedules(scheduleId=schedule["scheduleId"])["schedules"]:
        client.create_schedule(schedule)
