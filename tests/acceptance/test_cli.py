"""The command line as its user meets it: the real program against a real service, exit codes and streams included."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.service import Service, running
from tests.ports import free_port

UNTIL = "while [ ! -e {} ]; do sleep 0.05; done"
"""A job waits for a file, so that a test decides when it goes on."""


class Terminal:
    """Runs commands against one service."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._environment = {**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_URL": url, "TZ": "Europe/Berlin"}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command that is left running; Ctrl-C reaches it alone."""
        return subprocess.Popen(
            [sys.executable, "-m", "clickclock.cli", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of a command."""
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=60)
        return process.returncode, output, errors

    def json(self, *arguments: str) -> dict[str, Any]:
        """The answer of a command that works."""
        code, output, errors = self.run(*arguments, "--json")
        assert code == 0, errors
        answer = json.loads(output)
        assert isinstance(answer, dict)
        return answer

    def job(self, name: str, command: str, *options: str) -> None:
        """Create a shell job of the application `t`."""
        code, _, errors = self.run("job", "create", "t", name, "--shell", "--command", command, *options)
        assert code == 0, errors


@contextlib.contextmanager
def serving(data_dir: Path, *options: str, port: int = 0) -> Iterator[Service]:
    """A running service; its output is closed with it."""
    with running(data_dir, *options, port=port) as service:
        yield service
    assert service.process.stdout is not None
    service.process.stdout.close()


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with serving(tmp_path_factory.mktemp("data"), "--stop-jobs") as service:
        yield Terminal(service.url)
        service.stop()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_a_followed_trigger_prints_the_output_and_nothing_else(terminal: Terminal) -> None:
    terminal.job("hello", "echo hello {{ parameters.who }}; echo and >&2", "--param", "who=world")
    code, output, errors = terminal.run("trigger", "t", "hello", "--param", "who=you", "--follow")
    assert (code, output) == (0, "hello you\nand\n")
    assert re.search(r"Trigger \S+ is queued\.\nTrigger \S+ succeeded after \d+ ms\.", errors)


def test_a_log_is_found_by_its_job_or_by_the_beginning_of_its_trigger(terminal: Terminal) -> None:
    terminal.job("wordy", "seq 1 100")
    refused = terminal.run("log", "t", "wordy")
    assert (refused[0], "has not run" in refused[2]) == (1, True)
    assert terminal.run("trigger", "t", "wordy", "--follow")[0] == 0
    assert terminal.run("log", "t", "wordy", "--tail", "2")[1] == "99\n100\n"
    (trigger,) = terminal.json("triggers", "list", "t", "wordy")["triggers"]
    whole, beginning = trigger["triggerId"], trigger["triggerId"][:30]
    assert terminal.run("log", beginning)[1] == terminal.run("log", whole)[1]
    assert terminal.json("triggers", "show", beginning)["triggers"][0]["triggerId"] == whole
    assert terminal.run("trigger", "t", "wordy", "--follow")[0] == 0
    several = terminal.run("log", whole[:2])
    assert (several[0], "give more of it" in several[2]) == (1, True)
    none = terminal.run("triggers", "cancel", "zz")
    assert (none[0], "triggers list shows them" in none[2]) == (1, True)
    unknown = terminal.run("log", "t", "wordi")
    assert (unknown[0], "jobNotFound" in unknown[2]) == (1, True)


@pytest.mark.parametrize(
    ("name", "command", "options", "code"),
    [
        ("counts-as-success", "exit 3", ["--set", "successExitCodes=[0, 3]"], 0),
        ("fails", "exit 7", [], 7),
        ("is-ended-by-a-signal", "kill -TERM $$", [], 128 + 15),
        ("runs-too-long", "sleep 60", ["--timeout-seconds", "0.2"], 124),
        ("cannot-start", "", ["--no-shell", "--command", "/nonexistent/program"], 127),
    ],
)
def test_the_exit_code_is_that_of_the_job(
    terminal: Terminal, name: str, command: str, options: list[str], code: int
) -> None:
    terminal.job(name, command, *options)
    assert terminal.run("trigger", "t", name, "--follow")[0] == code


def test_every_attempt_is_shown(terminal: Terminal) -> None:
    backoff = 'retryBackoff={"initialSeconds": 0.1}'
    terminal.job(
        "retried", 'echo try $CLICKCLOCK_ATTEMPT; [ "$CLICKCLOCK_ATTEMPT" = 2 ]', "--max-retries", "2", "--set", backoff
    )
    code, output, errors = terminal.run("trigger", "t", "retried", "--follow")
    assert (code, output) == (0, "try 1\ntry 2\n")
    assert "Attempt 1 failed.\n" in errors


