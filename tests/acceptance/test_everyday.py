"""What people do all day on the command line: find, sort, watch, edit and delete, by names that are nearly right."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.service import Service
from tests.acceptance.test_cli import Terminal, serving
from tests.acceptance.test_terminal import on_terminal


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("data"), "--stop-jobs") as service:
        yield service
        service.stop()


@pytest.fixture(scope="module")
def terminal(service: Service) -> Terminal:
    terminal = Terminal(service.url)
    for name in ("nightly-export", "report"):
        terminal.job(name, f"echo {name}", "--priority", "70" if name == "report" else "9")
    return terminal


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("job show t nightly-exprot", "There is no job t/nightly-exprot; did you mean t/nightly-export?"),
        ("job show tt nightly-export", "There is no application tt; did you mean t?"),
        ("log t reprot", "There is no job t/reprot; did you mean t/report?"),
        ("trigger t Report", "There is no job t/Report; did you mean t/report?"),
        ("job update t export --priority 3", "There is no job t/export; did you mean t/nightly-export?"),
        ("group show g", "There is no group g; clickclock group list shows what there is."),
        ("schedule pause zzz", "None of the schedules has an id that begins with 'zzz'; clickclock schedule list"),
        ("backfill show zzz", "None of the backfills has an id that begins with 'zzz'; clickclock backfill list"),
        ("alarms ack zzz", "None of the alarms has an id that begins with 'zzz'; clickclock alarms list --all"),
        ("notifications retry zzz", "None of the notifications has an id that begins with 'zzz'"),
        ("audit show zzz", "None of the records has an id that begins with 'zzz'"),
        (
            "job create t x --command a --retries -1 --set retryBackoff.x=1",
            "--max-retries: Give a number of at least 0",
        ),
    ],
)
def test_a_name_that_is_not_there_is_answered_with_the_nearest(terminal: Terminal, line: str, told: str) -> None:
    code, output, errors = terminal.run(*line.split())
    assert (code, output) == (1, "")
    assert told in errors


def test_a_list_of_a_name_that_is_not_there_says_so(terminal: Terminal) -> None:
    assert terminal.run("triggers", "list", "tt") == (
        0,
        "No triggers.\n",
        "There is no application tt; did you mean t?\n",
    )


def test_a_list_is_sorted_cut_and_shown_wide(terminal: Terminal) -> None:
    names = [job["jobName"] for job in terminal.json("job", "list", "t", "--sort", "priority")["jobs"]]
    assert names == ["nightly-export", "report"]
    code, output, _ = terminal.run("job", "list", "t", "--sort", "-priority", "--limit", "1", "-o", "name")
    assert (code, output) == (0, "t/report\n")
    code, output, _ = terminal.run("job", "list", "t", "-o", "wide")
    assert "gracePeriodSeconds" in output.splitlines()[0]
    assert "priority" in terminal.run("job", "list", "t", "--sort", "size")[2]


def test_every_id_may_be_given_by_its_beginning(terminal: Terminal) -> None:
    made = terminal.json("schedule", "create", "t", "report", "--kind", "once", "--expression", "2099-01-01T00:00:00Z")
    whole = made["schedule"]["scheduleId"]
    assert terminal.json("schedule", "show", whole[:18])["schedules"][0]["scheduleId"] == whole
    code, output, _ = terminal.run("schedule", "pause", whole[:18])
    assert (code, output) == (0, f"Schedule {whole} is paused.\n")
    record = terminal.json("audit", "list", "--since", "1h", "--limit", "1")["records"][0]["auditId"]
    assert terminal.json("audit", "show", record[:-1])["records"][0]["auditId"] == record
    assert terminal.run("schedule", "delete", whole[:18])[0] == 0


def test_the_output_of_all_attempts_since_a_time_is_shown_the_oldest_first(terminal: Terminal) -> None:
    for _ in range(2):
        assert terminal.run("trigger", "t", "report", "--follow")[0] == 0
    code, output, errors = terminal.run("log", "t", "report", "--since", "1h")
    assert (code, output) == (0, "report\nreport\n")
    assert errors.count("attempt 1") == 2
    assert "No attempt has started since" in terminal.run("log", "t", "report", "--since", "+1h")[2]


def test_what_is_watched_is_shown_as_it_changes_until_ctrl_c(terminal: Terminal) -> None:
    watching = terminal.start("job", "list", "t", "--watch", "-o", "name")
    assert watching.stdout is not None
    assert [watching.stdout.readline() for _ in range(2)] == ["t/nightly-export\n", "t/report\n"]
    terminal.job("third", "true")
    assert [watching.stdout.readline() for _ in range(4)][-1] == "t/third\n"
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=60)
    assert watching.returncode == 130
    assert terminal.run("job", "delete", "t", "third")[0] == 0


@pytest.mark.parametrize(("command", "code", "said"), [("true", 0, "3 of 3 ended, 0 failed"), ("false", 1, "3 failed")])
def test_a_backfill_is_followed_to_its_end(terminal: Terminal, command: str, code: int, said: str) -> None:
    name = f"past-{command}"
    terminal.job(name, command)
    assert terminal.run("schedule", "create", "t", name, "--expression", "0 * * * *", "--id", name)[0] == 0
    started, output, errors = terminal.run("backfill", "start", name, "--from", "-4h", "--to", "-1h")
    assert (started, "is started: 3 times." in output) == (0, True), errors
    backfill_id = output.split()[1]
    assert f"clickclock backfill follow {backfill_id}" in errors
    ended, output, errors = terminal.run("backfill", "follow", backfill_id[:30])
    assert (ended, said in output) == (code, True), (output, errors)


def test_who_follows_a_backfill_may_let_go(terminal: Terminal) -> None:
    terminal.job("long", "sleep 600")
    assert terminal.run("schedule", "create", "t", "long", "--expression", "0 * * * *", "--id", "long")[0] == 0
    backfill_id = terminal.run("backfill", "start", "long", "--from", "-4h", "--to", "-1h")[1].split()[1]
    following = terminal.start("backfill", "follow", backfill_id)
    assert following.stderr is not None
    assert following.stderr.readline() == f"Backfill {backfill_id} is running.\n"
    following.send_signal(signal.SIGINT)
    assert "the backfill goes on" in following.communicate(timeout=60)[1]
    assert following.returncode == 130
    assert terminal.run("backfill", "cancel", backfill_id)[0] == 0
    ended, output, _ = terminal.run("backfill", "follow", backfill_id)
    assert (ended, "is cancelled" in output) == (1, True)


EDITOR = """#!/bin/sh
echo x >> "$0.times"
case $(wc -l < "$0.times") in
  1) sed -i 's/^priority: .*/priority: high/' "$1" ;;
  2) grep -B1 '^priority' "$1" > "$0.seen"
     sed -i 's/^priority: .*/priority: 33/' "$1"
     {python} -m clickclock.cli job update t nightly-export --description theirs --priority 44 > "$0.other" ;;
  3) cat "$1" > "$0.merged" ;;
