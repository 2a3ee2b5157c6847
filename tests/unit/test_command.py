"""Commands: splitting (checked against shlex), refusing, templates, the environment; never a real process."""

import shlex
import string
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.jobs import command as commands
from clickclock.scheduler.jobs.command import Command, parse, resolve
from clickclock.scheduler.jobs.template_values import Values

IN_SHELL = True
NOMINAL_TIME = datetime(2026, 11, 20, 10, tzinfo=UTC)
NASTY = 'a b\'; "$(touch /tmp/never)" `id` * \\ {{ triggerId }} $HOME\n| > &'
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


def argv(text: str, *, shell: bool = False, **parameters: str) -> tuple[str, ...]:
    return fill(parse(text, shell=shell, parameter_names=parameters.keys()), **parameters)


def fill(command: Command, **parameters: str) -> tuple[str, ...]:
    return resolve(command, Values("T1", 2, NOMINAL_TIME, parameters))


def faults(text: str, *, shell: bool = False, declared: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(Invalid) as caught:
        parse(text, shell=shell, parameter_names=declared)
    assert {fault.field for fault in caught.value.faults} == {"command"}
    return [fault.message for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("python export.py --day x", ("python", "export.py", "--day", "x")),
        ("  echo   a\t b \n", ("echo", "a", "b")),
        ("""echo 'a b' "c d" e\\ f""", ("echo", "a b", "c d", "e f")),
        ("""echo a'b'"c"d""", ("echo", "abcd")),
        ("""echo '' "" x""", ("echo", "", "", "x")),
        ("""echo "\\$a \\` \\" \\\\ \\n" '\\n'""", ("echo", '$a ` " \\ \\n', "\\n")),
        ("echo a \\\n  b", ("echo", "a", "b")),
        ("echo a\\\nb", ("echo", "ab")),
        ("echo $HOME ~ *.csv a#b # c", ("echo", "$HOME", "~", "*.csv", "a#b", "#", "c")),
        ('curl -d \'{"a":{"b":{}}}\' x', ("curl", "-d", '{"a":{"b":{}}}', "x")),
        ("printf ü 日本 😀", ("printf", "ü", "日本", "😀")),
    ],
)
def test_a_command_is_split_as_a_posix_shell_would(text: str, words: tuple[str, ...]) -> None:
    assert argv(text) == words


@given(st.lists(VALUES.filter(lambda word: "{{" not in word), min_size=1).filter(lambda words: words[0] != ""))
def test_what_shlex_quotes_is_split_into_the_same_words(words: list[str]) -> None:
    assert argv(shlex.join(words)) == tuple(words)


@given(st.text("ab '\"\\#=~*{}", min_size=1).filter(lambda text: "{{" not in text))
def test_splitting_agrees_with_shlex(text: str) -> None:
    try:
        expected = shlex.split(text)
    except ValueError:
        expected = []
    if expected and expected[0]:
        assert argv(text) == tuple(expected)
    else:
        assert faults(text)


@pytest.mark.parametrize("sign", ["|", "||", ">", ">>", "<", "<<", "&", "&&", ";", "`", "$("])
def test_an_unquoted_sign_of_the_shell_is_refused_by_name(sign: str) -> None:
    (message,) = faults(f"echo a{sign}b")
    assert message == (
        f"There is an unquoted {sign} at character 7, which only a shell understands: "
        'quote it to pass it on as it is, or set "shell": true.'
    )


@pytest.mark.parametrize("sign", ["|", ">", "<", "&", "&&", ";", "`", "$("])
def test_a_quoted_sign_is_passed_on(sign: str) -> None:
    escaped = "".join("\\" + letter for letter in sign)
    in_double_quotes = sign.replace("`", "\\`")
    assert argv(f"echo '{sign}' \"{in_double_quotes}\" {escaped}") == ("echo", sign, sign, sign)


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("echo 'a b", "The single quote (') at character 6 is never closed"),
        ('echo a "b', 'The double quote (") at character 8 is never closed'),
        ("echo a\\", "The backslash at character 7 ends the command"),
        ("echo a\necho b", "There is a line break at character 7"),
        ("", "The command is empty"),
        (" \t\n", "The command is empty"),
        ("'' x", "The first word names the program"),
        ("\\\n", "The first word names the program"),
        ("echo \0", "There is a NUL at character 6"),
        ("echo \ud800", "The command is not valid Unicode text"),
        ("echo {{ attempt }", "The template begun by {{ at character 6 has no end"),
    ],
)
def test_a_fault_is_told_with_its_place(text: str, beginning: str) -> None:
    (message,) = faults(text)
    assert message.startswith(beginning)