def test_of_two_hundred_megabytes_the_error_at_the_end_is_shown(terminal: Terminal) -> None:
    terminal.job("firehose", "echo it began; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo the error; exit 3")
    code, output, errors = terminal.run("trigger", "t", "firehose", "--follow")
    assert code == 3, errors
    assert output.endswith("x\nthe error\n")
    trigger_id = terminal.json("triggers", "list", "t", "--job", "firehose")["triggers"][0]["triggerId"]
    code, output, errors = terminal.run("log", trigger_id)
    assert code == 0, errors
    assert output.startswith("it began\nxxx")
    assert output.endswith("x\nthe error\n")
    assert "bytes of output are left out here]\n" in output
    assert len(output) < 17 * 2**20


def test_an_interrupt_lets_go_and_the_job_runs_on(terminal: Terminal, tmp_path: Path) -> None:
    terminal.job("long", f"echo begun; {UNTIL.format(tmp_path / 'go')}; echo done", "--timeout-seconds", "60")
    watching = terminal.start("trigger", "t", "long", "--follow")
    assert first_line(watching) == "begun\n"
    watching.send_signal(signal.SIGINT)
    _, errors = watching.communicate(timeout=60)
    assert watching.returncode == 130
    again = re.search(r"the job keeps running\. Watch it with: clickclock log (\S+) --follow", errors)
    assert again is not None
    (tmp_path / "go").touch()
    assert terminal.run("log", again[1], "--follow")[:2] == (0, "begun\ndone\n")
    assert terminal.json("triggers", "show", again[1])["triggers"][0]["state"] == "succeeded"


def test_an_interrupt_ends_the_job_where_that_was_asked_for(terminal: Terminal) -> None:
    terminal.job("endless", "trap 'echo bye; exit 0' TERM; echo begun; while :; do sleep 0.05; done")
    watching = terminal.start("trigger", "t", "endless", "--follow", "--cancel-on-interrupt")
    assert first_line(watching) == "begun\n"
    watching.send_signal(signal.SIGINT)
    output, errors = watching.communicate(timeout=60)
    assert watching.returncode == 121
    assert output.endswith("bye\n")
    assert "cancelled" in errors


def test_watching_survives_a_crash_of_the_service(tmp_path: Path) -> None:
    port = free_port()
    with serving(tmp_path / "data", port=port) as service:
        terminal = Terminal(service.url)
        terminal.job("patient", f"echo before; {UNTIL.format(tmp_path / 'go')}; echo after", "--timeout-seconds", "60")
        watching = terminal.start("trigger", "t", "patient", "--follow")
        assert first_line(watching) == "before\n"
        service.kill()
    with serving(tmp_path / "data", "--stop-jobs", port=port) as service:
        (tmp_path / "go").touch()
        output, errors = watching.communicate(timeout=60)
        service.stop()
    assert (watching.returncode, output) == (0, "after\n"), errors


def test_the_same_key_is_the_same_trigger(terminal: Terminal) -> None:
    terminal.job("once", "echo once")
    runs = [terminal.run("trigger", "t", "once", "--idempotency-key", "k", "--follow") for _ in range(2)]
    assert [output for _, output, _ in runs] == ["once\n", "once\n"]
    for of in (["t", "once"], ["--application", "t", "--job", "once", "--kind", "manual"]):
        assert len(terminal.json("triggers", "list", *of)["triggers"]) == 1
    assert terminal.json("triggers", "list", "t", "once", "--to", "2026-01-01")["triggers"] == []


def test_a_job_is_changed_field_by_field(terminal: Terminal) -> None:
    terminal.job("changed", "true", "--priority", "70", "--label", "tier=gold")
    assert terminal.run("job", "update", "t", "changed", "--description", "new")[0] == 0
    assert terminal.run("job", "disable", "t", "changed")[0] == 0
    assert terminal.run("trigger", "t", "changed")[0] == 1
    job = terminal.json("job", "show", "t", "changed")["jobDetail"]["job"]
    assert (job["priority"], job["description"], job["labels"], job["enabled"]) == (70, "new", {"tier": "gold"}, False)
    assert terminal.run("job", "enable", "t", "changed")[0] == 0
    assert terminal.run("job", "delete", "t", "changed")[0] == 0
    assert terminal.run("job", "show", "t", "changed")[0] == 1


