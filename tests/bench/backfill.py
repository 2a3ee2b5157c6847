"""Twenty live fires a second, alone and beside a backfill of 10,000 times (`python -m tests.bench backfill`).

The live lag is measured in slices from the nominal time: two beside the backfill, one while it is paused, and so on
until it is done, so that whatever else this machine does meets both. The backfill's triggers run `/bin/true`.
"""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.bench.report import Goal, Report, percentile
from tests.bench.service import Service
from tests.bench.stamps import Stamps
from tests.bench.steady import A_SECOND, WARM_S, slice_of

TIMES = 10_000
ALONE = "without"


def run(folder: Path, *, quick: bool) -> Report:
    """Slices of 20 s until 10,000 times have run, at the pace that is the default (--quick: 5 s, 500 times)."""
    seconds = 5 if quick else 20
    times = TIMES // 20 if quick else TIMES
    report = Report(
        f"backfill: {A_SECOND} live fires a second beside {times:,} times of the past; lag from nominal time"
    )
    lags: dict[str, list[float]] = {ALONE: [], "beside": []}
    for name in ("stamps", "clickclock"):
        (folder / name).mkdir()
    stamps = Stamps(folder / "stamps")
    with Service(folder / "clickclock") as service:
        service.create_job("stamp", stamps.command("{{ parameters.n }}"), parameters={"n": None})
        service.create_job("past", "/bin/true")
        # It has every minute of the past, and none that is live while this runs.
        a_day = (datetime.now(UTC) - timedelta(days=1)).strftime("%FT%TZ")
        past = {"jobName": "past", "scheduleId": "past", "expression": "* * * * *", "paused": True}
        service.create_schedules([past])
        slice_of("clickclock", service, stamps, WARM_S, {}, {}, report)
        since = (datetime.now(UTC) - timedelta(days=1, minutes=times - 1)).replace(second=0).strftime("%FT%TZ")
        made = service.post("backfill", {"scheduleId": "past", "from": since, "to": a_day})["backfill"]
        its_id = made["backfillId"]
        took_s = 0.0
        while (state := _state(service, its_id))["state"] == "running":
            begun = time.perf_counter()
            for _ in range(2):
                slice_of("beside", service, stamps, seconds, lags, {}, report)
            took_s += time.perf_counter() - begun
            if _pause(service, its_id, paused=True):
                slice_of(ALONE, service, stamps, seconds, lags, {}, report)
                _pause(service, its_id, paused=False)
    if (state["state"], state["done"], state["failed"]) != ("done", made["total"], 0):
        report.faults.append(f"the backfill ended as {state}")
    for share, name in ((0.5, "p50"), (0.99, "p99"), (1.0, "max")):
        goal = Goal(factor=1.5, of=ALONE) if name == "p99" else None
        found = {who: percentile(each, share) for who, each in lags.items()}
        report.add(f"live lag {name} beside a backfill", "ms", found["beside"], goal, {ALONE: found[ALONE]})
    report.add("times of the backfill", "/s", made["total"] / took_s, None, {})
    return report


def _state(service: Service, backfill_id: str) -> dict[str, object]:
    (found,) = service.get("backfill", backfillId=backfill_id).json()["backfills"]
    return dict(found)


def _pause(service: Service, backfill_id: str, *, paused: bool) -> bool:
    """Pause it, or let it go on; False if it is over."""
    address = f"{service.url}/schedulerService/backfill"
    return service.http.put(address, json={"backfillId": backfill_id, "paused": paused}).is_success
