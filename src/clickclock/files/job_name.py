r"""What the job of a command line is called: after what runs, and not after what prepares or carries it.

Never runs or expands anything. Invariants: a name depends on the command alone; whatever the command, it has a name.

>>> job_name("cd /srv/shop && /usr/bin/python3 jobs/export_orders.py --all")
'export_orders'
>>> job_name("cd /x && bundle exec rake db:backup"), job_name("su - deploy -c '/opt/app/bin/report --daily'")
('rake-db-backup', 'report')
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

DEPTH_MAX: Final = 5
"""Shells within shells."""
_SEPARATOR: Final = re.compile(r"[;&|()\n]+|then|do|else|elif|fi|done|if|while|until|for|\{|\}|!")
_REDIRECTION: Final = re.compile(r"[<>&]*[<>][<>&]*")
_PREPARATIONS: Final = frozenset(
    [
        "cd",
        "pushd",
        "popd",
        "source",
        ".",
        "export",
        "set",
        "unset",
        "umask",
        "ulimit",
        "test",
        "[",
        "[[",
        "mkdir",
        "sleep",
        "trap",
        "true",
        "false",
        ":",
        "rvm",
        "nvm",
        "alias",
        "shopt",
        "local",
        "readonly",
        "declare",
        "hash",
        "type",
    ]
)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_CARRIERS: Final[Mapping[str, tuple[str, int]]] = {
    **dict.fromkeys(("chronic", "cronic", "command", "exec", "nohup", "time", "unbuffer", "xvfb-run"), ("", 0)),
    "chrt": ("", 1),
    "taskset": ("", 1),
    "gosu": ("", 1),
    "su-exec": ("", 1),
    "setsid": ("", 0),
    "nice": ("n", 0),
    "ionice": ("cnp", 0),
    "timeout": ("ks", 1),
    "flock": ("wE", 1),
    "stdbuf": ("ioe", 0),
    "sudo": ("ugpCDRTUhr", 0),
    "doas": ("uC", 0),
    "env": ("uCS", 0),
    "runuser": ("ugG", 0),
    "setpriv": ("", 0),
    "caffeinate": ("tw", 0),
    "ssh": ("pliFoJLRDbcEIm", 1),
}
"""What carries a command: its options that take a value, and how many words it has before the command."""
_LAUNCHERS: Final = frozenset(
    [
        "bundle exec",
        "poetry run",
        "pipenv run",
        "uv run",
        "pdm run",
        "rye run",
        "hatch run",
        "rbenv exec",
        "pyenv exec",
        "foreman run",
        "pnpm exec",
        "pnpm dlx",
        "yarn exec",
        "npm exec",
        "conda run",
        "micromamba run",
        "dotenv",
        "npx",
        "bunx",
        "npx tsx",
        "docker exec",
        "podman exec",
        "docker-compose exec",
        "docker compose exec",
    ]
)
_IN_CONTAINER: Final = "exec"
_TASKS: Final = frozenset(
    [
        "rake",
        "make",
        "rails",
        "artisan",
        "console",
        "manage",
        "just",
        "invoke",
        "inv",
        "gradle",
        "gradlew",
        "drush",
        "wp",
        "cap",
        "thor",
        "mix",
        "task",
        "ant",
        "nx",
    ]
)
"""Programs whose first word says what runs."""
_RUNNERS: Final = frozenset(("npm", "yarn", "pnpm", "bun", "deno", "composer", "turbo"))
_SHELL: Final = re.compile(r"(?:ba|da|z|k|a)?sh|fish")
_INTERPRETER: Final = re.compile(
    r"python[\d.]*|pypy[\d.]*|perl|php[\d.]*|ruby[\d.]*|node|nodejs|Rscript|run-parts|tsx|ts-node|lua"
)
_ENDING: Final = re.compile(r"\.(?:sh|bash|zsh|py|pl|php|rb|js|mjs|ts|jar|R|lua|exe)$")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")


def job_name(command: str) -> str:
    """What a command of a crontab is called: its program, its script, or its task."""
    return _fit(_named(re.split(r"(?<!\\)%", command)[0], DEPTH_MAX)) or "job"


def _named(command: str, depth: int) -> str:
    commands = list(_commands(_words(command)))
    known = [words for words in commands if words[0].rpartition("/")[2] not in _PREPARATIONS]
    for words in known or commands:
        if name := _program(words, depth):
            return name
    return ""


def _words(command: str) -> list[str]:
    """Words as a shell splits them, each quoted name as one of them; plain ones where it would refuse them."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return command.split()


