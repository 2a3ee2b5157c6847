"""What the command line says and reads by itself, without a service."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from clickclock.cli import COMMANDS, OTHERS, main, stat
from clickclock.cli.calling import refusal
from clickclock.cli.completing import STATES
from clickclock.cli.exit_codes import INTERRUPTED
from clickclock.cli.fields import Document, Instant, Json, Pair, body
from clickclock.cli.following import exit_code
from clickclock.cli.program import Program
from clickclock.cli.rendering import at, duration, plain, size, when
from clickclock.cli.tables import TRIGGERS, table
from clickclock.cli.words import camel_case
from clickclock.client import DEFAULT_URL
from clickclock.foundation.errors import Fault, Invalid
from clickclock.scheduler.jobs.trigger import State

UNUSED = "http://127.0.0.1:9"
READING = [
    "compact --all",
    "journal inspect",
    "journal verify",
    "journal tail --no-follow",
    "clicks export",
    "replay rejections",
    "attribution run",
    "attribution versions",
    "attribution report",
    "attribution order o-1 --client-id shop-1",
    "attribution diff 1 2",
    "attribution export",
    "attribution erase --client-id shop-1 --order-id o-1",
    "attribution retain",
]
"""Commands that need what is in a data folder."""


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A reader in Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("trigger", "code"),
    [
        ({"state": "succeeded", "exitCode": 0, "signal": None}, 0),
        ({"state": "succeeded", "exitCode": 3, "signal": None}, 0),
        ({"state": "failed", "exitCode": 3, "signal": None}, 3),
        ({"state": "failed", "exitCode": None, "signal": 15}, 143),
        ({"state": "failed", "exitCode": None, "signal": None}, 127),
        ({"state": "cancelled", "exitCode": None, "signal": 15}, 121),
        ({"state": "lost", "exitCode": None, "signal": None}, 122),
        ({"state": "skipped", "exitCode": None, "signal": None}, 123),
        ({"state": "timedOut", "exitCode": None, "signal": 9}, 124),
    ],
)
def test_the_exit_code_says_how_a_trigger_ended(trigger: dict[str, Any], code: int) -> None:
    assert exit_code(trigger) == code


@pytest.mark.usefixtures("berlin")
def test_times_are_read_and_shown_in_local_time() -> None:
    read = Instant().convert
    assert read("2026-11-20T10:00", None, None) == "2026-11-20T09:00:00.000Z"
    assert read("2026-07-01", None, None) == "2026-06-30T22:00:00.000Z"
    assert read("2026-11-20T10:00:00Z", None, None) == "2026-11-20T10:00:00.000Z"
    assert when("2026-07-01T10:00:00.000Z") == "2026-07-01 12:00:00 CEST"
    assert when(None) == ""


@pytest.mark.parametrize("listed", ["job", "schedule", "triggers", "backfill", "alarms", "notifications"])
def test_a_list_takes_an_application_as_an_argument_or_as_an_option_and_not_as_both(listed: str) -> None:
    done = CliRunner().invoke(main, ["--url", UNUSED, listed, "list", "shop", "--application", "shop"])
    assert done.exit_code == 2
    assert "not both" in done.output
    for of in (["shop", "export"], ["--application", "shop", "--job", "export"]):
        assert CliRunner().invoke(main, ["--url", UNUSED, listed, "list", *of]).exit_code == 3


def test_pairs_and_fields_are_read_as_they_are_meant() -> None:
    assert Pair().convert("day=2026=11", None, None) == {"day": "2026=11"}
    assert Pair(is_value_needed=False).convert("day", None, None) == {"day": None}
    assert Json().convert("timeoutSeconds=null", None, None) == {"timeoutSeconds": None}
    assert Json().convert('catchUp={"policy":"all"}', None, None) == {"catchUp": {"policy": "all"}}
    assert Json().convert("expression=0 2 * * *", None, None) == {"expression": "0 2 * * *"}
    for wrong in ("day", "=x"):
        with pytest.raises(click.BadParameter, match="NAME=VALUE"):
            Pair().convert(wrong, None, None)


def test_names_become_those_of_the_api() -> None:
    assert camel_case("max_concurrent_triggers") == "maxConcurrentTriggers"
    assert camel_case("from_") == "from"


def test_what_a_job_wrote_cannot_move_the_cursor() -> None:
    assert plain("a\x1b[2Jb\nc") == "a [2Jb c"
    # JSON does not escape the control characters beyond ASCII, of which one begins what ESC [ begins.
    assert plain({"a": "\x9b2J\u202e"}) == '{"a": " 2J "}'
    assert plain(["\x9b2J"]) == '[" 2J"]'


def test_measures_have_the_unit_that_fits() -> None:
    assert [duration(ms) for ms in (None, 12.4, 1250, 59_990, 3_599_000, 7_260_000)] == [
        "",
        "12 ms",
        "1.25 s",
        "59.99 s",
        "60 min",
        "2 h 1 min",
    ]
    assert [size(count) for count in (None, 512, 134_217_728, 5e9)] == ["", "512 B", "134 MB", "5 GB"]


def test_a_path_leads_into_an_answer() -> None:
    answer = {"triggers": [{"attempts": [1, 2]}]}
    assert at(answer, "triggers.0.attempts") == [1, 2]
    assert at(answer, "triggers.1.attempts") is None
    assert at(answer, "nothing.at.all") is None


def test_fields_come_from_toml_and_json_alike(tmp_path: Path) -> None:
    toml = tmp_path / "schedule.toml"
    toml.write_text("startAt = 2026-11-20T10:00:00Z\nexcludeDates = [2026-12-25]\njitterSeconds = 1.5\n")
    expected = {"startAt": "2026-11-20 10:00:00+00:00", "excludeDates": ["2026-12-25"], "jitterSeconds": 1.5}
    assert Document().convert(str(toml), None, None) == expected
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(click.BadParameter, match="one object"):
        Document().convert(str(tmp_path / "list.json"), None, None)


def test_the_address_that_the_help_promises_is_that_of_the_client() -> None:
    (url,) = (param for param in main.params if param.name == "url")
    assert url.default == DEFAULT_URL


def test_statistics_say_how_often_attempts_made_room(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"application": "shop", "jobName": "export", "totalTriggers": 4, "preemptionCount": 3}
    stat.show({"jobStat": {"jobs": [row]}})
    stat.show({"jobStat": {**row, "jobs": None, "buckets": [row]}})
    said = capsys.readouterr().out
    assert said.count("preempted") == 3
    assert re.search(r"^preempted +3$", said, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["job", "update", "a", "j"],
        ["job", "create", "a", "j", "--label", "no-value"],
        ["trigger", "a", "j", "--at", "someday"],
        ["--url", "service.test", "cluster"],
        ["completion", "tcsh"],
        ["attribution", "erase", "--client-id", "shop-1"],
        ["apply", "--file", ""],
        ["export", "--output-dir", ""],
    ],
)
def test_a_wrong_call_is_told_before_anyone_is_asked(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments, env={"CLICKCLOCK_URL": UNUSED})
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


@pytest.mark.parametrize("term", ["dumb", "unknown", "xterm"])
def test_no_cell_is_cut_whatever_the_terminal(
    term: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("FORCE_COLOR", "1")
    row = {"jobName": "j" * 200, "application": "a" * 200}
    table("jobs", ("job", "jobName"), ("application", "application"))({"jobs": [row]})
    told = capsys.readouterr().out
    assert row["jobName"] in told
    assert row["application"] in told


@pytest.mark.parametrize(
    ("path", "told"),
    [("jobs", "No jobs."), ("jobStat.slowest", "No slowest."), ("applicationNames", "No application names.")],
)
def test_a_list_without_rows_says_of_what(path: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    table(path, ("id", "id"))({})
    assert capsys.readouterr().out == f"{told}\n"


def test_a_refused_field_says_what_is_wrong_with_its_json() -> None:
    @click.command()
    @body()
    def create(fields: dict[str, Any]) -> None:
        raise refusal(Invalid(faults=[Fault(name, "Give an object.") for name in fields]))

    told = CliRunner().invoke(
        create,
        [
            "--set",
            "retryBackoff={bad",
            "--set",
            "labels=5",
            "--set",
            "command=[ -f x ]",
            "--set",
            "environment={{ x }}",
        ],
    )
    assert "retryBackoff: Give an object. It was taken as text. This is not JSON: " in told.stderr
    assert "labels: Give an object.\n" in told.stderr
    assert "command: Give an object.\n" in told.stderr
    assert "environment: Give an object.\n" in told.stderr


def test_completion_is_printed_for_each_shell() -> None:
    for shell in ("bash", "zsh", "fish"):
        result = CliRunner().invoke(main, ["completion", shell])
        assert result.exit_code == 0
        assert "_CLICKCLOCK_COMPLETE" in result.stdout


@pytest.mark.parametrize("content", ["NaN", "1e400", "-1.5e999", "9" * 5000, "[" * 100_000, '{"a": 1, "a": 2}'])
def test_what_is_no_json_is_text_where_it_may_be(content: str) -> None:
    assert Json().convert(f"priority={content}", None, None) == {"priority": content}


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(click.BadParameter, match="surrogate"):
        Json().convert(r'command="\ud800"', None, None)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", b'{"priority": Infinity}', "has Infinity"),
        ("a.json", b'{"timeoutSeconds": 1e400}', "too long"),
        ("a.json", b'{"command": "a", "command": "b"}', "gives 'command' twice"),
        ("a.json", b'{"labels": ' + b"[" * 100_000, "nested too deeply"),
        ("a.json", b'{"command": "\xe9"}', "not UTF-8"),
        ("a.json", b'{"command": "\\ud800"}', "surrogate"),
        ("a.json", b"", "not JSON"),
        ("a.toml", b"priority = nan", "has NaN"),
        ("a.toml", b"timeoutSeconds = 1e400", "has Infinity"),
        ("a.toml", b"labels = " + b"[" * 100_000, "nested too deeply"),
        ("a.toml", b'command = "\xe9"', "is not valid"),
    ],
)
def test_a_file_that_is_not_valid_is_told_with_what_is_wrong(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(click.BadParameter, match=says):
        Document().convert(str(file), None, None)


@pytest.mark.parametrize(("name", "content"), [("a.json", '{"priority": 7}'), ("a.toml", "priority = 7\r\n")])
def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path, name: str, content: str) -> None:
    file = tmp_path / name
    file.write_text(content, encoding="utf-8-sig")
    assert Document().convert(str(file), None, None) == {"priority": 7}


def test_a_list_of_triggers_says_why_a_time_was_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    table("triggers", *TRIGGERS)({"triggers": [{"triggerId": "t", "state": "skipped", "skipReason": "paused"}]})
    assert "paused" in capsys.readouterr().out.splitlines()[1]


@pytest.mark.parametrize("line", READING)
def test_a_data_folder_that_is_not_there_is_not_taken_for_an_empty_one(line: str, tmp_path: Path) -> None:
    mistyped = tmp_path / "dta"
    ran = CliRunner().invoke(main, [*line.split(), "--data-dir", str(mistyped)])
    assert ran.exit_code == 1
    assert f"data_dir: {mistyped}: No such file or directory; give the data folder" in ran.stderr
    assert not mistyped.exists()


@pytest.mark.parametrize("line", [line for line in READING if not line.startswith("journal")])
def test_a_file_in_the_place_of_the_lake_is_not_taken_for_an_empty_lake(line: str, tmp_path: Path) -> None:
    (tmp_path / "lake").touch()
    for setting, options in (("data_dir", []), ("lake_url", ["--lake-url", str(tmp_path / "lake")])):
        ran = CliRunner().invoke(main, [*line.split(), "--data-dir", str(tmp_path), *options])
        assert ran.exit_code == 1
        assert f"{setting}: {tmp_path}/lake is no folder; move it away" in ran.stderr


def test_a_data_folder_that_is_not_there_is_told_before_the_libraries_of_tables_are_loaded(tmp_path: Path) -> None:
    program = (
        "import sys; from click.testing import CliRunner; from clickclock.cli import main\n"
        f"for line in {READING}:\n"
        "    assert CliRunner().invoke(main, [*line.split(), '--data-dir', sys.argv[1]]).exit_code == 1\n"
        "print(*sys.modules)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "dta")]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert {"pyarrow", "deltalake", "duckdb", "numpy", "httpx"} & set(loaded) == set()


def test_a_demo_that_nobody_takes_ends_as_other_commands_do() -> None:
    result = CliRunner().invoke(main, ["demo", "--click-url", UNUSED])
    assert result.exit_code == 3
    assert "is `clickclock serve` running?" in result.stderr


def test_ctrl_c_ends_a_command_with_130_while_its_words_are_read() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    done = CliRunner().invoke(
        Program(commands_at={}, params=[click.Option(["--one"], callback=interrupt)]), ["--one", "1"]
    )
    assert (done.exit_code, done.output) == (INTERRUPTED, "Interrupted.\n")


@pytest.mark.parametrize("url", ["http://", "http://[::1", "https:///jobs", "127.0.0.1:8080"])
def test_an_address_without_a_host_is_a_wrong_command_line(url: str) -> None:
    for words in (["--url", url, "job", "list"], ["demo", "--click-url", url]):
        done = CliRunner().invoke(main, words)
        assert (done.exit_code, "give an address such as http://127.0.0.1:80" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "line",
    [
        "--url http://me:hush@127.0.0.1:9 job list",
        "--url http://me:hu/sh@127.0.0.1:9 job list",
        "--url http://hush@127.0.0.1:9 doctor --service-only",
        "--url me:hush@127.0.0.1:9 job list",
        "demo --click-url http://me:hush@127.0.0.1:9",
        "job http://me:hush@one",
        "http://me:hush@one",
        "--header Authorization-hush job list",
        "--header x:hush\t\u00fc job list",
        "--header @/nowhere job list",
        "check-config --host http://me:hush@one",
    ],
)
def test_no_refusal_shows_a_password(line: str) -> None:
    done = CliRunner().invoke(main, line.split(" "), env={"CLICKCLOCK_TOKEN": "hu sh"} if "@/" in line else {})
    assert done.exit_code in {1, 2, 3}
    assert "hush" not in done.output
    assert "hu/sh" not in done.output
    assert "hu sh" not in done.output


def test_headers_and_the_token_reach_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "headers"
    file.write_text("X-Team: shop\n\nX-Two:2\n", encoding="utf-8")
    monkeypatch.setenv("CLICKCLOCK_TOKEN", "t-1\n")
    with nobody_in() as (url, seen):
        words = ["--url", f"{url}/base", "--header", "X-One: a: b", "--header", f"@{file}"]
        refused = CliRunner().invoke(main, [*words, "job", "list"])
        assert (refused.exit_code, "CLICKCLOCK_TOKEN" in refused.stderr) == (1, True)
        CliRunner().invoke(main, [*words, "doctor", "--service-only"])
        CliRunner().invoke(main, ["--url", url.replace("//", "//me:hu%2Fsh@"), "job", "list"])
    ours = {"authorization": "Bearer t-1", "x-one": "a: b", "x-team": "shop", "x-two": "2"}
    assert [ours.items() <= each.items() for each in seen] == [True, True, False]
    assert seen[2]["authorization"] == "Basic bWU6aHUvc2g="


def test_the_demonstration_sends_the_headers_to_the_collector_too() -> None:
    with nobody_in() as (url, seen):
        done = CliRunner().invoke(main, ["--header", "X-One: a", "demo", "--click-url", url])
    assert (done.exit_code, [each.get("x-one") for each in seen]) == (1, ["a"])


@contextmanager
def nobody_in() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A proxy that lets nobody in, and the headers that it saw, by lower-case names."""
    seen: list[dict[str, str]] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (so it is named there)
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("words", [["job", "show", "\udcff", "x"], ["job", "create", "a", "b", "--command", "\udcff"]])
def test_a_word_that_is_not_utf_8_is_a_wrong_command_line(words: list[str]) -> None:
    done = CliRunner().invoke(main, ["--url", UNUSED, *words])
    assert (done.exit_code, "is not UTF-8" in done.stderr) == (2, True)


