"""Attempts as another user, for real: what they have, what they may not, and that they end as any other.

The user is `nobody`, whom every machine has.
"""

import asyncio
import os
import pwd
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from clickclock.scheduler.executors.accounts import why_not
from clickclock.scheduler.jobs.trigger import Exit, ExitKind
from tests.contract.test_executors import DEADLINE_S, Place, ProcessMember

pytestmark = pytest.mark.needs("root")
NOBODY = pwd.getpwnam("nobody")


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    """An open, empty executor of processes."""
    place = Place(ProcessMember(tmp_path / "data"))
    await place.open()
    yield place
    await place.leave()


def processes_of(uid: int) -> set[int]:
    """The living processes of a user that `FAR` begins: other tests run as that user, too."""
    found = set()
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            status = (each / "status").read_text().split("\n")
            is_there = next(line for line in status if line.startswith("State:")).split()[1] not in "ZX"
            is_far = b"401" in (each / "cmdline").read_bytes()
            if is_there and is_far and int(next(line for line in status if line.startswith("Uid:")).split()[1]) == uid:
                found.add(int(each.name))
    return found


async def ended(place: Place, script: str, **fields: Any) -> tuple[Exit, str]:
    """How a script ended as nobody, and what it printed."""
    name = await place.shell(script, **{"user": "nobody", **fields})
    ending = await place.end(name)
    return ending, (await place.output(name)).decode()


async def test_it_is_that_user_for_good_with_its_groups_and_no_rights_of_ours(place: Place) -> None:
    _, output = await ended(place, "grep -E '^(Uid|Gid|Groups|CapEff|CapAmb|CapPrm)' /proc/self/status")
    told = dict(line.split(":") for line in output.splitlines())
    assert set(told["Uid"].split()) == {str(NOBODY.pw_uid)}
    assert set(told["Gid"].split()) == {str(NOBODY.pw_gid)}
    assert set(map(int, told["Groups"].split())) == set(os.getgrouplist("nobody", NOBODY.pw_gid))
    assert {int(told[name], 16) for name in ("CapEff", "CapAmb", "CapPrm")} == {0}


async def test_a_login_would_set_the_same_and_the_job_goes_over_it(place: Place) -> None:
    _, output = await ended(place, 'echo "$HOME $USER $LOGNAME $SHELL"', environment={"USER": "mine"})
    assert output.split() == [NOBODY.pw_dir, "mine", "nobody", NOBODY.pw_shell]


async def test_a_number_and_a_group_name_the_same(place: Place) -> None:
    _, output = await ended(place, "id -u; id -g", user=f"{NOBODY.pw_uid}:daemon")
    assert output.split() == [str(NOBODY.pw_uid), "1"]


@pytest.mark.parametrize("user", ["no-such-user", "nobody:no-such-group", "4294967294000"])
async def test_who_is_not_there_ends_the_attempt_with_a_sentence(place: Place, user: str) -> None:
    name = await place.shell("true", user=user)
    ending = await place.end(name)
    assert ending.kind is ExitKind.NOT_STARTED
    assert "This machine has no" in (ending.message or "")
    assert why_not(user) == ending.message


async def test_one_that_is_refused_does_not_hold_up_the_others_and_is_refused_again(place: Place) -> None:
    name = await place.shell("echo ran", user="no-such-user")
    other = await place.shell("echo ran")
    assert (await place.end(other)).code == 0
    await place.end(name)
    await place.reopen()
    await place.shell("echo ran", name=name, user="no-such-user")
    assert (await place.end(name)).kind is ExitKind.NOT_STARTED


async def test_its_folder_is_entered_and_its_program_found_with_its_own_rights(place: Place, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "program").write_text("#!/bin/sh\necho ran\n")
    (closed / "program").chmod(0o700)
    ending, _ = await ended(place, "true", working_directory=str(closed))
    assert ending.message == (
        f"The working directory {str(closed)!r} cannot be entered by the user 'nobody': Permission denied."
    )
    ending = await place.end(await place.start(str(closed / "program"), user="nobody"))
    assert ending.message == f"The command {str(closed / 'program')!r} is not executable by the user 'nobody'."
    assert (await place.end(await place.start(str(closed / "program")))).code == 0


async def test_its_output_is_ours_to_read_and_its_own_to_open(place: Place, tmp_path: Path) -> None:
    ending, output = await ended(place, "echo one; echo two > /dev/stderr; echo three >> /dev/stdout; exit 3")
    assert ending.code == 3
    assert "two\nthree\n" in output
    (log,) = (tmp_path / "data/logs").rglob("*.log")
    assert (log.stat().st_uid, log.parent.stat().st_mode & 0o777) == (os.geteuid(), 0o700)


async def test_limits_hold_for_it_too(place: Place) -> None:
    script = "exec python3 -c 'x = bytearray(400_000_000)'"
    ending, _ = await ended(place, script, memory_bytes=100 * 2**20, environment={"PATH": "/usr/bin:/bin"})
    assert ending.code != 0
    ending, output = await ended(place, "sleep 60", timeout_s=0.2, grace_s=0.2)
    assert (ending.kind, output) == (ExitKind.TIMEOUT, "")


FAR = "(setsid setsid sleep 4011 &); setsid sh -c 'trap : TERM; sleep 4012; sleep 4013' & timeout 900 sleep 4014 &"


@pytest.mark.parametrize("how", ["stop", "end", "timeout", "adopted"])
async def test_whatever_it_started_ends_with_it(place: Place, how: str) -> None:
    before = processes_of(NOBODY.pw_uid)
    fields: dict[str, Any] = {"timeout_s": 0.5, "grace_s": 0.2} if how == "timeout" else {}
    rest = "exit 0" if how == "end" else "echo up; exec sleep 4015"
    name = await place.shell(f"{FAR} {rest}", user="nobody", **fields)
    if how in {"stop", "adopted"}:
        await place.printed(name, b"up")
        async with asyncio.timeout(DEADLINE_S):
            while len(await asyncio.to_thread(processes_of, NOBODY.pw_uid) - before) < 4:
                pass
        if how == "adopted":
            await place.reopen()
        await place.executor.stop([name], 0.2)
    await place.end(name)
    assert processes_of(NOBODY.pw_uid) <= before


async def test_a_supervisor_of_an_earlier_release_runs_nothing_of_another_user(place: Place) -> None:
    place.executor._changes_users = False  # type: ignore[attr-defined]
    ending = await place.end(await place.shell("true", user="nobody"))
    assert ending.kind is ExitKind.NOT_STARTED
    assert "earlier release" in (ending.message or "")
    assert (await place.end(await place.shell("true", user="root"))).code == 0  # who we are already
