"""One-off schedules that are all due in the same second: how long until the last has started, and is any lost.

Each product runs in turn, in every round. `python -m tests.bench due`
"""

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.bench.peer import Peer, present
from tests.bench.raw import spawn_s
from tests.bench.report import Goal, Report
from tests.bench.service import Service, rfc3339, whole_second_in
from tests.bench.stamps import Stamp, Stamps, faults

PEERS = ("APScheduler", "Celery")
_LEAD_S = {"clickclock": (2.0, 1 / 3000), "APScheduler": (3.0, 1 / 300), "Celery": (3.0, 1 / 300)}
"""By product: how long before the instant its creation begins: seconds, and seconds for each schedule."""
WARM, WARM_S = 20, 30.0
"""Every product first runs so many, within so many seconds: what is measured is a service that has been up."""
GOALS = {
    1000: Goal(most=0.55, factor=0.5, of="Celery"),
    5000: Goal(most=5000 / 1500),
}


def run(folder: Path, *, quick: bool) -> Report:
    """A few rounds of 1,000 (--quick: one of 300), then one of 5,000 (--quick: 1,000)."""
    report = Report("due: one-off schedules due in one second; from that instant until the last has started")
    names = present(PEERS, report.notes)
    for count, rounds in ((300, 1), (1000, 1)) if quick else ((1000, 3), (5000, 1)):
        took: dict[str, list[float]] = {name: [] for name in ("clickclock", *names, "spawn loop")}
        for _ in range(rounds):
            for name, rounds_s in took.items():
                # A folder of its own each time: no product works through the rows of an earlier round.
                with tempfile.TemporaryDirectory(dir=folder) as fresh:
                    _measure(name, Path(fresh), count, rounds_s, report)
        ours, *_ = took["clickclock"] or [float("nan")]
        report.add(f"{count:,}: last start", "s", took.pop("clickclock") or ours, GOALS.get(count), took)
        report.add(f"{count:,}: starts", "1/s", count / report.measures[-1].ours)
    return report


def _measure(name: str, folder: Path, count: int, took: list[float], report: Report) -> None:
    stamps = Stamps(folder)
    if name == "spawn loop":
        took.append(spawn_s(stamps, count))
        return
    with ExitStack() as stack:
        if name == "clickclock":
            service = stack.enter_context(Service(folder))
            at_ns, begun_cpu_s = _ours(service, stamps, count), service.cpu_seconds()
        else:
            at_ns = _peers(name, stack.enter_context(Peer(name, folder)), stamps, count)
        if time.time_ns() > at_ns:
            report.faults.append(f"{name}: {count} were created too late to be due together; the machine is too busy")
        started = stamps.wait_for(count, until_ns=at_ns)
        if name == "clickclock":
            service.settle()
            used_s = service.cpu_seconds() - begun_cpu_s
            report.notes.append(
                f"{count:,}: first start {_after_s(started[:1], at_ns):.3f} s after the instant; "
                f"{1e6 * used_s / count:.0f} µs of CPU per run in the service and its supervisor"
            )
    wrong = faults(name, started, map(str, range(count)))
    if any(each.at_ns < at_ns for each in started):
        wrong.append(f"{name}: started early")
    if name == "clickclock":
        report.faults.extend(wrong)
    else:
        report.notes.extend(wrong)
    took.append(_after_s(started, at_ns))


def _after_s(started: list[Stamp], at_ns: int) -> float:
    return (started[-1].at_ns - at_ns) / 1e9 if started else float("nan")


def _lead_s(name: str, count: int) -> float:
    fixed_s, each_s = _LEAD_S[name]
    return fixed_s + count * each_s


def _ours(service: Service, stamps: Stamps, count: int) -> int:
    service.create_job("stamp", stamps.command("{{ parameters.n }}"), parameters={"n": None})
    _schedule(service, whole_second_in(0.2), WARM)
    if len(stamps.wait_for(WARM, patience_s=WARM_S)) < WARM:
        raise RuntimeError("clickclock does not run anything")
    service.settle()
    stamps.clear()
    at_ns = whole_second_in(_lead_s("clickclock", count))
    _schedule(service, at_ns, count)
    return at_ns


def _schedule(service: Service, at_ns: int, count: int) -> None:
    service.create_schedules(
        [
            {"jobName": "stamp", "kind": "once", "expression": rfc3339(at_ns), "parameters": {"n": str(n)}}
            for n in range(count)
        ]
    )


def _peers(name: str, peer: Peer, stamps: Stamps, count: int) -> int:
    for n in range(WARM):
        peer.order("trigger", label=str(n))
    if len(stamps.wait_for(WARM, patience_s=WARM_S)) < WARM:
        raise RuntimeError(f"{name} does not run anything")
    stamps.clear()
    at_ns = whole_second_in(_lead_s(name, count))
    peer.order("due", at_ns=at_ns, count=count)
    return at_ns