@click.command()
def weather() -> None:
    click.echo("\u2603")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_output_that_the_terminal_has_no_letters_for_ends_a_command_with_a_sentence(encoding: str) -> None:
    tools = Program("tools", commands_at={"weather": f"{__name__}:weather"})
    done = CliRunner(charset=encoding).invoke(tools, ["weather"])
    assert (done.exit_code, done.stderr.splitlines()) == (
        1,
        [f"Error: The output cannot be written as {encoding}; use a locale of UTF-8, or set PYTHONIOENCODING=utf-8."],
    )


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("run", "trigger APP JOB"),
        ("ps", "triggers list --state running"),
        ("status", "job states"),
        ("jbo", "job"),
        ("scedule", "schedule"),
    ],
)
def test_a_word_that_is_no_command_is_answered_with_what_is_meant(word: str, meant: str) -> None:
    done = CliRunner().invoke(main, [word], prog_name="clickclock")
    assert (done.exit_code, f"did you mean clickclock {meant}?" in done.stderr) == (2, True)
    assert CliRunner().invoke(main, [*meant.split()[:1], "--help"]).exit_code == 0


@pytest.mark.parametrize(
    ("word", "command"), [("jobs", "job"), ("schedules", "schedule"), ("logs", "log"), ("alarm", "alarms")]
)
def test_a_command_is_understood_in_the_singular_and_in_the_plural(word: str, command: str) -> None:
    told, said = (CliRunner().invoke(main, [each, "--help"], prog_name="clickclock") for each in (word, command))
    assert (told.exit_code, told.output.splitlines()[1:]) == (0, said.output.splitlines()[1:])


