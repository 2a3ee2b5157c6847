r"""A crontab as a declaration: its lines as jobs with schedules, its environment lines as the jobs' environment.

Never runs anything, never asks who the user is. The rules are those of Debian's cron: environment lines hold for the
lines below them; the first `%` that no backslash precedes begins standard input, and the others end its lines.
Invariants: the same crontab makes the same declaration, with the same names; a line that cron would refuse is a fault
with its line; what has no like here is said in a note.

>>> read_crontab("0 4 * * 1 /usr/local/bin/backup --all\n", "crontab", application="cron").declaration["jobs"]
[{'jobName': 'backup', 'command': '/usr/local/bin/backup --all', 'schedules': [{'expression': '0 4 * * 1'}]}]
"""

import re
import shlex
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from zoneinfo import available_timezones

import msgspec
from msgspec.structs import replace

from clickclock.files.cron_line import expression_fault, kept, needs_shell
from clickclock.files.documents import Unreadable
from clickclock.files.job_name import job_name
from clickclock.foundation.errors import Fault

SHELL = "/bin/sh"
LABEL_CHARS_MAX = 256
NAME_CHARS_MAX = 120
SCRIPT_VARIABLE = "CRON_COMMAND"
"""Carries a command with `{{`, which would be a template in the command itself."""

_SETTING = re.compile(r"\s*(?P<name>\"[^\"]*\"|'[^']*'|[^\s=#]+)\s*=\s*(?P<value>.*?)\s*")
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_LINE = re.compile(r"\s*(?P<expression>@\w+|\S+(?:\s+\S+){4})\s+(?P<rest>\S.*)")
_HEADER = re.compile(r"m(?:in(?:ute)?)?\s+h(?:our)?\s+(?:dom|day)\b.*", re.IGNORECASE)
_USER_AND_COMMAND = re.compile(r"(?P<user>\S+)\s+(?P<command>\S.*)")
_RELATIVE = re.compile(r"(?:^|[\s;&|(])(?:\.\.?/|cd\s+[\w.])")
_INDEX = re.compile(r"jobs\[(\d+)\](?:\.schedules\[(\d+)\])?")


class _Setting(msgspec.Struct, frozen=True):
    """What holds for the lines that follow."""

    environment: dict[str, str] = msgspec.field(default_factory=dict)
    shell: str = SHELL
    mail_to: str | None = None
    time_zone: str | None = None


class _Entry(msgspec.Struct, frozen=True):
    """One line that runs something."""

    line: int
    expression: str
    command: str
    user: str | None
    comment: str | None
    setting: _Setting


@dataclass(slots=True)
class Crontab:
    """What a crontab comes to. `notes` say what is different here, or was left out."""

    name: str
    declaration: dict[str, Any]
    notes: list[str]
    _lines: list[list[int]]
    """Of each job, the lines of its schedules."""

    def located(self, fault: Fault) -> Fault:
        """A fault that the service named by its place in the declaration, with its line instead."""
        found = _INDEX.search(fault.field)
        if found is None or int(found[1]) >= len(self._lines):
            return fault
        return Fault(f"{self.name}:{self._lines[int(found[1])][int(found[2] or 0)]}", fault.message)


def read_crontab(
    text: str, name: str, *, application: str, system: bool = False, time_zone: str | None = None
) -> Crontab:
    """Read it. `system`: a user stands before each command; `time_zone`: where cron runs, None: in UTC.

    An empty `time_zone` is one that is not known: lines without a CRON_TZ are then refused.
    Raises `Unreadable` naming every line that cron would refuse.
    """
    reading = _Reading(name, system, _Setting(time_zone=time_zone), time_zone)
    for number, line in enumerate(text.splitlines(), 1):
        reading.add(number, line)
    if reading.faults:
        raise Unreadable(f"{name} has lines that cannot be imported; fix them.", reading.faults)
    jobs, lines = _jobs(reading.entries)
    reading.note_what_differs()
    return Crontab(name, {"application": application, "jobs": jobs}, reading.notes, lines)


