"""Questions to a store with a million finished triggers: how long an answer takes (`python -m tests.bench history`).

Each question is asked once cold, right after a restart, and then again and again in turn with the others.
"""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from tests.bench.history_rows import APPLICATIONS, DAYS, JOBS, name_of, write
from tests.bench.report import Goal, Report, percentile
from tests.bench.service import Service

GOAL_MS = 50
_APPLICATION, _JOB_NAME = name_of(0)
_SCHEDULES = ",".join(".".join(name_of(n)) for n in range(20))
_ITS_JOB = {"application": _APPLICATION, "jobName": _JOB_NAME}


def run(folder: Path, *, quick: bool) -> Report:
    """A million (--quick: 100,000)."""
    count, rounds = (100_000, 10) if quick else (1_000_000, 20)
    report = Report(
        f"history: {count:,} finished triggers in the store; the slowest of {rounds} answers over HTTP",
        with_ratios=False,
    )
    now = datetime.now(UTC)
    with Service(folder) as service:
        service.post("group", {"groupName": "history"})
        for n in range(APPLICATIONS * JOBS):
            application, job_name = name_of(n)
            job = {"application": application, "jobName": job_name, "command": "/usr/bin/true", "groupName": "history"}
            service.post("job", job)
            service.post(
                "schedules", {"application": application, "jobName": job_name, "expression": f"{n % 60} 3 1 1 *"}
            )
        service.stop()
        begun = time.perf_counter()
        write(service.data_dir / "clickclock.db", now, count)
        size_mb = (service.data_dir / "clickclock.db").stat().st_size / 1e6
        report.notes.append(f"the store: {size_mb:,.0f} MB, written in {time.perf_counter() - begun:.0f} s")
        service.start()
        report.notes.append(f"start to healthy on it: {service.ready_s:.2f} s")
        took = _ask(service, _questions(now), rounds, report)
    for question, answers_ms in took.items():
        if len(answers_ms) > 1:
            report.add(
                question,
                "ms",
                max(answers_ms[1:]),
                Goal(most=GOAL_MS),
                {"median": percentile(answers_ms[1:], 0.5), "cold": answers_ms[0]},
            )
    return report


def _ask(
    service: Service, questions: dict[str, tuple[str, dict[str, Any]]], rounds: int, report: Report
) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {name: [] for name in questions}
    wrong: dict[str, str] = {}
    for _ in range(1 + rounds):
        for name, (resource, parameters) in questions.items():
            begun = time.perf_counter()
            answer = service.get(resource, **parameters)
            took[name].append(1000 * (time.perf_counter() - begun))
            if answer.status_code != httpx.codes.OK:
                wrong[name] = f"{name}: {answer.status_code} {answer.text[:300]}"
    report.faults += wrong.values()
    return took


def _within(now: datetime) -> dict[str, str]:
    since = (now - timedelta(days=6)).replace(minute=17)
    return {"from": since.isoformat(), "to": (since + timedelta(hours=100, minutes=31)).isoformat()}


def _day(now: datetime) -> dict[str, str]:
    return {"from": (now - timedelta(days=1)).replace(minute=0, second=0, microsecond=0).isoformat()}


def _questions(now: datetime) -> dict[str, tuple[str, dict[str, Any]]]:
    month = {"from": (now - timedelta(days=DAYS)).isoformat(), "to": now.isoformat()}
    return {
        "health check": ("jobTrigger", {"jsonQuery": '{"application":"a","jobName":"b"}'}),
        "jobTrigger, all, newest 100": ("jobTrigger", {}),
        "jobTrigger, all, newest 1,000": ("jobTrigger", {"limit": 1000}),
        "jobTrigger, of a job": ("jobTrigger", _ITS_JOB),
        "jobTrigger, of an application": ("jobTrigger", {"application": _APPLICATION}),
        "jobTrigger, failed": ("jobTrigger", {"state": "failed"}),
        "jobTrigger, succeeded": ("jobTrigger", {"state": "succeeded"}),
        "jobTrigger, lost (none)": ("jobTrigger", {"state": "lost"}),
        "jobTrigger, failed, of a job": ("jobTrigger", {**_ITS_JOB, "state": "failed"}),
        "jobTrigger, cancelled (none), of a job": ("jobTrigger", {**_ITS_JOB, "state": "cancelled"}),
        "jobStat, a job, 7 days": ("jobStat", _ITS_JOB),
        "jobStat, a job, 28 days by hour": ("jobStat", {**_ITS_JOB, **month, "bucket": "hour"}),
        "jobStat, an application, 7 days": ("jobStat", {"application": _APPLICATION}),
        "jobStat, a group, 7 days": ("jobStat", {"groupName": "history"}),
        "jobStat, a group, 28 days by day": ("jobStat", {"groupName": "history", **month, "bucket": "day"}),
        "jobStat, all, 7 days, with the slowest": ("jobStat", {}),
        "jobStat, all, 100 hours from within one": ("jobStat", {**_within(now), "bucket": "hour"}),
        "jobStat, a job, 7 days of Kathmandu": ("jobStat", {**_ITS_JOB, "timeZone": "Asia/Kathmandu"}),
        "jobStat, the slowest of 100 jobs, a day": ("jobStat", {**_day(now), "rank": "slowest"}),
        "jobStat, the flakiest of a group, a day": ("jobStat", {**_day(now), "groupName": "history", "rank": "flaky"}),
        "jobDetail": ("jobDetail", _ITS_JOB),
        "jobState, 100 jobs": ("jobState", {"limit": 100}),
        "jobState, 100 jobs, 20 triggers each": ("jobState", {"limit": 100, "recent": 20}),
        "scheduleTimes, 20 schedules, 48 times each": ("scheduleTimes", {"scheduleId": _SCHEDULES}),
        "scheduleTimes, 20 schedules, of 20 days ago": ("scheduleTimes", {"scheduleId": _SCHEDULES, **_within(now)}),
        "triggerMarks, newest 1,000": ("triggerMarks", {}),
        "triggerMarks, 1,000 of a day, of a job": ("triggerMarks", {**_ITS_JOB, **_day(now)}),
        "search": ("search", {"q": "job-1"}),
        "forecast, a day": ("forecast", {}),
        "job": ("job", {}),
        "schedules": ("schedules", {}),
        "group": ("group", {}),
        "cluster": ("cluster", {}),
    }
