r"""A command: one string, split into words as a POSIX shell would, and run without a shell.

Never runs anything and never expands: `$HOME`, `*` and `~` reach the program as they are written.
Invariants:
- a template's value is filled in after splitting, so no value can add, remove or break a word;
- with a shell, no value is ever part of the script's text: a template becomes a quoted reference to the environment
  variable that carries the value, so `sh` never parses it;
- signs that only a shell understands are refused unless quoted or `shell` is set.

A template is `{{ name }}`, perhaps with filters (`template.py`), inside or outside of quotes; `\{{` outside of quotes
is two plain braces.

>>> from datetime import datetime
>>> command = parse("echo '{{ parameters.day }}' x", shell=False, parameter_names={"day"})
>>> resolve(command, Values("t", 1, datetime.fromisoformat("2026-11-20T10:00Z"), {"day": "a b"}))
('echo', 'a b', 'x')
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

import msgspec

from clickclock.foundation.errors import Fault, Invalid
from clickclock.scheduler.jobs.shell_script import TEMPLATE, find
from clickclock.scheduler.jobs.template import (
    PARAMETER,
    faults_of,
    nearest,
    read,
    shown,
)
from clickclock.scheduler.jobs.template_values import Values, evaluate, parameters_in, refuse_missing

COMMAND_BYTES_MAX = 64 * 1024
"""Half of what Linux accepts as one argument (128 KiB), since with a shell the whole command is one."""
PARAMETER_BYTES_MAX = 16 * 1024
"""A value is one environment variable, and may stand several times in one word."""
PARAMETER_NAME_CHARS_MAX = 128
PARSED_COMMANDS_MAX = 1024
"""Parsed forms kept: more jobs than that only cost a parse (some ten µs) for each launch."""
FAULTS_MAX = 10
"""Faults of one kind that are reported. Nobody fixes more at once, and each hint costs a search for a near name."""

OR_BY_A_SHELL = ', or set "shell": true'
"""What else can be done, where it is the command of a job."""
_PARAMETER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_VARIABLES = {
    "nominalTime": "CLICKCLOCK_NOMINAL_TIME",
    "triggerId": "CLICKCLOCK_TRIGGER_ID",
    "attempt": "CLICKCLOCK_ATTEMPT",
}

# One pattern for each state of the splitter. No alternative can look ahead further than the next brace, so that
# splitting is linear in the length of the command.
_UNQUOTED = re.compile(
    TEMPLATE
    + r"|(?P<blank>[ \t\r\n]+)|(?P<escape>\\(?P<escaped>(?s:.)))|(?P<quote>['\"])"
    + r"|(?P<sign>\|\|?|&&?|;|>>?|<<?|`|\$\(|\\\Z)|(?P<plain>[^ \t\r\n\\'\"|&;><`${]+|.)"
)
_DOUBLE = re.compile(
    TEMPLATE + r"|(?P<escape>\\(?P<escaped>[\"\\$`\n]))|(?P<quote>\")|(?P<plain>[^\"\\{]+|.)", re.DOTALL
)
_SINGLE = re.compile(TEMPLATE + r"|(?P<quote>')|(?P<plain>[^'{]+|.)", re.DOTALL)
_SPLIT = {"": _UNQUOTED, '"': _DOUBLE, "'": _SINGLE}


class Template(msgspec.Struct, frozen=True):
    """A place in a word where a value goes. `text` is what stands in the braces, see `template.py`."""

    text: str


Piece = str | Template
Words = tuple[str | tuple[Piece, ...], ...]
"""Words to fill in; one without templates is a plain string, so that it costs nothing."""
_Read = tuple[tuple[str, ...], Words, list[str], dict[str, str]]


class Command(msgspec.Struct, frozen=True):
    """A command that can be run. `words` are as written (for the prefix mapping); `pieces` are filled in per word.

    `variables` are those that its script reads and that carry the value of a template with more than a name.
    """

    words: tuple[str, ...]
    pieces: Words
    parameters_used: frozenset[str]
    asks_schedule: bool = False
    variables: Mapping[str, str] = msgspec.field(default_factory=dict)


def parse(command: str, *, shell: bool, parameter_names: Collection[str] = ()) -> Command:
    """The parsed form of `command`, kept for the next call; raises `Invalid` naming every fault.

    `parameter_names` are those that the job declares; a template may use no other.
    With `shell` the text is left to `/bin/sh`, which alone judges its quotes.
    """
    return _parse(command, shell, frozenset(parameter_names))


@lru_cache(maxsize=PARSED_COMMANDS_MAX)
def _parse(command: str, shell: bool, parameter_names: frozenset[str]) -> Command:
    messages = list(_text_faults(command))
    if messages:
        raise _invalid(messages)
    words, pieces, used, variables = _as_script(command, messages) if shell else _as_words(command, messages)
    messages += _template_faults(used, parameter_names)
    if messages:
        raise _invalid(messages)
    return Command(words, pieces, parameters_in(used), any(read(text).asks_schedule for text in used), variables)


def resolve(command: Command, values: Values) -> tuple[str, ...]:
    """The argv of one attempt.

    Raises `Invalid` if something that the command asks for has no value: a parameter (the job changed after the trigger
    was made), or a time of a schedule.
    """
    refuse_missing(command.parameters_used - values.parameters.keys())
    plain = values.plain
    return tuple(word if isinstance(word, str) else _fill(word, values, plain) for word in command.pieces)


def environment(
    command: Command,
    values: Values,
    *,
    application: str,
    job_name: str,
) -> dict[str, str]:
    """The variables that every attempt finds. They must win over the job's own: the shell's templates are these.

    Raises `Invalid` as `resolve` does.
    """
    return {
        "CLICKCLOCK_APPLICATION": application,
        "CLICKCLOCK_JOB_NAME": job_name,
        **{variable(name): text for name, text in values.plain.items()},
        **{name: evaluate(text, values) for name, text in command.variables.items()},
    }


def variable(template: str) -> str:
    """The environment variable with a template's value.

    >>> variable("parameters.day")
    'CLICKCLOCK_PARAM_DAY'
    """
    return _VARIABLES.get(template) or "CLICKCLOCK_PARAM_" + template.removeprefix(PARAMETER).upper()


def parameter_name_faults(declared: Mapping[str, str | None]) -> list[str]:
    """The faults of a job's declared parameters, a sentence each: names, collisions, defaults."""
    faults = []
    by_variable: dict[str, str] = {}
    for name, default in declared.items():
        if not _PARAMETER_NAME.fullmatch(name) or len(name) > PARAMETER_NAME_CHARS_MAX:
            faults.append(
                f"{shown(name)!r} cannot name a parameter: use up to {PARAMETER_NAME_CHARS_MAX} "
                "letters, digits and underscores, not beginning with a digit."
            )
        elif (first := by_variable.setdefault(name.upper(), name)) != name:
            faults.append(f"Rename {first} or {name}: they differ only by case, and would share one variable.")
        if default is not None and (fault := _value_fault(default)):
            faults.append(f"The default of {shown(name)!r} {fault}")
    return faults


