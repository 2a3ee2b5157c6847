"""Our own recurring work, as jobs on the scheduler: created over HTTP, as any user's jobs are.

Never changes what a user changed: limits, times and the rest stay as they were left; who wants a job to rest pauses its
schedule, as what is missing is created again. Invariants: only a job's command and node are kept up to date, because
they name this installation's program, data folder and replica; a job of a living replica is left to it; safe to repeat,
and to be cut off anywhere.

>>> [job["jobName"] for job, _ in own_jobs(Config(), None)]
['compaction', 'run', 'exports', 'retention']
"""

import logging
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clickclock.app.certificates import own_trust
from clickclock.foundation.config import PREFIX, Config, from_environment
from clickclock.foundation.errors import ClickclockError, Fault

if TYPE_CHECKING:
    from clickclock.client import Client

Payload = dict[str, Any]
APPLICATION = "attribution"
OPERATIONS = "clickclock"
"""The application of jobs that are for the whole installation."""
EXISTS = "jobExists"
SENDING = "sending"
CALLING = "postbacks"
SETTINGS = (
    "attribution_engine",
    "attribution_memory_mb",
    "attribution_threads",
    "click_retention_days",
    "google_conversion_name",
    "lake_history_days",
    "order_retention_days",
    "spark_master",
    "spark_scratch",
    "upload_model",
)
"""What these jobs do is decided by these settings, and the service itself needs none of them."""

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
    of_the_lake: bool = True
    """Whether it works on the lake, rather than on the journals of one data folder."""
    application: str = APPLICATION


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
        of_the_lake=False,
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
        SENDING,
        "Sends the files of conversions to the ad networks that the configuration names.",
        ("attribution", "send"),
        {
            "scheduleName": "hourly",
            "expression": "35 * * * *",
            "description": "What a network did not take waits an hour.",
        },
        timeout_s=3600,
        retention_days=90,
    ),
    OwnJob(
        CALLING,
        "Calls the partners that the configuration names about the orders that their clicks earned.",
        ("attribution", "postbacks", "send"),
        {
            "scheduleName": "every-quarter-of-an-hour",
            "kind": "interval",
            "expression": "PT15M",
            "description": "A partner is called within half an hour of the credit, and again until it takes the call.",
        },
        timeout_s=3600,
        retention_days=30,
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


BACKUP = OwnJob(
    "backup",
    "Makes a backup of the store, the journals, the lake and the output of jobs, and verifies it.",
    ("backup", "create", "--verify"),
    {
        "scheduleName": "nightly",
        "expression": "10 2 * * *",
        "description": "The finding comes after two nights without.",
    },
    timeout_s=12 * 3600,
    retention_days=90,
    of_the_lake=False,
    application=OPERATIONS,
)


def own_jobs(config: Config, file: Path | None, node: str | None = None) -> list[tuple[Payload, Payload]]:
    """Each job with its schedule, as they are first created. `file` is the configuration's, if it came from one.

    On a database that several replicas share each job is bound to `node`, whose folders its command names: each replica
    has its own journals, and so its own compaction. The rest is the lake's: one for all on a lake that has an address,
    and each replica's own where each has its own lake.
    """
    settings = ["--data-dir", str(config.data_dir.absolute())]
    if file is not None:
        settings += ["--config", str(file.absolute())]
    if config.lake_url is not None:
        # A job begins in the root of the file system: a folder there is named in full.
        is_address = "://" in config.lake_url
        settings += ["--lake-url", config.lake_url if is_address else str(Path(config.lake_url).absolute())]
    bound_to = node if config.shares_database else None
    made = [
        _payloads(job, settings, bound_to, is_shared=_is_shared(job, config))
        for job in OWN_JOBS
        if config.clicks and (job.name != SENDING or config.send) and (job.name != CALLING or config.postback)
    ]
    if config.backup_url is not None:
        made.append(_payloads(BACKUP, [*settings, *_of_backup(config)], bound_to, is_shared=False))
    return made


def _of_backup(config: Config) -> list[str]:
    """The options of a backup's command line: place, key file and database, but no password."""
    url = config.backup_url or ""
    told = ["--backup-url", url if "://" in url else str(Path(url).absolute())]
    if config.backup_key_file is not None:
        told += ["--key-file", str(config.backup_key_file.absolute())]
    if config.database_url_file is not None:
        told += ["--database-url-file", str(config.database_url_file.absolute())]
    elif config.database_url is not None and urlsplit(config.database_url).password is None:
        told += ["--database-url", config.database_url]
    return told


def out_of_reach(config: Config, variables: Mapping[str, str]) -> list[Fault]:
    """Settings of these jobs that the service's environment gives, where they do not see them: a job has its own.

    >>> [fault.field for fault in out_of_reach(Config(), {"CLICKCLOCK_CLICK_RETENTION_DAYS": "30"})]
    ['click_retention_days']
    """
    needed = [*(SETTINGS if config.clicks else ())]
    if config.backup_url is not None:
        needed += ["backup_keep"]
        if config.database_url is not None and urlsplit(config.database_url).password is not None:
            needed += ["database_url"]
    given = from_environment(variables, [])
    names = {name: f"{PREFIX}{name.upper()}" for name in needed if name in given}
    told = "does not reach the service's own jobs; give it in the file, or name the variable in job_environment."
    return [Fault(name, f"{names[name]} {told}") for name in names if names[name] not in config.job_environment]


def _is_shared(job: OwnJob, config: Config) -> bool:
    return job.of_the_lake and config.lake_url is not None


def _payloads(job: OwnJob, settings: list[str], node: str | None, *, is_shared: bool) -> tuple[Payload, Payload]:
    name, schedule_id = job.name, f"{job.application}.{job.name}"
    if node is not None and not is_shared:
        # A node's name ends in what no other has; its whole name can be too long for an id.
        name, schedule_id = f"{name}-{node}", f"{schedule_id}-{node.rpartition('-')[2]}"
    whose = {"application": job.application, "jobName": name}
    made = {
        **whose,
        "description": job.description,
        "command": shlex.join([sys.executable, "-m", "clickclock.cli", *job.command, *settings]),
        "maxRetries": 2,
        "maxConcurrentTriggers": 1,
        "timeoutSeconds": job.timeout_s,
        "retentionDays": job.retention_days,
    }
    if node is not None:
        made["node"] = node
    return made, {**whose, "scheduleId": schedule_id, **job.schedule}


def ensure_own_jobs(url: str, token: str, config: Config, file: Path | None, node: str | None = None) -> bool:
    """Create what is not there, on the scheduler at `url`; a job of a replica that is gone becomes ours.

    `token` is the service's own. Whether that worked; the log says what did not.
    """
    import httpx  # noqa: PLC0415 (loaded beside a service that answers already)

    from clickclock.client import Client  # noqa: PLC0415 (as above)

    transport = (
        None if config.tls_certificate is None else httpx.HTTPTransport(verify=own_trust(config.tls_certificate))
    )
    try:
        with Client(url, token=token, transport=transport) as client:
            living = {each["node"] for each in client.cluster()["cluster"]["replicas"]}
            for job, schedule in own_jobs(config, file, node):
                _ensure(client, job, schedule, living)
    except ClickclockError as error:
        _log.error("the service's own jobs could not be set up, which is tried again: %s", error)
        return False
    return True


def _ensure(client: "Client", job: Payload, schedule: Payload, living: set[str]) -> None:
    from clickclock.client import Refused  # noqa: PLC0415 (loaded long since)

    there = client.list_jobs(application=job["application"], jobName=job["jobName"])["jobs"]
    ours: Payload = {name: job[name] for name in ("command", "node") if name in job}
    if not there:
        try:
            client.create_job(job)
        except Refused as refused:
            if refused.code != EXISTS:
                raise
            return  # another replica starts at the same time, and was first
    elif there[0].get("node") not in living - {job.get("node")} and {n: there[0].get(n) for n in ours} != ours:
        client.change_job(job["application"], job["jobName"], ours)
    if not client.list_schedules(scheduleId=schedule["scheduleId"])["schedules"]:
        client.create_schedule(schedule)