def test_what_other_systems_call_it_is_a_command_here() -> None:
    for named in OTHERS.values():
        words = [word for word in named.split() if word.islower() and not word.startswith("-")]
        done = CliRunner().invoke(main, [*words, "--help"], prog_name="clickclock")
        assert (done.exit_code, "Usage" in done.output) == (0, True), named


def test_the_states_that_are_completed_are_those_of_triggers() -> None:
    assert tuple(State) == STATES


def test_a_context_gives_the_address_and_the_token_and_completes_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLICKCLOCK_CONTEXTS", str(tmp_path / "contexts.toml"))
    monkeypatch.delenv("CLICKCLOCK_TOKEN", raising=False)
    with nobody_in() as (url, seen):
        for words in (
            ["context", "add", "other", "--url", "http://127.0.0.1:1"],
            ["context", "add", "prod", "--url", url, "--token-file", "-"],
            ["job", "list"],
            ["--url", f"{url}/base", "job", "list"],
            ["context", "use", "other"],
            ["--context", "prod", "job", "list"],
        ):
            CliRunner().invoke(main, words, input="t-9\n")
        told = CliRunner().invoke(main, ["context", "list"]).output
        both = CliRunner().invoke(main, ["--url", url, "--context", "prod", "job", "list"])
    assert [each.get("authorization") for each in seen] == ["Bearer t-9", None, "Bearer t-9"]
    assert ("kept here" in told, "t-9" in told) == (True, False)
    assert (both.exit_code, "not both" in both.output) == (1, True)
    completing = {"_CLICKCLOCK_COMPLETE": "bash_complete", "COMP_WORDS": "clickclock --context p", "COMP_CWORD": "2"}
    assert CliRunner().invoke(main, prog_name="clickclock", env=completing).output == "plain,prod\n"


def test_a_broken_file_of_contexts_stops_what_goes_to_a_service_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "contexts.toml"
    file.write_text("nonsense", encoding="utf-8")
    file.chmod(0o600)
    monkeypatch.setenv("CLICKCLOCK_CONTEXTS", str(file))
    refused = CliRunner().invoke(main, ["job", "list"])
    assert (refused.exit_code, "is no file of contexts" in refused.output) == (1, True)
    assert CliRunner().invoke(main, ["completion", "bash"]).exit_code == 0