def test_a_schedule_lives_from_file_to_deletion(terminal: Terminal, tmp_path: Path) -> None:
    terminal.job("scheduled", "true")
    (tmp_path / "schedule.toml").write_text('expression = "0 3 * * *"\ntimeZone = "Europe/Berlin"\n')
    file = str(tmp_path / "schedule.toml")
    assert terminal.run("schedule", "create", "t", "scheduled", "--id", "nightly", "--file", file)[0] == 0
    assert terminal.run("schedule", "pause", "nightly", "--reason", "holiday")[0] == 0
    shown = terminal.run("schedule", "show", "nightly")[1]
    assert re.search(r"pauseReason +holiday", shown)
    assert terminal.run("schedule", "update", "nightly", "--expression", "0 4 * * *")[0] == 0
    assert terminal.run("schedule", "resume", "nightly")[0] == 0
    assert re.search(r"nightly .* 04:00:00 CES?T +no", terminal.run("schedule", "list", "t")[1])
    assert terminal.run("schedule", "update", "nightly", "--expression", "tomorrow 08:00")[0] == 0
    moved = json.loads(terminal.run("schedule", "show", "nightly", "--json")[1])["schedules"][0]
    assert (moved["kind"], moved["timeZone"]) == ("once", "Europe/Berlin")
    assert terminal.run("schedule", "delete", "nightly")[0] == 0
    assert terminal.run("schedule", "show", "nightly")[0] == 1


def test_a_command_is_previewed_without_being_run(terminal: Terminal) -> None:
    command = "echo {{ nominalTime | subtract(days=1) | date('%Y-%m-%d') }}"
    preview = ["job", "preview", "--time-zone", "Europe/Berlin", "--nominal-time", "2026-03-29T22:30:00Z"]
    code, output, _ = terminal.run(*preview, "--command", command)
    assert code == 0
    assert "echo 2026-03-29" in output
    code, _, errors = terminal.run(*preview, "--command", command.replace("days", "day"))
    assert code != 0
    assert "did you mean days" in errors


def test_a_preview_says_what_daylight_saving_does(terminal: Terminal) -> None:
    preview = ["schedule", "preview", "30 2 * * *", "--time-zone", "America/New_York", "--from", "2026-03-07T22:00Z"]
    code, output, _ = terminal.run(*preview, "--count", "2")
    assert code == 0
    assert "2026-03-08 08:00:00 CET" in output
    assert "does not exist" in output


def test_what_comes_what_came_and_what_failed_are_found_and_done_again(terminal: Terminal) -> None:
    terminal.job("many", "exit 3")
    schedule = ("schedule", "create", "t", "many", "--id", "many-s", "--expression", "0 3 * * *")
    assert terminal.run(*schedule)[0] == 0
    for _ in range(2):
        assert terminal.run("trigger", "t", "many", "--follow")[0] == 3
    code, output, errors = terminal.run("bulk", "runAgain", "t", "many", "--state", "failed")
    assert (code, output, errors) == (0, "failed: 2\n", "It would be done to 2 items; add --yes to do it.\n")
    done = terminal.json("bulk", "runAgain", "t", "many", "--state", "failed", "--yes")["items"]
    assert [each["done"] for each in done] == [True, True]
    (state,) = terminal.json("job", "states", "t", "--limit", "1000")["jobStates"][-1:]
    assert state["application"] == "t"
    assert "many" in terminal.run("search", "MAN")[1]
    (heading, time) = terminal.run("schedule", "forecast", "t", "--schedule-id", "many-s")[1].splitlines()
    assert heading.split() == ["time", "application", "job", "schedule"]
    assert time.split()[-3:] == ["t", "many", "many-s"]
    assert terminal.run("schedule", "times", "many-s")[1] == "No time was decided yet.\n"


def test_a_group_and_a_mapping_live_from_making_to_deletion(terminal: Terminal) -> None:
    assert terminal.run("group", "create", "g", "--max-concurrent-triggers", "2")[0] == 0
    assert terminal.run("group", "update", "g", "--max-concurrent-triggers", "3")[0] == 0
    assert terminal.run("group", "pause", "g", "--reason", "maintenance")[0] == 0
    assert re.search(r"^g .* 3 +yes +maintenance$", terminal.run("group", "list")[1], re.MULTILINE)
    assert terminal.run("group", "resume", "g")[0] == 0
    assert terminal.run("group", "delete", "g")[0] == 0
    assert terminal.run("mapping", "set", "python -m etl", "etl:1")[0] == 0
    assert "etl:1" in terminal.run("mapping", "explain", "python -m etl load")[1]
    assert terminal.run("mapping", "delete", "python -m etl")[0] == 0
    assert terminal.run("mapping", "delete", "python -m etl")[0] == 1