def parameter_faults(declared: Mapping[str, str | None], given: Mapping[str, str]) -> list[Fault]:
    """What keeps `given` from filling `declared`: unknown names, missing values, values that no process can get."""
    faults = []
    for name in [name for name in given if name not in declared][:FAULTS_MAX]:
        hint = nearest(name, declared) or f"it declares {', '.join(declared) or 'none'}"
        faults.append(Fault(PARAMETER + shown(name), f"The job has no parameter {shown(name)!r}: {hint}."))
    for name, default in declared.items():
        if name in given and (fault := _value_fault(given[name])):
            faults.append(Fault(PARAMETER + name, f"The value of {name} {fault}"))
        elif default is None and name not in given:
            faults.append(Fault(PARAMETER + name, f"Give a value for {name}: it has no default."))
    return faults


def _as_words(command: str, messages: list[str]) -> _Read:
    """The words as written, the words to fill in, the templates' texts, and variables; adds to `messages`."""
    split, refused = _split(command)
    messages += [_refusal(sign, position) for sign, position in refused.items()]
    if not split or not split[0]:
        messages.append("The first word names the program to run, and must not be empty.")
    used = [piece.text for word in split for piece in word if isinstance(piece, Template)]
    return tuple(_as_written(word) for word in split), tuple(_compact(word) for word in split), used, {}


def _split(command: str) -> tuple[list[list[Piece]], dict[str, int]]:
    """POSIX words, each as its pieces; and the first position (from 1) of each sign that has to be refused."""
    words: list[list[Piece]] = []
    refused: dict[str, int] = {}
    between, quote, quote_position, at = True, "", 0, 0

    def put(*pieces: Piece) -> None:
        nonlocal between
        if between:
            words.append([])
        between = False
        words[-1].extend(pieces)

    while match := _SPLIT[quote].match(command, at):
        text, position, at = match[0], match.start() + 1, match.end()
        match match.lastgroup:
            case "template":
                put(Template(match["text"].strip()))
            case "blank":
                if "\n" in text and words and at < len(command):
                    refused.setdefault("\n", position)
                between = True
            case "sign" | "unclosed":
                refused.setdefault(text, position)
            case "quote":
                put()  # a pair of quotes with nothing between them is a word, too
                quote, quote_position = ("" if quote else text), position
            case "escape":
                if match["escaped"] != "\n":  # a backslash at the end of a line joins it with the next
                    put(match["escaped"])
            case _:
                put(text)
    if quote:
        refused[quote] = quote_position
    return words, refused


