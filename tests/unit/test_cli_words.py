"""HTTP's words as those of the command line, and files that are edited."""

import re
from typing import Any

import click
import pytest
from click.testing import CliRunner

from clickclock.cli import main
from clickclock.cli.editing import marked
from clickclock.cli.job import job
from clickclock.cli.program import OF_TRIGGERS
from clickclock.cli.triggers import triggers
from clickclock.cli.watching import fitted
from clickclock.cli.words import CALLS, in_arguments, in_options
from clickclock.foundation import errors as shared
from clickclock.foundation.errors import ClickclockError, Fault
from clickclock.scheduler import errors

OUR_CALLS = re.compile(r"\b(?:GET|POST|PUT|DELETE) [a-z][a-zA-Z]*")


def _messages() -> list[str]:
    kinds = {
        kind
        for module in (errors, shared)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, ClickclockError)
    }
    return [str(kind.__doc__) for kind in kinds]


def test_every_call_that_an_error_names_is_a_command_here() -> None:
    assert {call for message in _messages() for call in OUR_CALLS.findall(message)} <= CALLS.keys()
    for command in CALLS.values():
        done = CliRunner().invoke(main, [*command.split(), "--help"])
        assert done.exit_code == 0, command


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("maxRetries", "--max-retries"),
        ("timeoutSeconds", "--timeout-seconds"),
        ("environment.PATH", "--env PATH"),
        ("parameters.day", "--param day"),
        ("dependsOn[0].when", "--depends-on[0].when"),
        ("jobName", "JOB"),
        ("application", "APP"),
        ("retryBackoff.jitter", "--set retryBackoff.jitter"),
        ("Last-Event-ID", "--after"),
        ("", ""),
    ],
)
def test_a_faulty_field_is_called_as_it_was_given(path: str, told: str) -> None:
    create = job.commands["create"]
    assert in_options(path, create.params) == told


def test_a_sentence_of_the_service_names_commands() -> None:
    said = "There is no such group; check groupName, or create it with POST group."
    assert in_arguments(said) == "There is no such group; check GROUP, or create it with clickclock group create."


def test_a_trigger_and_the_group_of_triggers_are_told_apart() -> None:
    assert set(OF_TRIGGERS) == set(triggers.commands)
    for word in OF_TRIGGERS:
        done = CliRunner().invoke(main, ["trigger", word, "--help"], prog_name="clickclock")
        assert f"Usage: clickclock triggers {word}" in done.output
    assert (
        "Usage: clickclock trigger " in CliRunner().invoke(main, ["trigger", "--help"], prog_name="clickclock").output
    )


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("job rm", "clickclock job delete"),
        ("job crate", "clickclock job create"),
        ("schedules remove", "clickclock schedules delete"),
        ("triggers kill", "clickclock triggers cancel"),
        ("attribution reprot", "clickclock attribution report"),
        ("token remove", "clickclock token revoke"),
    ],
)
def test_a_word_that_is_no_command_of_a_group_is_answered_with_what_is_meant(words: str, meant: str) -> None:
    done = CliRunner().invoke(main, words.split(), prog_name="clickclock")
    assert done.exit_code == 2
    assert f"did you mean {meant}?" in done.output


def test_faults_stand_above_what_they_are_about() -> None:
    text = "# shop/x\ncommand: a\nretryBackoff:\n  jitter: no\npriority: x\n"
    faults = [Fault("priority", "Give a number."), Fault("retryBackoff.jitter", "One of full, none."), Fault("", "Oh.")]
    assert marked(text, faults) == (
        "#! Oh.\n# shop/x\ncommand: a\n#! retryBackoff.jitter: One of full, none.\nretryBackoff:\n  jitter: no\n"
        "#! Give a number.\npriority: x\n"
    )


@pytest.mark.parametrize(("width", "cut"), [(20, "a line that is long"), (10, "a line th…")])
def test_what_is_watched_fits_into_the_window(width: int, cut: str) -> None:
    assert fitted("a line that is long\n", width, 5) == [cut]
    assert len(fitted("x\n" * 30, 80, 10)) == 10
    coloured: Any = click.style("日本" * 10, fg="red")
    assert fitted(coloured, 10, 3)[0].endswith("…")