@pytest.mark.parametrize(
    "command",
    ["job list", "schedule list", "triggers list", "group list", "mapping list", "stat", "stat t", "cluster"],
)
def test_json_is_the_answer_and_nothing_else(terminal: Terminal, command: str) -> None:
    assert terminal.json(*command.split())["status"] == "success"
    code, output, errors = terminal.run(*command.split())
    assert (code, errors) == (0, "")
    assert output.strip()


def test_pages_lead_from_one_to_the_next(terminal: Terminal) -> None:
    for name in ("page-1", "page-2"):
        terminal.job(name, "true")
    errors = terminal.run("job", "list", "t", "--limit", "1")[2]
    cursor = re.search(r"There are more: add --cursor (\S+)", errors)
    assert cursor is not None
    second = terminal.json("job", "list", "--application", "t", "--limit", "1", "--cursor", cursor[1])
    assert len(second["jobs"]) == 1


def test_a_refusal_names_every_fault(terminal: Terminal) -> None:
    options = ["--command", "a | b", "--priority", "700", "--set", "prioritty=1"]
    code, output, errors = terminal.run("job", "create", "t", "wrong", *options)
    assert (code, output) == (1, "")
    for field in ("priority:", "command:", "prioritty:"):
        assert field in errors


def test_no_service_is_told_with_what_to_do() -> None:
    code, output, errors = Terminal("http://127.0.0.1:9").run("job", "list")
    assert (code, output) == (3, "")
    assert "clickclock serve" in errors


def test_open_prints_the_address_of_a_page(terminal: Terminal) -> None:
    code, output, _ = terminal.run("open", "--print", "/runs?state=failed,lost")
    assert (code, output) == (0, f"{terminal.url}/runs?state=failed,lost\n")
    assert terminal.run("open", "--print", "//elsewhere.example/")[0] == 2


def test_tab_knows_the_jobs(terminal: Terminal) -> None:
    terminal.job("tab-me", "true")
    words = {"_CLICKCLOCK_COMPLETE": "bash_complete", "COMP_WORDS": "clickclock trigger t tab", "COMP_CWORD": "3"}
    terminal._environment.update(words)
    try:
        assert terminal.run()[1].split() == ["plain,tab-me"]
    finally:
        for word in words:
            del terminal._environment[word]