def _as_script(command: str, messages: list[str]) -> _Read:
    """As `_as_words`, for `sh -c`: each template becomes a reference to its variable, one word in any quotes."""
    found = find(command)
    messages += found.faults[:FAULTS_MAX]
    if found.unclosed is not None:
        messages.append(_refusal("{{", found.unclosed))
    script: list[str] = []
    copied = 0
    computed: dict[str, str] = {}
    for each in found.templates:
        if each.text in _VARIABLES or each.text.startswith(PARAMETER):
            name = variable(each.text)
        else:
            name = computed.setdefault(each.text, f"CLICKCLOCK_TEMPLATE_{len(computed) + 1}")
        script += [command[copied : each.start], each.reference(name)]
        copied = each.end
    used = [each.text for each in found.templates]
    words = ("/bin/sh", "-c", "".join([*script, command[copied:]]))
    return tuple(command.split()), words, used, {name: text for text, name in computed.items()}


def _text_faults(command: str) -> Iterator[str]:
    if not command.strip():
        yield "The command is empty: give the program to run and its arguments."
    if "\0" in command:
        yield f"There is a NUL at character {command.index(chr(0)) + 1}, which no program can be given: remove it."
    size = _utf8_bytes(command)
    if size is None:
        yield "The command is not valid Unicode text (it has half of a surrogate pair)."
    elif size > COMMAND_BYTES_MAX:
        yield f"The command has {size} bytes, and may have {COMMAND_BYTES_MAX}: put long scripts into a file."


def _value_fault(value: str) -> str | None:
    size = _utf8_bytes(value)
    if size is None:
        return "is not valid Unicode text (it has half of a surrogate pair)."
    if "\0" in value:
        return "has a NUL, which no program can be given: remove it."
    if size > PARAMETER_BYTES_MAX:
        return f"has {size} bytes, and may have {PARAMETER_BYTES_MAX}: pass the name of a file instead."
    return None


def _utf8_bytes(text: str) -> int | None:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return None


def _template_faults(used: Collection[str], parameter_names: frozenset[str]) -> list[str]:
    faults: list[str] = []
    for text in dict.fromkeys(used):
        name = read(text).name
        undeclared = name.startswith(PARAMETER) and _PARAMETER_NAME.fullmatch(name.removeprefix(PARAMETER))
        remedy = "or declare it in parameters" if undeclared else r"or write \{{ outside of quotes for plain braces"
        faults += faults_of(text, parameter_names, remedy=remedy)
    return faults[:FAULTS_MAX]


def _refusal(sign: str, position: int) -> str:
    """Why a sign is refused, where it stands, and what to do."""
    match sign:
        case "'" | '"':
            name = "single" if sign == "'" else "double"
            return f"The {name} quote ({sign}) at character {position} is never closed: close it."
        case "\\":
            return f"The backslash at character {position} ends the command and escapes nothing: remove or double it."
        case "{{":
            return (
                rf"The template begun by {{{{ at character {position} has no end: "
                r"close it with }}, or write \{{ outside of quotes for plain braces."
            )
        case "\n":
            return (
                f"There is a line break at character {position}, which only a shell takes as the end of a command: "
                f"end the line with a backslash to join it with the next{OR_BY_A_SHELL}."
            )
        case _:
            return (
                f"There is an unquoted {sign} at character {position}, which only a shell understands: "
                f"quote it to pass it on as it is{OR_BY_A_SHELL}."
            )


def _invalid(messages: list[str]) -> Invalid:
    return Invalid("The command cannot be run as it is.", [Fault("command", message) for message in messages])


def _compact(word: list[Piece]) -> str | tuple[Piece, ...]:
    if any(isinstance(piece, Template) for piece in word):
        return tuple(word)
    return "".join(piece for piece in word if isinstance(piece, str))


def _as_written(word: list[Piece]) -> str:
    return "".join(piece if isinstance(piece, str) else f"{{{{ {piece.text} }}}}" for piece in word)


def _fill(word: tuple[Piece, ...], values: Values, plain: Mapping[str, str]) -> str:
    return "".join(
        piece if isinstance(piece, str) else plain.get(piece.text) or evaluate(piece.text, values) for piece in word
    )
