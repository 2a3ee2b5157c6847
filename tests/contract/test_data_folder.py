"""The data folder and whoever else is on the machine: refused where they could have put something in, closed to them.

Real folders, real owners, real links; the other user is `nobody`.
"""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from clickclock.app.data_folder import make_data_dir
from clickclock.app.lake_lock import among_others
from clickclock.foundation.config import load
from clickclock.foundation.errors import ConfigurationError

NOBODY = 65534


def faults(data_dir: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as refused:
        make_data_dir(data_dir)
    return [fault.message for fault in refused.value.faults]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.needs("root")
def test_a_folder_of_another_user_with_a_link_of_theirs_is_refused_and_all_is_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "logs").symlink_to("/etc")
    os.lchown(data / "logs", NOBODY, NOBODY)
    os.chown(data, NOBODY, NOBODY)
    data.chmod(0o777)
    said = faults(data)
    assert len(said) == 3
    assert f"{data} belongs to nobody" in said[0]
    assert "every user may write" in said[1]
    assert "mode 0777" in said[1]
    assert f"{data}/logs is a link that another user made" in said[2]


def test_a_link_in_the_place_of_a_file_that_we_write_is_refused(tmp_path: Path) -> None:
    for name in ("clickclock.db", "run", "address-salt"):
        (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    tmp_path.chmod(0o700)
    assert [each.split()[0].rpartition("/")[2] for each in faults(tmp_path)] == ["run", "clickclock.db", "address-salt"]


def test_a_link_of_our_own_to_a_larger_disk_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "lake").symlink_to(tmp_path / "disk")
    make_data_dir(tmp_path / "data")


def test_a_folder_that_others_may_read_is_closed_to_them_and_open_to_its_group(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_data_dir(tmp_path)
    assert mode(tmp_path) == 0o750
    make_data_dir(tmp_path / "new")
    assert mode(tmp_path / "new") == 0o700


def test_who_writes_the_lake_writes_it_for_its_owner_alone_unless_it_has_a_place_of_its_own(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        for said, expected in (({}, 0o600), ({"lake_url": str(tmp_path / "lake")}, 0o644)):
            config = load(None, {}, {"data_dir": tmp_path / "data", **said})
            with among_others(config):
                (tmp_path / "file").write_text("")
            assert mode(tmp_path / "file") == expected
            (tmp_path / "file").unlink()
    finally:
        os.umask(before)


LOOKED_AT = """
import ctypes, os, sys
from clickclock.foundation.seal import close
os.setresuid(65534, 65534, 65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
if sys.argv[1] == "closed":
    close()
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.mark.needs("root")
@pytest.mark.parametrize("is_closed", [False, True])
def test_a_closed_process_cannot_be_looked_into_by_another_of_its_user(is_closed: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LOOKED_AT, "closed" if is_closed else "open"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "src"},
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        pid = process.stdout.readline().strip()
        as_nobody = ("setpriv", "--reuid", "nobody", "--clear-groups", "--bounding-set", "-all")
        looked = subprocess.run([*as_nobody, "cat", f"/proc/{pid}/environ"], capture_output=True, check=False)
        process.stdin.close()
    assert (b"PYTHONPATH" in looked.stdout) is not is_closed


SEALED = """
import os, sys
from clickclock.foundation.seal import seal
seal()
shown = open("/proc/self/environ", "rb").read()
print(len(shown) > 5, set(shown) == {0}, os.environ["MARK"], os.popen("echo $MARK").read().strip())
"""


def test_a_sealed_process_shows_nothing_of_its_environment_and_still_has_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SEALED], env={**os.environ, "PYTHONPATH": "src", "MARK": "hunter2"}, check=True,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.split() == ["True", "True", "hunter2", "hunter2"]