def test_tab_knows_schedules_triggers_states_and_zones(terminal: Terminal) -> None:
    terminal.job("tabbed", "true")
    assert terminal.run("schedule", "create", "t", "tabbed", "--id", "nightly-tab", "--expression", "0 2 * * *")[0] == 0
    assert terminal.run("trigger", "t", "tabbed", "--follow")[0] == 0
    (trigger,) = terminal.json("triggers", "list", "t", "tabbed")["triggers"]
    asked = {
        "schedule show nightly-t": "plain,nightly-tab",
        f"triggers cancel {trigger['triggerId'][:30]}": f"plain,{trigger['triggerId']}",
        "triggers list --state failed,lo": "plain,failed,lost",
        "schedule update x --time-zone europe/ber": "plain,Europe/Berlin",
    }
    terminal._environment["_CLICKCLOCK_COMPLETE"] = "bash_complete"
    try:
        for line, told in asked.items():
            words = f"clickclock {line}"
            terminal._environment |= {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
            assert terminal.run()[1].split() == [told], line
    finally:
        for word in ("_CLICKCLOCK_COMPLETE", "COMP_WORDS", "COMP_CWORD"):
            del terminal._environment[word]


def test_a_wrong_configuration_is_refused_with_every_fault_by_both_commands(tmp_path: Path) -> None:
    (tmp_path / "clickclock.toml").write_text('prot = 1\nlog_level = "loud"\n')
    options = ["--config", str(tmp_path / "clickclock.toml"), "--process-slots", "0", "--data-dir", str(tmp_path)]
    for command in ("check-config", "serve"):
        code, output, errors = Terminal("http://127.0.0.1:9").run(command, *options)
        assert (code, output) == (1, "")
        for name in ("prot: ", "log_level: ", "process_slots: "):
            assert name in errors


def test_a_good_configuration_is_shown_with_its_sources(tmp_path: Path) -> None:
    (tmp_path / "clickclock.toml").write_text("process_slots = 7\n")
    config = str(tmp_path / "clickclock.toml")
    code, output, _ = Terminal("http://127.0.0.1:9").run("check-config", "--config", config, "--port", "9000")
    assert code == 0
    assert re.search(r"^port +the command line +9000$", output, re.MULTILINE)
    assert re.search(rf"^process_slots +{re.escape(config)} +7$", output, re.MULTILINE)
    assert re.search(r"^host +the default +127\.0\.0\.1$", output, re.MULTILINE)


def test_a_full_disk_and_a_refused_folder_end_a_command_with_a_sentence(terminal: Terminal, tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "clickclock.cli", "schema"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device.\n")
    terminal.job("exported", "true")
    taken = tmp_path / "exported"
    taken.touch()
    assert terminal.run("export", "--output-dir", f"{taken}/jobs") == (
        1,
        "",
        f"Error: {taken}/jobs/t: Not a directory.\n",
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_from_the_start_is_nobodys_and_costs_no_command_its_end(closed: str) -> None:
    command = f'"{sys.executable}" -m clickclock.cli schema {closed}'
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_ends_any_command_with_130(tmp_path: Path) -> None:
    awaited = tmp_path / "fields.json"
    os.mkfifo(awaited)
    reading = Terminal("http://127.0.0.1:9").start("job", "create", "t", "late", "--file", str(awaited))
    with awaited.open("w"):  # opens when the command reads
        reading.send_signal(signal.SIGINT)
        output, errors = reading.communicate(timeout=60)
    assert (reading.returncode, output, errors) == (130, "", "Interrupted.\n")


@pytest.mark.parametrize(
    ("end", "ending"),
    [("raise SystemExit(3)", (3, "")), ("raise RuntimeError('a mistake')", (1, "RuntimeError: a mistake"))],
)
def test_a_program_leaves_nothing_undone_at_its_end(end: str, ending: tuple[int, str]) -> None:
    program = f"""
import atexit, sys, threading
from clickclock.cli.__main__ import main
from clickclock.cli.schema import schema

def outlive():
    threading.main_thread().join()
    print("a thread")

def last():
    atexit.register(print, "at the end")
    threading.Thread(target=outlive).start()
    print("the command")
    {end}

schema.callback = last
sys.argv = ["clickclock", "schema"]
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["the command", "a thread", "at the end"]
    assert (done.returncode, done.stderr.rpartition("\n")[0].rpartition("\n")[2]) == ending


def _forged(line: str, audit_id: str) -> str:
    return line.replace('"after": 70', '"after": 71') if audit_id in line else line


def test_the_audit_trail_says_who_did_what_and_proves_that_nobody_changed_it(
    terminal: Terminal, tmp_path: Path
) -> None:
    terminal.job("audited", "true")
    assert terminal.run("job", "update", "t", "audited", "--priority", "70")[0] == 0
    changed, created = terminal.json("audit", "list", "t", "audited")["records"]
    assert (created["operation"], changed["operation"]) == ("POST job", "PUT job")
    assert changed["changes"]["priority"]["after"] == 70
    assert changed["address"] == "127.0.0.1"
    code, shown, _ = terminal.run("audit", "show", changed["auditId"])
    assert (code, "PUT job" in shown, re.search(r"priority +70", shown) is not None) == (0, True, True)

    whole, forged, cut = (tmp_path / name for name in ("whole.ndjson", "forged.ndjson", "cut.ndjson"))
    assert terminal.run("audit", "export", "--output", str(whole))[0] == 0
    for arguments in ([], [str(whole)], ["--against", str(whole)]):
        code, verdict, errors = terminal.run("audit", "verify", *arguments)
        assert (code, errors) == (0, "")
        assert re.search(r"/0: [\d,]+ records, its last at position \d+, whole\.$", verdict, re.MULTILINE)
    text = whole.read_text()
    forged.write_text("\n".join(_forged(line, changed["auditId"]) for line in text.splitlines()))
    code, verdict, errors = terminal.run("audit", "verify", str(forged))
    assert (code, "The trail is broken" in errors) == (1, True)
    assert f"record {changed['auditId']} was changed after it was written" in verdict
    cut.write_text(text.partition("\n")[2])
    code, verdict, _ = terminal.run("audit", "verify", str(cut), "--against", str(whole))
    assert (code, "the record that was there is gone, or another" in verdict) == (1, True)
    cut.write_text("[]\n")
    code, _, errors = terminal.run("audit", "verify", str(cut))
    assert (code, "line 1, is no line of an export" in errors) == (1, True)