def _commands(words: list[str]) -> Iterator[list[str]]:
    """The simple commands of a line, without what redirects and what assigns."""
    found: list[str] = []
    skips = False
    for word in [*words, ";"]:
        if skips:
            skips = False
        elif _REDIRECTION.fullmatch(word):
            skips = True
        elif _SEPARATOR.fullmatch(word):
            if found:
                yield found
            found = []
        elif found or not _ASSIGNMENT.match(word):
            found.append(word)


def _program(words: list[str], depth: int) -> str:
    """The name of what a simple command runs."""
    program, rest = words[0].rstrip("/").rpartition("/")[2], words[1:]
    if not depth:
        return program
    if program == "su":
        return _of_su(rest, depth) or program
    if program in _CARRIERS:
        return _carried(program, rest, depth) or program
    for length in (3, 2, 1):
        launcher = " ".join([program, *rest[: length - 1]])
        if launcher in _LAUNCHERS and len(rest) >= length:
            rest = _without_options(rest[length - 1 :], "uewn")
            return _within(rest[1:] if _IN_CONTAINER in launcher and "do" in program else rest, depth) or program
    if _SHELL.fullmatch(program):
        return _of_shell(rest, depth) or program
    if program == "java" and "-jar" in rest[:-1]:
        return _base(rest[rest.index("-jar") + 1])
    if _INTERPRETER.fullmatch(program):
        if "-m" in rest[:1] and len(rest) > 1:
            return rest[1]
        script = next((place for place, word in enumerate(rest) if not word.startswith("-")), None)
        return program if script is None else _task(_base(rest[script]), rest[script + 1 :])
    if program in _RUNNERS and len(rest) > 1 and rest[0] in {"run", "run-script"}:
        task = _without_options(rest[1:], "")
        return program if not task else _base(task[0]) if "." in task[0] else f"{program}-{task[0]}"
    return _task(_base(program), rest)


def _within(words: list[str], depth: int) -> str:
    """The name of the command that another carries; it may be one word with a whole command in it."""
    while words and _ASSIGNMENT.match(words[0]):
        words = words[1:]
    if not words:
        return ""
    return _named(words[0], depth - 1) if len(words) == 1 and " " in words[0] else _program(words, depth - 1)


def _carried(program: str, rest: list[str], depth: int) -> str:
    valued, places = _CARRIERS[program]
    if program in {"flock", "runuser"} and "-c" in rest[:-1]:
        return _named(rest[rest.index("-c") + 1], depth - 1)
    rest = _without_options(rest, valued, long_are_valued=program == "setpriv")
    return _within(_without_options(rest[places:], ""), depth)


def _of_su(rest: list[str], depth: int) -> str:
    for place, word in enumerate(rest[:-1]):
        if word in {"-c", "--command"} or re.fullmatch(r"-l?c", word):
            return _named(rest[place + 1], depth - 1)
    return ""


def _of_shell(rest: list[str], depth: int) -> str:
    for place, word in enumerate(rest):
        if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word) and place + 1 < len(rest):
            return _named(rest[place + 1], depth - 1)
        if not word.startswith("-"):
            return _base(word)
    return ""


def _without_options(words: list[str], valued: str, *, long_are_valued: bool = False) -> list[str]:
    """The words after the options; `valued` are the letters of those whose value is a word of its own."""
    while words and words[0].startswith("-") and words[0] != "-":
        option, words = words[0], words[1:]
        if option == "--":
            break
        is_valued = len(option) == 2 and option[1] in valued  # noqa: PLR2004 (a sign and a letter)
        if is_valued or (long_are_valued and option.startswith("--re")):
            words = words[1:]
    return words


def _task(program: str, rest: list[str]) -> str:
    task = next(iter(_without_options(rest, "Cfj")), "") if program in _TASKS else ""
    return f"{program}-{task}" if task and not task.startswith("'") and " " not in task else program


def _base(path: str) -> str:
    return _ENDING.sub("", path.rstrip("/").rpartition("/")[2])


def _fit(name: str) -> str:
    return _UNFIT.sub("-", name).strip("-._")