esac
"""


def test_an_edit_shows_its_faults_in_the_file_and_overwrites_nobodys_change(terminal: Terminal, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text(EDITOR.format(python=sys.executable))
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_URL": terminal.url, "EDITOR": str(editor)}
    command = [sys.executable, "-m", "clickclock.cli", "job", "edit", "t", "nightly-export"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("Job t/nightly-export is changed (version")
    assert (tmp_path / "editor.seen").read_text() == "#! Give a whole number.\npriority: high\n"
    merged = (tmp_path / "editor.merged").read_text()
    assert "#! They wrote 44.\npriority: 33\n" in merged
    assert "description: theirs\n" in merged
    job = terminal.json("job", "show", "t", "nightly-export")["jobDetail"]["job"]
    assert (job["priority"], job["description"]) == (33, "theirs")


def test_an_edit_that_changes_nothing_writes_nothing(terminal: Terminal) -> None:
    before = terminal.json("job", "show", "t", "report")["jobDetail"]["job"]["version"]
    for editor, code in (("true", 0), ("false", 1), ("no-such-editor", 1)):
        environment = {**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_URL": terminal.url, "EDITOR": editor}
        command = [sys.executable, "-m", "clickclock.cli", "job", "edit", "t", "report"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == code, done.stderr
    assert terminal.json("job", "show", "t", "report")["jobDetail"]["job"]["version"] == before


def test_every_deletion_asks_on_a_terminal_and_only_there(service: Service, terminal: Terminal) -> None:
    for line in ("group create g", "calendar create c --business-day monday", "mapping set run-it an/image"):
        assert terminal.run(*line.split())[0] == 0
    for line, question in (
        ("group delete g", b"Delete group g? [y/N]"),
        ("calendar delete c", b"Delete calendar c? [y/N]"),
        ("mapping delete run-it", b"Remove the mapping of run-it? [y/N]"),
    ):
        assert question in on_terminal(service, *line.split(), typed=b"n\n", exits=1)
        assert terminal.run(*line.split())[0] == 0


def test_tab_knows_groups_calendars_and_what_a_list_is_sorted_by(terminal: Terminal) -> None:
    terminal.run("group", "create", "night-shift")

    def completed(line: str) -> list[str]:
        words = line.split(" ")
        environment = {
            **os.environ,
            "PYTHONPATH": "src",
            "CLICKCLOCK_URL": terminal.url,
            "_CLICKCLOCK_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        }
        command = [sys.executable, "-m", "clickclock.cli"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
        return [each.partition(",")[2] for each in done.stdout.splitlines()]

    assert completed("clickclock group show ni") == ["night-shift"]
    assert completed("clickclock job list --group n") == ["night-shift"]
    assert completed("clickclock job list --sort pri") == ["priority"]
    assert completed("clickclock log t re") == ["report"]


def test_a_report_is_the_same_from_the_service_and_from_its_files(service: Service, terminal: Terminal) -> None:
    # The service has its lake elsewhere than in the folder here, where commands would look by themselves.
    roads = [terminal.run("attribution", "versions", "--json"), terminal.run("attribution", "orders", "--json")]
    files = ("--data-dir", str(service.data_dir))
    assert roads[0][:2] == terminal.run("attribution", "versions", "--json", *files)[:2]
    assert json.loads(roads[0][1]) == {"versions": []}
    question = ("--by", "nothing", "--by", "never", "--model", "none")
    asked = terminal.run("attribution", "report", *question)
    assert asked == terminal.run("attribution", "report", *question, *files)
    assert asked[0] == 2
    assert [f"There is no dimension '{each}'" in asked[2] for each in ("nothing", "never")] == [True, True]
