"""Attribution's own recurring work, as jobs on the scheduler: created over HTTP, as any user's jobs are.

Never changes what a user changed: limits, times and the rest stay as they were left; who wants a job to rest pauses its
schedule, as what is missing is created again. Invariants: only a job's command is kept up to date, because it names
this installation's program and data folder; safe to repeat, and to be cut off anywhere.

>>> [job["jobName"] for job, _ in own_jobs(Config(), None)]
['compaction']
"""

import logging
import shlex
import sys
from pathlib import Path

from clickclock.client import Client, Payload
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ClickclockError

APPLICATION = "attribution"

_log = logging.getLogger(__name__)


def own_jobs(config: Config, file: Path | None) -> list[tuple[Payload, Payload]]:
    """Each job with its schedule, as they are first created. `file` is the configuration's, if it came from one."""
    settings = ["--data-dir", str(config.data_dir.absolute())]
    if file is not None:
        settings += ["--config", str(file.absolute())]
    if config.lake_url is not None:
        settings += ["--lake-url", config.lake_url]
    program = [sys.executable, "-m", "clickclock.cli"]
    compaction = {
        "application": APPLICATION,
        "jobName": "compaction",
        "description": "Moves sealed segments of the journal into the lake, and merges small files there.",
        "command": shlex.join([*program, "compact", "--all", *settings]),
        "maxRetries": 2,
        "maxConcurrentTriggers": 1,
        "timeoutSeconds": 3600,
        "retentionDays": 3,
    }
    every_minute = {
        "scheduleId": "attribution.compaction",
        "application": APPLICATION,
        "jobName": "compaction",
        "scheduleName": "every-minute",
        "kind": "interval",
        "expression": "PT1M",
        "description": "A click is in the lake about two minutes after it was acknowledged.",
    }
    return [(compaction, every_minute)]


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
