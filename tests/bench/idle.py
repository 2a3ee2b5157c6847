"""A hundred thousand idle schedules: made in bulk, held, found again after a restart, and in nobody's way.

`python -m tests.bench idle`
"""

import json
import time
from pathlib import Path

import httpx

from tests.bench.machine import cpu_seconds, resident_mb
from tests.bench.peer import Peer, missing
from tests.bench.report import Goal, Report, percentile
from tests.bench.service import APPLICATION, BATCH, Service, rfc3339, whole_second_in
from tests.bench.stamps import Stamps, faults, in_ms

JOBS = 100
PROBES = 20
PEER = "APScheduler"
PEER_COUNT = 300
"""Enough to know a rate that is a few hundred times lower."""


def run(folder: Path, *, quick: bool) -> Report:
    """Create, weigh, watch doing nothing, restart, and probe the lag before and after."""
    count, watched_s = (20_000, 5) if quick else (100_000, 20)
    report = Report(f"idle: {count:,} schedules that are not due")
    (folder / "ours").mkdir()
    stamps = Stamps(folder / "ours")
    peer_rate = _peers_rate(folder, report)
    with Service(folder / "ours") as service:
        for n in range(JOBS):
            service.create_job(f"idle-{n}", "/bin/true")
        service.create_job("stamp", stamps.command("{{ parameters.n }}"), parameters={"n": None})
        empty_mb, empty_s = resident_mb(service.pid), service.ready_s
        before_ms = _probe(service, stamps, report)
        rate = count / _create_s(service, count)
        after_ms = _probe(service, stamps, report)
        grown_mb = resident_mb(service.pid)
        used = _idle_percent(service.pids(), watched_s)
        service.stop()
        service.start()
        held_mb, ready_s = resident_mb(service.pid), service.ready_s
        again_ms = _probe(service, stamps, report)
        used_again = _idle_percent(service.pids(), watched_s)
        report.notes.append(f"the supervisor: {sum(map(resident_mb, service.pids()[1:])):.1f} MB")
    report.add(f"created, {BATCH:,} to a request", "1/s", rate, Goal(least=20_000), peer_rate)
    report.add("memory of the service with none", "MB", empty_mb)
    report.add("memory right after the creation", "MB", grown_mb, Goal(most=120))
    report.add("memory after a restart", "MB", held_mb, Goal(most=120))
    report.add("start to healthy with none", "s", empty_s)
    report.add("restart to healthy", "s", ready_s, Goal(most=1.0))
    for name, share in (("p50", 0.5), ("max", 1.0)):
        report.add(
            f"lag of a due one, {name}, after a restart",
            "ms",
            percentile(again_ms, share),
            None,
            {"with none": percentile(before_ms, share), "before it": percentile(after_ms, share)},
        )
    report.add(f"CPU while idle, {watched_s} s", "% of a core", used, Goal(most=1.0))
    report.add(f"CPU while idle after a restart, {watched_s} s", "% of a core", used_again, Goal(most=1.0))
    return report


def _peers_rate(folder: Path, report: Report) -> dict[str, float]:
    if why := missing(PEER):
        report.notes.append(why)
        return {}
    (folder / "peer").mkdir()
    Stamps(folder / "peer")
    with Peer(PEER, folder / "peer") as peer:
        return {PEER: PEER_COUNT / peer.order("create", count=PEER_COUNT)}


def _create_s(service: Service, count: int) -> float:
    schedules = [
        {
            "application": APPLICATION,
            "jobName": f"idle-{n % JOBS}",
            "kind": "interval",
            "expression": f"PT{7000 + n % 1000}H",
        }
        for n in range(count)
    ]
    bodies = [json.dumps(schedules[start : start + BATCH]).encode() for start in range(0, count, BATCH)]
    url, headers = f"{service.url}/schedulerService/schedules", {"content-type": "application/json"}
    begun = time.perf_counter()
    for body in bodies:
        answer = service.http.post(url, content=body, headers=headers)
        if answer.status_code != httpx.codes.CREATED:
            raise RuntimeError(f"POST schedules answered {answer.status_code}: {answer.text[:1000]}")
    return time.perf_counter() - begun


def _probe(service: Service, stamps: Stamps, report: Report) -> list[float]:
    """The lags (ms) of a few single schedules, 200 ms apart."""
    stamps.clear()
    first_ns = whole_second_in(1.5)
    due_ns = {str(n): first_ns + 200_000_000 * n for n in range(PROBES)}
    service.create_schedules(
        [
            {"jobName": "stamp", "kind": "once", "expression": rfc3339(at_ns), "parameters": {"n": n}}
            for n, at_ns in due_ns.items()
        ]
    )
    started = stamps.wait_for(PROBES, until_ns=max(due_ns.values()), patience_s=10)
    report.faults += faults("clickclock", started, due_ns)
    return [in_ms(each.at_ns - due_ns[each.label]) for each in started if each.label in due_ns]


def _idle_percent(pids: list[int], seconds: float) -> float:
    time.sleep(2)  # what was asked before is over by then
    before_s, begun = cpu_seconds(*pids), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_seconds(*pids) - before_s) / (time.monotonic() - begun)