@dataclass(slots=True)
class _Reading:
    """One reading, line by line."""

    name: str
    system: bool
    setting: _Setting
    home: str | None
    """The zone where cron runs."""
    entries: list[_Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    _comment: list[str] = field(default_factory=list)

    def add(self, number: int, line: str) -> None:
        stripped = line.strip()
        if stripped.startswith("#"):
            said = stripped.lstrip("#").strip()
            self._comment = [*self._comment, said] if _describes(said) else []
            return
        comment = " ".join(self._comment) or None
        self._comment = []
        if not stripped:
            return
        if setting := _SETTING.fullmatch(line):
            self._set(number, _unquoted(setting["name"]), _unquoted(setting["value"]))
        else:
            self._add_entry(number, line, comment)

    def _set(self, number: int, name: str, value: str) -> None:
        match name:
            case "SHELL":
                self.setting = replace(self.setting, shell=value)
            case "MAILTO":
                self.setting = replace(self.setting, mail_to=value or None)
            case "CRON_TZ" if value and value not in available_timezones():
                self._fault(number, f"CRON_TZ is {value!r}, which is no time zone; give an IANA name.")
            case "CRON_TZ":
                self.setting = replace(self.setting, time_zone=value or self.home)
            case "MAILFROM" | "CONTENT_TYPE" | "CONTENT_TRANSFER_ENCODING":
                self._note(number, f"{name} is left out: it is about cron's mail.")
            case _ if not _ENVIRONMENT_NAME.fullmatch(name):
                self._fault(number, f"{name!r} is no name of a variable; use letters, digits and _.")
            case _:
                if name == "TZ":
                    self._note(number, "TZ is what commands see; as with cron, it does not move their times.")
                self.setting = replace(self.setting, environment={**self.setting.environment, name: value})

    def _add_entry(self, number: int, line: str, comment: str | None) -> None:
        found = _LINE.fullmatch(line.rstrip())
        if found is None:
            sentence = "Give five fields (or a word such as @daily) and a command; a variable needs a =."
            self._fault(number, sentence)
            return
        expression, command = " ".join(found["expression"].split()), found["rest"]
        user = None
        if self.system:
            split = _USER_AND_COMMAND.fullmatch(command)
            if split is None:
                self._fault(number, "Give a user and a command after the times, or leave out --system.")
                return
            user, command = split["user"], split["command"]
        if expression == "@reboot":
            self._note(
                number,
                "@reboot is left out: a job runs at times, not at boots. Let the machine's init start it, for example "
                "a systemd unit that calls `clickclock trigger`.",
            )
            return
        if fault := expression_fault(expression):
            self._fault(number, fault)
            return
        if self.setting.time_zone == "":
            self._fault(number, "The zone of this machine is not known; give --time-zone, or a CRON_TZ above the line.")
            return
        expression, told = kept(expression)
        for sentence in told:
            self._note(number, sentence)
        if _RELATIVE.search(command) and not self.setting.environment.get("HOME", "").startswith("/"):
            self._note(
                number, "cron starts commands in the user's home, and here they start in /; put HOME=… above it."
            )
        self.entries.append(_Entry(number, expression, command, user, comment, self.setting))

    def note_what_differs(self) -> None:
        """Once, and not for each line: what holds for all of them."""
        addresses = dict.fromkeys(each.setting.mail_to for each in self.entries if each.setting.mail_to)
        for address in addresses:
            self.notes.append(
                f"MAILTO={address} is kept as the label mailto. Output is not mailed but kept for each attempt "
                "(clickclock log); to be told of failures, set up notifications."
            )
        if not self.system and self.entries and all(each.command.split()[0] == "root" for each in self.entries):
            self.notes.append("Every command begins with root: if that is the user, read it with --system.")
        users = dict.fromkeys(each.user for each in self.entries if each.user)
        if users:
            self.notes.append(
                f"Commands run as the user of the service, not as {', '.join(users)}; that is kept as the label "
                "cronUser."
            )

    def _note(self, number: int, sentence: str) -> None:
        self.notes.append(f"{self.name}:{number}: {sentence}")

    def _fault(self, number: int, sentence: str) -> None:
        self.faults.append(Fault(f"{self.name}:{number}", sentence))


def _jobs(entries: list[_Entry]) -> tuple[list[dict[str, Any]], list[list[int]]]:
    """A job for each command; one that stands in several lines has several schedules."""
    jobs: dict[str, dict[str, Any]] = {}
    lines: dict[str, list[int]] = {}
    names: set[str] = set()
    for entry in entries:
        job = _job(entry)
        identity = repr(job)
        if identity not in jobs:
            name = job_name(entry.command)[:NAME_CHARS_MAX]
            if name in names:
                name = f"{name}-{blake2b(identity.encode(), digest_size=3).hexdigest()}"
            names.add(name)
            described = {} if entry.comment is None else {"description": entry.comment}
            jobs[identity] = {"jobName": name, **described, **job, "schedules": []}
            lines[identity] = []
        schedules = jobs[identity]["schedules"]
        schedule = {"expression": entry.expression}
        if entry.setting.time_zone is not None:
            schedule["timeZone"] = entry.setting.time_zone
        if schedule in [{name: each[name] for name in schedule} for each in schedules]:
            continue
        if schedules:
            schedule = {"scheduleName": _schedule_name(schedule), **schedule}
        schedules.append(schedule)
        lines[identity].append(entry.line)
    return list(jobs.values()), list(lines.values())


def _job(entry: _Entry) -> dict[str, Any]:
    setting = entry.setting
    script, environment = _script(entry.command, setting.shell), dict(setting.environment)
    if "{{" in script:
        environment[SCRIPT_VARIABLE] = script
        script = f'eval "${SCRIPT_VARIABLE}"'
    job: dict[str, Any] = {"command": script}
    if setting.shell != SHELL:
        job["command"] = shlex.join([setting.shell, "-c", script])
    elif needs_shell(script):
        job["shell"] = True
    if environment:
        job["environment"] = environment
    if setting.environment.get("HOME", "").startswith("/"):
        job["workingDirectory"] = setting.environment["HOME"]
    labels = {"mailto": setting.mail_to, "cronUser": entry.user}
    if kept := {name: value[:LABEL_CHARS_MAX] for name, value in labels.items() if value}:
        job["labels"] = kept
    return job


def _describes(said: str) -> bool:
    """Whether a comment tells about the line below: an empty one, the columns' titles and a line out of use do not."""
    if not said or _HEADER.fullmatch(said):
        return False
    line = _LINE.fullmatch(said)
    expression = "" if line is None else " ".join(line["expression"].split())
    return line is None or (expression != "@reboot" and expression_fault(expression) is not None)


def _script(command: str, shell: str = SHELL) -> str:
    r"""The command as a shell gets it, with its standard input.

    >>> _script(r"mail -s 100\% root%Hello%there")
    "printf %s 'Hello\nthere\n' | /bin/sh -c 'mail -s 100% root'"
    """
    script, *given = (part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", command))
    script = script.strip()
    if not given:
        return script
    lines = "\n".join(given)
    text = lines if lines.endswith("\n") else f"{lines}\n"
    return f"printf %s {shlex.quote(text)} | {shlex.quote(shell)} -c {shlex.quote(script)}"


def _schedule_name(schedule: dict[str, str]) -> str:
    """A name of letters that a name may have: `30 2 * * 1,5` is `30 2 x x 1.5`."""
    told = " ".join(schedule.values()).replace("*", "x").replace(",", ".").replace("@", "")
    return told[:NAME_CHARS_MAX].strip()


def _unquoted(value: str) -> str:
    quote = value[:1]
    return value[1:-1] if quote in {'"', "'"} and len(value) > 1 and value.endswith(quote) else value
