"""What the command module promises of `sh -c`, asked of the machine's own /bin/sh."""

import re
import shutil
import subprocess
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.jobs import command as commands
from clickclock.scheduler.jobs.template_values import Values

NOMINAL_TIME = datetime(2026, 11, 20, 10, tzinfo=UTC)
IN_SHELL = True
NASTY = 'a b\'; "$(exit 9)" `exit 9` * \\ {{ triggerId }} $HOME\n| > &'
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


SHELLS = [["/bin/sh"], *([path] for name in ("bash", "dash") if (path := shutil.which(name)))]
SHELLS += [[path, "sh"] for name in ("busybox",) if (path := shutil.which(name))]


def printed(script: str, value: str, shell: list[str] | None = None) -> list[str]:
    """What a script prints that ends each of its words with a NUL; `value` is the parameter `a`."""
    command = commands.parse(script, shell=IN_SHELL, parameter_names=["a"])
    values = Values("T1", 2, NOMINAL_TIME, {"a": value})
    argv = commands.resolve(command, values)
    variables = commands.environment(command, values, application="shop", job_name="x")
    variables["PATH"] = "/usr/bin:/bin"
    done = subprocess.run([*(shell or argv[:1]), *argv[1:]], env=variables, capture_output=True, check=True)
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


def test_a_date_is_one_word_in_any_quotes_and_reads_nothing_but_its_variable() -> None:
    date = "{{ nominalTime | subtract(days=1) | date('%d. \"%b\" $x') }}"
    script = f"printf '%s\\0' {date} \"<{date}>\" '<{date}>' $(printf %s {{{{ zone }}}})"
    day = '19. "Nov" $x'
    assert printed(script, "") == [day, f"<{day}>", f"<{day}>", "UTC"]


T = "{{ parameters.a }}"
PLACES = {
    "here-document": f"cat <<END; printf '\\0'\n{T}\nEND\n",
    "quotes in a here-document": f"cat <<END; printf '\\0'\n{T}\nEND\nprintf '%s\\n\\0' {T}",
    "an apostrophe in a here-document": f"cat <<END >&2\nit's \"one\nEND\nprintf '%s\\n\\0' {T}",
    "here-document with tabs": f"cat <<-END; printf '\\0'\n\t{T}\n\tEND\n",
    "blank before the delimiter": f"cat << END ; printf '\\0'\n{T}\nEND\n",
    "two on a line": f"cat <<A; cat <<B; printf '\\0'\n{T}\nA\nB\n",
    "a quoted and an unquoted one": f"cat <<'A' >&2; cat <<B; printf '\\0'\n' $( \" `\nA\n{T}\nB\n",
    "delimiter as part of a line": f"cat <<END; printf '\\0'\n{T}\nEND\necho not END >&2",
    "a joined line": f"cat <<END; printf '\\0'\n{T}\\\n\nEND\n",
    "here-document in a substitution": f"printf '%s\\n\\0' \"$(cat <<END\n{T}\nEND\n)\"",
    "substitution in a here-document": f"cat <<END; printf '\\0'\n$(printf %s {T})\nEND\n",
    "back-quotes in a here-document": f"cat <<END; printf '\\0'\n`printf %s {T}`\nEND\n",
    "default in a here-document": f"cat <<END; printf '\\0'\n${{NO-{T}}}\nEND\n",
    "no here-document": f"printf '%s\\n\\0' {T} $((1<<2)) | head -n 99999 | sed '$!b;s/4$//' | cat",
    "back-quotes": f"printf '%s\\n\\0' \"`printf %s {T}`\"",
    "quotes in back-quotes": f'printf \'%s\\n\\0\' "`printf %s "{T}"`"',
    "back-quotes without quotes": f"printf '\\n\\0' `: {T}`; printf '%s\\n\\0' {T}",
    "case": f"case x in x) printf '%s\\n\\0' {T};; esac",
    "case in a substitution": f"printf '%s\\n\\0' \"$(case x in (y) ;; x|z) printf %s {T};; esac)\"",
    "the word case": f"printf '%s\\n\\0' \"$(echo case >&2)\"{T}",
    "subshell in a substitution": f"printf '%s\\n\\0' \"$( (printf %s {T}); true)\"",
    "after arithmetic": f": $(( (1 + 2) << 1 )); printf '%s\\n\\0' {T}",
    "comment": f"# it's a `comment with $( and \" \nprintf '%s\\n\\0' {T}",
    "comment in a substitution": f"printf '%s\\n\\0' \"$(: # it's )\n printf %s {T})\"",
    "no comment": f": a#' b'; : $# ${{#}}; printf '%s\\n\\0' {T}",
    "default": f"printf '%s\\n\\0' \"${{NO-{T}}}\"",
    "default without quotes": f"printf '%s\\n\\0' ${{NO-{T}}}",
    "braces": f"{{ printf '%s\\n\\0' {T}; }}",
    "function": f"f() {{ printf '%s\\n\\0' \"$1\"; }}; f {T}",
    "escaped quotes": f': \\\' \\"; : "\\""; printf \'%s\\n\\0\' {T}',
}


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0].rpartition("/")[2])
@pytest.mark.parametrize("place", PLACES)
def test_a_value_comes_whole_wherever_its_template_stands(place: str, shell: list[str]) -> None:
    for value in ('a b  "c"', "it's", "$(exit 9)`exit 9`;id # x", "* \\n {{ attempt }} $HOME } ) EOF", "é\tx"):
        assert f"{value}\n" in printed(PLACES[place], value, shell)


