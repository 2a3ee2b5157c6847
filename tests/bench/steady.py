"""Twenty fires a second: how late, never early, and what it costs (`python -m tests.bench steady`).

Twenty interval schedules of one second, 50 ms apart. Ours and APScheduler run in turns, in slices of the minute, so
that whatever else this machine does meets both.
"""

from contextlib import ExitStack
from pathlib import Path

from tests.bench.machine import cpu_seconds
from tests.bench.peer import Peer, present
from tests.bench.report import Goal, Report, percentile
from tests.bench.service import Service, rfc3339, whole_second_in
from tests.bench.stamps import Stamp, Stamps, faults, in_ms

A_SECOND = 20
PHASES_MS = [1000 * n // A_SECOND for n in range(A_SECOND)]
SLICES = 3
WARM_S = 2
"""Both have fired before they are measured: what is wanted is a service that has been up."""
PEER = "APScheduler"
_SETTLE_S = 2.0
"""A burst of creations is over by then, and does not count."""


def run(folder: Path, *, quick: bool) -> Report:
    """A minute each (--quick: 10 s)."""
    seconds = 10 if quick else 20
    slices = 1 if quick else SLICES
    report = Report(f"steady: {A_SECOND} fires a second for {slices * seconds} s; the lag is from the nominal time")
    lags: dict[str, list[float]] = {}
    cpu: dict[str, float] = {}
    names = present([PEER], report.notes)
    stamps = {name: Stamps(_fresh(folder / name)) for name in ("clickclock", *names)}
    with ExitStack() as stack:
        service = stack.enter_context(Service(folder / "clickclock"))
        service.create_job("stamp", stamps["clickclock"].command("{{ parameters.n }}"), parameters={"n": None})
        runners: dict[str, Service | Peer] = {"clickclock": service}
        runners |= {name: stack.enter_context(Peer(name, folder / name)) for name in names}
        for who, runner in runners.items():
            slice_of(who, runner, stamps[who], WARM_S, {}, {}, report)
        for _ in range(slices):
            for who, runner in runners.items():
                slice_of(who, runner, stamps[who], seconds, lags, cpu, report)
    goals = {0.99: Goal(most=5.0, factor=1.2, of=PEER, any_of=True)}
    for share, name in ((0.5, "p50"), (0.99, "p99"), (1.0, "max")):
        found = {who: percentile(each, share) for who, each in lags.items()}
        report.add(f"lag {name}", "ms", found.pop("clickclock"), goals.get(share), found)
    used = {who: 1000 * each / (slices * seconds) for who, each in cpu.items()}
    report.add("CPU", "ms/s", used.pop("clickclock"), Goal(factor=0.7, of=PEER), used)
    return report


def _fresh(folder: Path) -> Path:
    folder.mkdir()
    return folder


def slice_of(
    who: str,
    runner: Service | Peer,
    stamps: Stamps,
    seconds: int,
    lags: dict[str, list[float]],
    cpu: dict[str, float],
    report: Report,
) -> None:
    """So many seconds of live fires; their lags and what they cost go to `who`, what is wrong to the report."""
    stamps.clear()
    at_ns = whole_second_in(_SETTLE_S + 1)
    if isinstance(runner, Service):
        _create(runner, at_ns, seconds)
        pids = runner.pids()
    else:
        runner.order("steady", at_ns=at_ns, seconds=seconds, phases=[each / 1000 for each in PHASES_MS])
        pids = [runner.pid]
    stamps.wait_for(1, until_ns=at_ns, patience_s=5)  # the creation is over
    before_s = cpu_seconds(*pids)
    started = stamps.wait_for(A_SECOND * seconds, until_ns=at_ns + seconds * 1_000_000_000, patience_s=5)
    cpu[who] = cpu.get(who, 0.0) + cpu_seconds(*pids) - before_s
    wrong = faults(who, started, [str(n) for n in range(A_SECOND)] * seconds)
    late = [] if wrong else _lags_ms(started, at_ns)
    if any(each < 0 for each in late):
        wrong.append(f"{who}: {sum(each < 0 for each in late)} started early")
    lags.setdefault(who, []).extend(late)
    (report.faults if isinstance(runner, Service) else report.notes).extend(wrong)


def _create(service: Service, at_ns: int, seconds: int) -> None:
    service.create_schedules(
        [
            {
                "jobName": "stamp",
                "kind": "interval",
                "expression": "PT1S",
                "startAt": rfc3339(at_ns + 1_000_000 * phase),
                "endAt": rfc3339(at_ns + 1_000_000 * phase + 1_000_000_000 * seconds - 500_000_000),
                "parameters": {"n": str(n)},
            }
            for n, phase in enumerate(PHASES_MS)
        ]
    )


def _lags_ms(started: list[Stamp], at_ns: int) -> list[float]:
    """The k-th start of a schedule is the one for its k-th nominal time: none is lost, none is doubled."""
    seen = dict.fromkeys(range(A_SECOND), 0)
    late = []
    for each in started:
        n = int(each.label)
        nominal_ns = at_ns + 1_000_000 * PHASES_MS[n] + 1_000_000_000 * seen[n]
        seen[n] += 1
        late.append(in_ms(each.at_ns - nominal_ns))
    return late