def test_all_faults_are_told_together() -> None:
    assert len(faults("a | b > c {{ nope }} 'd")) == 4


def test_a_command_may_have_64_kib_and_no_byte_more() -> None:
    assert argv("e" * commands.COMMAND_BYTES_MAX)
    assert "65537 bytes" in faults("e" * (commands.COMMAND_BYTES_MAX + 1))[0]
    assert faults("ü" * (commands.COMMAND_BYTES_MAX // 2 + 1), shell=IN_SHELL)


@pytest.mark.parametrize("text", ["{{" * 32_000, "{{a}}" * 13_000, "\\a" * 32_000, "$(" * 32_000, "\"'" * 32_000])
@pytest.mark.parametrize("shell", [False, True])
def test_the_longest_and_worst_command_tells_only_a_few_faults(text: str, *, shell: bool) -> None:
    told = 0
    try:
        parse(text, shell=shell)
    except Invalid as invalid:
        told = len(invalid.faults)
    assert told <= commands.FAULTS_MAX + 2


def test_templates_are_filled_in_inside_and_outside_of_quotes() -> None:
    text = "x --at={{ nominalTime }} {{triggerId}}-{{  attempt  }} '{{ parameters.day }}' \"<{{ parameters.day }}>\""
    assert argv(text, day="a b") == ("x", "--at=2026-11-20T10:00:00.000Z", "T1-2", "a b", "<a b>")


def test_an_empty_value_still_is_a_word() -> None:
    assert argv("echo {{ parameters.a }} x", a="") == ("echo", "", "x")


def test_plain_braces_can_be_written() -> None:
    assert argv("docker ps --format \\{{.Names}}") == ("docker", "ps", "--format", "{{.Names}}")
    assert argv("docker ps --format '{''{.Names}}'") == ("docker", "ps", "--format", "{{.Names}}")


LITERALS = st.text(string.ascii_letters + " -=/.", max_size=6)
WORDS = st.lists(
    st.one_of(
        LITERALS.map(lambda text: text.replace(" ", "")),
        LITERALS.map(shlex.quote),
        st.sampled_from(["{{ parameters.a }}", "'{{ parameters.b }}'", '"-{{ parameters.a }}"', "{{ triggerId }}"]),
    ),
    max_size=6,
).map(lambda pieces: " ".join(["run", *pieces]))


@given(WORDS, VALUES, VALUES)
@example("run {{ parameters.a }} '{{ parameters.b }}'", NASTY, "")
def test_a_value_never_adds_removes_or_breaks_a_word(text: str, a: str, b: str) -> None:
    command = parse(text, shell=False, parameter_names={"a", "b"})
    values = {"{{ parameters.a }}": a, "{{ parameters.b }}": b, "{{ triggerId }}": "T1"}
    filled = fill(command, a=a, b=b)
    assert len(filled) == len(command.words)
    for word, written in zip(filled, command.words, strict=True):
        template = next((template for template in values if template in written), None)
        assert word == (written if template is None else "".join(_around(written, template, values[template])))


def _around(written: str, template: str, value: str) -> tuple[str, str, str]:
    before, _, after = written.partition(template)
    return before, value, after


@pytest.mark.parametrize(
    ("written", "script"),
    [
        ("echo {{ attempt }}", 'echo "${CLICKCLOCK_ATTEMPT}"'),
        ('echo "<{{ triggerId }}>"', 'echo "<${CLICKCLOCK_TRIGGER_ID}>"'),
        ("echo '<{{ nominalTime }}>'", """echo '<'"${CLICKCLOCK_NOMINAL_TIME}"'>'"""),
        ("echo x{{parameters.day}}y", 'echo x"${CLICKCLOCK_PARAM_DAY}"y'),
        ('echo "$(date {{ parameters.day }})"', 'echo "$(date "${CLICKCLOCK_PARAM_DAY}")"'),
        ("echo $(({{ attempt }} + (1)))", "echo $((${CLICKCLOCK_ATTEMPT} + (1)))"),
        ("# don't {{ this }}\necho '{{ attempt }}'", """# don't {{ this }}\necho ''"${CLICKCLOCK_ATTEMPT}"''"""),
        ("echo $# \\' {{ attempt }}) \\{{.Names}}", """echo $# \\' "${CLICKCLOCK_ATTEMPT}") \\{{.Names}}"""),
    ],
)
def test_in_a_shell_a_template_is_a_quoted_reference_to_its_variable(written: str, script: str) -> None:
    assert argv(written, shell=IN_SHELL, day=NASTY) == ("/bin/sh", "-c", script)


def test_a_shell_gets_the_script_as_it_is_written() -> None:
    script = "echo 'it''s' | tee x > y && ls; cat <<END\nisn't\nEND"
    assert argv(script, shell=IN_SHELL) == ("/bin/sh", "-c", script)
    assert parse("python -m etl | tee x", shell=IN_SHELL).words[:3] == ("python", "-m", "etl")


@pytest.mark.parametrize("shell", [False, True])
def test_an_unknown_template_names_the_nearest_known(*, shell: bool) -> None:
    (builtin,) = faults("echo {{ nominaltime }}", shell=shell)
    assert "did you mean nominalTime" in builtin
    (parameter,) = faults("echo '{{ parameters.dya }}'", shell=shell, declared=("day",))
    assert "did you mean parameters.day, or declare it in parameters." in parameter
    (foreign,) = faults("docker ps --format '{{.Names}}'", shell=shell)
    assert "known are nominalTime, previousNominalTime, nextNominalTime, zone, triggerId, attempt" in foreign
    assert "write \\{{ outside of quotes" in foreign


def test_words_as_written_keep_their_templates() -> None:
    assert parse("python '{{attempt}}'", shell=False).words == ("python", "{{ attempt }}")


def test_a_parameter_that_went_missing_is_told_before_anything_starts() -> None:
    for shell in (False, True):
        command = parse("echo {{ parameters.day }}", shell=shell, parameter_names=["day"])
        with pytest.raises(Invalid) as caught:
            fill(command)
        assert [fault.field for fault in caught.value.faults] == ["parameters.day"]


def test_a_parsed_command_is_kept() -> None:
    assert parse("echo kept", shell=False, parameter_names=["b", "a"]) is parse(
        "echo kept", shell=False, parameter_names={"a", "b"}
    )


def test_every_attempt_finds_its_circumstances_in_the_environment() -> None:
    values = Values("T1", 2, NOMINAL_TIME, {"dayOf": NASTY})
    command = parse("true", shell=False)
    assert commands.environment(command, values, application="shop", job_name="export") == {
        "CLICKCLOCK_APPLICATION": "shop",
        "CLICKCLOCK_JOB_NAME": "export",
        "CLICKCLOCK_TRIGGER_ID": "T1",
        "CLICKCLOCK_ATTEMPT": "2",
        "CLICKCLOCK_NOMINAL_TIME": "2026-11-20T10:00:00.000Z",
        "CLICKCLOCK_PARAM_DAYOF": NASTY,
    }


def test_parameter_names_are_words_that_differ_by_more_than_case() -> None:
    assert commands.parameter_name_faults({"day": "x", "_a1": None}) == []
    bad = commands.parameter_name_faults({"1a": None, "a-b": None, "": None, "é": None, "a" * 129: None, "x\n": None})
    assert len(bad) == 6
    assert commands.parameter_name_faults({"day": None, "Day": None}) == [
        "Rename day or Day: they differ only by case, and would share one variable."
    ]
    assert len(commands.parameter_name_faults({"a": "\0", "b": "\ud800", "c": "x" * 16_385})) == 3


def test_given_parameters_must_fit_the_declared() -> None:
    declared = {"day": None, "region": "eu"}
    assert commands.parameter_faults(declared, {"day": "x"}) == []
    assert commands.parameter_faults(declared, {"day": "", "region": ""}) == []
    told = commands.parameter_faults(declared, {"dya": "x", "region": "\0"})
    assert [(fault.field, fault.message) for fault in told] == [
        ("parameters.dya", "The job has no parameter 'dya': did you mean day."),
        ("parameters.day", "Give a value for day: it has no default."),
        ("parameters.region", "The value of region has a NUL, which no program can be given: remove it."),
    ]
    assert "it declares none" in commands.parameter_faults({}, {"x": "1"})[0].message