def test_a_subshell_may_look_like_arithmetic() -> None:
    """Bash takes it for one, others refuse it; either way the value is no script."""
    command = commands.parse(f"echo $((printf %s {T}); true)", shell=IN_SHELL, parameter_names=["a"])
    assert command.pieces[-1] == 'echo $((printf %s "${CLICKCLOCK_PARAM_A}"); true)'


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        (f"cat <<'END'\n\n  {T}\nEND\n", r"line 3, column 3 stands in a here-document whose delimiter END is quoted"),
        (f'cat <<"END"\n{T}\nEND\n', r"line 2, column 1 stands in a here-document whose delimiter END is quoted"),
        (f"cat <<\\END\n{T}\nEND\n", r"line 2, column 1 stands in a here-document whose delimiter END is quoted"),
        (f"cat <<{T}\nx\n", r"line 1, column 7 is the delimiter of a here-document"),
        (f"echo $'a {T}'", r"line 1, column 10 stands in \$'…'"),
        (f"echo $'it\\'s' {T}", r"line 1, column 15 comes after an escaped quote in \$'…'"),
        (
            f'echo "`echo \\"{T}\\"`"',
            r"column 15 comes after a backslash inside of back-quotes; .* \(line 1, column 13\)",
        ),
        (f"echo `echo \\`echo {T}\\``", r"column 19 comes after a backslash inside of back-quotes"),
        (f"echo \"${{NO-'{T}'}}\"", r"column 13 comes after a quote inside of \$\{…\} inside of double quotes"),
    ],
)
def test_where_a_value_cannot_be_quoted_safely_the_place_is_told(script: str, fault: str) -> None:
    with pytest.raises(Invalid) as caught:
        commands.parse(script, shell=IN_SHELL, parameter_names=["a"])
    assert [each.field for each in caught.value.faults] == ["command"]
    assert re.search(fault, caught.value.faults[0].message)


def test_what_is_in_doubt_but_has_no_template_is_left_to_the_shell() -> None:
    script = "printf '%s\\0' {{ parameters.a }}; : `echo \\`echo x\\``; cat <<'E' >&2\n$( ' \" ` ) # {\nE\n"
    assert printed(script, "a b") == ["a b"]


def test_plain_braces_can_be_written() -> None:
    assert printed("printf '%s\\0' \\{{.Names}} '{''{.Names}}'", "") == ["{{.Names}}", "{{.Names}}"]
