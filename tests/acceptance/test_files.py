"""Jobs as files as their user meets them: the real program, its exit codes, and what it says of a bad file."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.service import Service, running

GOOD = """\
application: shop
jobs:
  - jobName: nightly
    command: echo hello
    schedules:
      - expression: "30 2 * * *"
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("files")) as running_service:
        yield running_service


def clickclock(
    service: Service, *words: str, given: str | None = None, through: tuple[str, ...] = ()
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command, which is run `through` another."""
    environment = {**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_URL": service.url}
    command = [*through, sys.executable, "-m", "clickclock.cli", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, input=given, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_files_are_shown_applied_and_then_nothing_changes(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(GOOD)
    code, shown, _ = clickclock(service, "apply", "-f", str(tmp_path), "--diff")
    assert code == 4
    assert "+command: echo hello\n" in shown
    assert "\x1b[" not in shown
    assert clickclock(service, "export") == (0, "", "")
    assert clickclock(service, "apply", "-f", str(tmp_path))[:2] == (
        0,
        "job shop/nightly created\nschedule shop/nightly/default created\n2 created, 0 unchanged.\n",
    )
    assert clickclock(service, "apply", "-f", str(tmp_path), "--diff") == (0, "", "")
    _, exported, _ = clickclock(service, "export", "--application", "shop")
    assert clickclock(service, "apply", "-f", "-", given=exported)[:2] == (0, "2 unchanged.\n")


def test_every_fault_of_every_file_has_its_place_and_nothing_is_applied(service: Service, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace("nightly", "twice").replace("command:", "comand:"))
    (tmp_path / "b.yaml").write_text("---\n" + GOOD.replace("nightly", "twice").replace("30 2", "61 2"))
    (tmp_path / "c.yaml").write_text(GOOD.replace("nightly", "twice"))
    (tmp_path / "d.yaml").write_text(GOOD.replace("nightly", "fine"))
    code, said, errors = clickclock(service, "apply", "-f", str(tmp_path))
    assert (code, said) == (1, "")
    for part in (
        "a.yaml:4:5: comand: There is no such field; did you mean command?",
        "a.yaml:3:5: command: This is required; give it.",
        "b.yaml:7:9: expression: The minute field",
        "b.yaml:4:5: jobs[0]: The job shop/twice is given 3 times; give it once.",
        "c.yaml:3:5: jobs[0]: The job shop/twice is given 3 times; give it once.",
    ):
        assert f"{tmp_path}/{part}" in errors
    assert "fine" not in clickclock(service, "export")[1]


def test_a_file_that_is_no_yaml_is_told_before_anything_is_sent(service: Service, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("jobs: [\n")
    code, _, errors = clickclock(service, "apply", "-f", str(tmp_path))
    assert code == 1
    assert f"{tmp_path}/a.yaml:2:1: This is not YAML" in errors


def test_an_empty_folder_is_taken_for_a_mistake(service: Service, tmp_path: Path) -> None:
    code, _, errors = clickclock(service, "apply", "-f", str(tmp_path), "--set", "x", "--prune")
    assert code == 2
    assert "--allow-empty" in errors


@pytest.mark.needs("namespaces")
def test_a_folder_that_cannot_be_read_is_told_and_nothing_in_it_is_pruned(service: Service, tmp_path: Path) -> None:
    term = ["--set", "guarded", "--prune"]
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "jobs.yaml").write_text(f"application: guarded\njobs: [{{jobName: {name}, command: x}}]\n")
    assert clickclock(service, "apply", "-f", str(tmp_path), *term)[0] == 0
    (tmp_path / "closed").chmod(0)
    not_as_root = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    code, said, errors = clickclock(service, "apply", "-f", str(tmp_path), *term, through=not_as_root)
    (tmp_path / "closed").chmod(0o700)
    assert (code, said) == (1, "")
    assert f"{tmp_path}/closed: It cannot be read: Permission denied." in errors
    assert clickclock(service, "apply", "-f", str(tmp_path), *term)[1] == "2 unchanged.\n"


def test_a_crontab_is_imported_and_again_changes_nothing(service: Service) -> None:
    lines = "MAILTO=me\n*/5 * * * * echo a | cat\n@reboot echo b\n"
    options = ("import-crontab", "-", "--application", "cron-test", "--time-zone", "UTC")
    code, said, notes = clickclock(service, *options, given=lines)
    assert (code, said.splitlines()[-1]) == (0, "2 created, 0 unchanged.")
    assert notes.count("Note: ") == 2
    assert clickclock(service, *options, given=lines)[1] == "2 unchanged.\n"
    code, said, errors = clickclock(service, *options, given="0 0 * * * ok\n61 * * * * wrong\n")
    assert (code, said) == (1, "")
    assert "standard input:2: The minute is 61; give 0-59." in errors


def test_a_time_that_never_comes_is_told_with_its_line(service: Service) -> None:
    code, _, errors = clickclock(service, "import-crontab", "-", given="\n0 0 30 2 * never\n")
    assert code == 1
    assert "standard input:2: " in errors
