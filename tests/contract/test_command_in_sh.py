"""What the command module promises of `sh -c`, asked of the machine's own /bin/sh."""

import subprocess
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clickclock.scheduler import command as commands

NOMINAL_TIME = datetime(2026, 11, 20, 10, tzinfo=UTC)
IN_SHELL = True
NASTY = 'a b\'; "$(exit 9)" `exit 9` * \\ {{ triggerId }} $HOME\n| > &'
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


def printed(script: str, value: str) -> list[str]:
    """What a script prints that ends each of its words with a NUL; `value` is the parameter `a`."""
    command = commands.parse(script, shell=IN_SHELL, parameter_names=["a"])
    argv = commands.resolve(command, trigger_id="T1", attempt=2, nominal_time=NOMINAL_TIME, parameters={"a": value})
    variables = commands.environment(
        application="shop", job_name="x", trigger_id="T1", attempt=2, nominal_time=NOMINAL_TIME, parameters={"a": value}
    )
    done = subprocess.run(argv, env=variables, capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


@settings(max_examples=25, deadline=None)
@given(VALUES)
@example(NASTY)
@example("")
def test_a_value_is_one_word_in_any_quotes_and_never_script(value: str) -> None:
    script = (
        "# don't mind {{ this }}\n"
        "printf '%s\\0' {{ parameters.a }} \"<{{ parameters.a }}>\" '<{{ parameters.a }}>' x{{ parameters.a }}y; "
        "(printf '%s\\0' {{ parameters.a }}); "
        "printf '%s\\0' \"$(printf %s. {{ parameters.a }})\" $(({{ attempt }} + 1))"
    )
    assert printed(script, value) == [value, f"<{value}>", f"<{value}>", f"x{value}y", value, value + ".", "3"]


@pytest.mark.parametrize(
    "script",
    [
        "cat <<END\n{{ parameters.a }}\nEND",
        'printf "`printf %s {{ parameters.a }}`"',
        'printf %s "$(case x in x) printf %s {{ parameters.a }};; esac)"',
    ],
)
def test_where_the_quotes_are_guessed_wrong_a_value_still_is_never_script(script: str) -> None:
    value = "$(id)`id`;id"
    assert value in printed(f"{script}\nprintf '\\0'", value)[0]


def test_plain_braces_can_be_written() -> None:
    assert printed("printf '%s\\0' \\{{.Names}} '{''{.Names}}'", "") == ["{{.Names}}", "{{.Names}}"]
