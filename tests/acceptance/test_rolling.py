"""The release before and this one, on the same tables: side by side during a roll, and back by one release.

The old program is the one that `tests/data/releases` keeps. Neither is a double. Invariant: each attempt left
a mark, so that what two releases did together can be counted.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from clickclock.foundation.instant import ms_of
from tests.acceptance.service import Service, running
from tests.releases import program_of_the_last, until
from tests.supervisors import kill_supervisor

SCHEDULES = 6
"""Each every second."""
EACH = 3
"""Runs that a replica has to have made before it is replaced."""
_MARK = 'echo "$CLICKCLOCK_TRIGGER_ID $CLICKCLOCK_ATTEMPT" >> {marks}'


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the release before."""
    return program_of_the_last(tmp_path_factory.mktemp("before"))


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Data folders of two replicas; no supervisor of theirs is left."""
    both = tmp_path / "one", tmp_path / "other"
    yield both
    for folder in both:
        kill_supervisor(folder)


class Roll:
    """Jobs that leave marks, and what the replicas say of them."""

    def __init__(self, marks: Path) -> None:
        self.marks = marks
        self.shell = {"shell": True, "maxRetries": 3}

    def prepare(self, service: Service) -> None:
        """Schedules, and one job that outlives all."""
        mark = _MARK.format(marks=self.marks)
        for name, command in (("tick", mark), ("long", f"{mark}; exec sleep 600")):
            self.send(service, "/job", jobName=name, command=command, **self.shell)
        for number in range(SCHEDULES):
            said = {"jobName": "tick", "scheduleId": f"s{number}", "kind": "interval", "expression": "1"}
            kept = {"overlapPolicy": "allow", "catchUp": {"policy": "all", "maxTriggers": 1000}}
            self.send(service, "/schedules", **said, **kept)
        self.send(service, "/jobTrigger", jobName="long")
        until(lambda: self.long(service)["state"] == "running", "the long job runs")

    def send(self, service: Service, path: str, **body: Any) -> dict[str, Any]:
        answer = httpx.post(f"{service.url}/schedulerService{path}", json={"application": "roll", **body})
        assert answer.is_success, answer.text
        said: dict[str, Any] = answer.json()
        return said

    def triggers(self, service: Service, job: str = "tick") -> list[dict[str, Any]]:
        asked: dict[str, str | int] = {"application": "roll", "jobName": job, "limit": 1000}
        answer = httpx.get(f"{service.url}/schedulerService/jobTrigger", params=asked)
        assert answer.is_success, answer.text
        found: list[dict[str, Any]] = answer.json()["triggers"]
        return found

    def long(self, service: Service) -> dict[str, Any]:
        (found,) = self.triggers(service, "long")
        return found

    def more_on(self, service: Service) -> None:
        """Wait until the replica of this folder has concluded more."""
        node = (service.data_dir / "node").read_text(encoding="utf-8").strip()

        def count() -> int:
            return sum(each["node"] == node and each["state"] == "succeeded" for each in self.triggers(service))

        first = count()
        until(lambda: count() >= first + EACH, f"{EACH} more runs on {node}")

    def by_hand(self, asked: Service, read: Service) -> None:
        """A run that one replica is asked for, and another tells of."""
        trigger_id = self.send(asked, "/jobTrigger", jobName="tick")["trigger"]["triggerId"]

        def has_run() -> bool:
            return any(each["triggerId"] == trigger_id and each["state"] == "succeeded" for each in self.triggers(read))

        until(has_run, f"{trigger_id} has run")

    def assert_once(self, service: Service) -> None:
        """All that was due has run, once, and the long job is still in its first attempt; then it is cancelled."""
        for number in range(SCHEDULES):
            path = f"{service.url}/schedulerService/schedules"
            assert httpx.delete(path, params={"scheduleId": f"s{number}"}).is_success
        until(lambda: {each["state"] for each in self.triggers(service)} == {"succeeded"}, "all has run")
        found, long = self.triggers(service), self.long(service)
        marks = Counter(line.split()[0] for line in self.marks.read_text(encoding="ascii").splitlines())
        assert marks == {each["triggerId"]: 1 for each in [*found, long]}
        assert (long["state"], long["attempt"]) == ("running", 1)
        times = Counter((each["scheduleId"], each["nominalTime"]) for each in found if each.get("scheduleId"))
        assert set(times.values()) == {1}
        for number in range(SCHEDULES):
            mine = sorted(_ms(at) for name, at in times if name == f"s{number}")
            assert [late - early for early, late in itertools.pairwise(mine)] == [1000] * (len(mine) - 1)
        path = f"{service.url}/schedulerService/jobTrigger"
        assert httpx.delete(path, params={"triggerId": long["triggerId"]}).is_success
        until(lambda: self.long(service)["state"] == "cancelled", "the long job is cancelled")


def _ms(at: str) -> int:
    return ms_of(datetime.fromisoformat(at))


def test_both_releases_serve_one_postgresql_while_replicas_are_replaced(
    before: Path, folders: tuple[Path, Path], tmp_path: Path, blank_url: Callable[[str], str]
) -> None:
    roll, (one, other) = Roll(tmp_path / "marks"), folders
    database = ("--database-url", blank_url("postgresql"))
    with running(one, *database, source=before) as old:
        roll.prepare(old)
        with running(other, *database) as new:
            for replica in (old, new):
                roll.more_on(replica)
            roll.by_hand(old, new)
            roll.by_hand(new, old)
            assert old.stop() == 0
            with running(one, *database) as replaced:
                roll.more_on(replaced)
                assert new.stop() == 0
                # And back: the new tables under the old program.
                with running(other, *database, source=before) as back:
                    roll.more_on(back)
                    roll.by_hand(back, replaced)
                    roll.assert_once(replaced)


def test_a_sqlite_goes_to_the_new_release_and_back_while_a_job_runs(
    before: Path, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    roll, folder = Roll(tmp_path / "marks"), folders[0]
    with running(folder, source=before) as old:
        roll.prepare(old)
        roll.more_on(old)
        old.kill()
    with running(folder) as new:
        roll.more_on(new)
        new.kill()
    with running(folder, source=before) as back:
        roll.more_on(back)
        roll.assert_once(back)
