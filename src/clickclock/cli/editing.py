r"""A thing as YAML in somebody's editor: what is wrong is written into the file, and the file is opened again.

Never overwrites another's change: what is saved is for the version that was read, and what changed meanwhile is put
below the editor's own changes, for a second look. Invariants: a text that was written is never lost, for its file stays
until it is saved; comments are no part of the thing.

>>> marked("command: x\npriority: y\n", [Fault("priority", "Give a number.")])
'command: x\n#! Give a number.\npriority: y\n'
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from clickclock.foundation.errors import Fault

if TYPE_CHECKING:
    from clickclock.client import Payload

MARK: Final = "#! "
"""Begins a line that says what is wrong; such lines are taken out before the file is read."""
READ_ONLY: Final = frozenset(
    {"version", "createdAt", "updatedAt", "updatedBy", "managedBy", "nextFireAt", "lastFireAt"}
    | {"application", "jobName", "scheduleId"}
)
"""What the service keeps about a thing, and the names that it has for good."""


@dataclass(frozen=True, slots=True)
class Editable:
    """A thing that can be edited: what it is called, how it is read, and how it is written for a version."""

    name: str
    read: "Callable[[], Payload]"
    write: "Callable[[Payload, Payload, int], Payload]"
    """Gets the thing as it was read, the changes (None for what was taken out), and the version."""
    keys: frozenset[str] = frozenset()
    """Further fields that are its name."""

    def fields(self, thing: "Payload") -> "Payload":
        """What somebody may change."""
        return {name: value for name, value in thing.items() if name not in READ_ONLY | self.keys}


def edit(thing: Editable) -> "Payload | None":
    """Let somebody edit it; the answer of the service, or None if nothing was changed."""
    from clickclock.client import Conflict, Invalid  # noqa: PLC0415 (loaded long since by who calls)
    from clickclock.files import Unreadable, written  # noqa: PLC0415 (loaded when it is used)

    before = thing.read()
    shown = _heading(thing, before) + written([thing.fields(before)])
    must_change, path = True, _file(thing.name)
    while True:
        path.write_text(shown, encoding="utf-8")
        _open(path)
        text = path.read_text(encoding="utf-8", errors="replace")
        if must_change and text == shown:
            _leave(path, was_wrong=MARK in shown)
            return None
        text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(MARK))
        must_change = True
        try:
            wanted = _read(text, path.name)
            changes = {} if wanted is None else _changes(thing.fields(before), wanted)
            if not changes:
                _leave(path, was_wrong=False)
                return None
            answer = thing.write(before, changes, before["version"])
        except Unreadable as error:
            shown = marked(text, [Fault("", f"{fault.field}: {fault.message}") for fault in error.faults])
        except Conflict as error:
            if error.code != "staleVersion":
                raise
            theirs = thing.read()
            shown, before, must_change = _merged(thing, before, theirs, changes), theirs, False
        except Invalid as error:
            shown = marked(text, error.faults or [Fault("", str(error))])
        else:
            path.unlink()
            return answer


def marked(text: str, faults: Sequence[Fault]) -> str:
    """The text with each fault in a line of its own, above the field that it is about, else at the top."""
    from clickclock.files import place_in  # noqa: PLC0415 (loaded when it is used)

    lines = text.splitlines(keepends=True)
    at: dict[int, list[str]] = {}
    for fault in faults:
        line, message = 1, f"{fault.field}: {fault.message}" if fault.field else fault.message
        top = fault.field.partition(".")[0].partition("[")[0]
        if top and any(each.startswith(f"{top}:") for each in lines):
            line = place_in(text, 0, fault.field)[0]
            message = fault.message if top == fault.field else message
            line = next((n for n in range(line, 0, -1) if lines[n - 1].startswith(f"{top}:")), line)
        at.setdefault(line, []).append(f"{MARK}{' '.join(message.split())}\n")
    return "".join("".join(at.get(number, [])) + line for number, line in enumerate(lines, 1))


def _heading(thing: Editable, now: "Payload") -> str:
    managed = now.get("managedBy")
    note = f"# The set {managed} manages it: the next apply of that set changes it back.\n" if managed else ""
    return f"# {thing.name}. Save and close to change it; delete everything to leave it as it is.\n{note}"


def _merged(thing: Editable, before: "Payload", theirs: "Payload", changes: "Payload") -> str:
    from clickclock.files import written  # noqa: PLC0415 (loaded when it is used)

    fields = thing.fields(theirs)
    others = _changes(thing.fields(before), fields)
    both = [name for name in others if name in changes and changes[name] != others[name]]
    text = _heading(thing, theirs) + written([fields | changes])
    told = [Fault("", "Somebody else changed it meanwhile. Your changes are below, on top of theirs; save again.")]
    told += [Fault(name, f"They wrote {written([others[name]]).strip() or 'nothing'}.") for name in both]
    return marked(text, told)


def _changes(before: "Payload", wanted: "Payload") -> "Payload":
    changed = {name: value for name, value in wanted.items() if name not in before or before[name] != value}
    return changed | dict.fromkeys(name for name, value in before.items() if name not in wanted and value is not None)


def _read(text: str, name: str) -> dict[str, Any] | None:
    """The fields; None if nothing is left but comments."""
    from clickclock.files import Unreadable, documents  # noqa: PLC0415 (loaded when it is used)

    found = documents(text, name)
    if not found:
        return None
    if len(found) > 1 or not isinstance(found[0], dict):
        raise Unreadable(faults=[Fault(f"{name}:1:1", "Write one object with fields, as `priority: 50`.")])
    return found[0]


def _leave(path: Path, *, was_wrong: bool) -> None:
    if was_wrong:
        raise click.ClickException(f"Nothing is changed, for the file still has faults; it is kept as {path}.")
    path.unlink()
    click.echo("Nothing is changed.", err=True)


def _file(name: str) -> Path:
    safe = "".join(char if char.isalnum() or char in "._-" else "-" for char in name)
    number, path = tempfile.mkstemp(prefix=f"clickclock-{safe}-", suffix=".yaml")  # for nobody else to read
    os.close(number)
    return Path(path)


def _open(path: Path) -> None:
    variables = os.environ  # noqa: TID251 (as every program that opens an editor, and no setting of ours)
    command = variables.get("VISUAL") or variables.get("EDITOR") or "vi"
    if not sys.stdin.isatty() and "VISUAL" not in variables and "EDITOR" not in variables:
        path.unlink()
        raise click.ClickException("There is no terminal to edit on; use update, or name a program in EDITOR.")
    try:
        done = subprocess.run([*shlex.split(command), str(path)], check=False)  # noqa: S603 (their own program)
    except (OSError, ValueError) as error:
        path.unlink()
        raise click.ClickException(
            f"The editor {command!r} cannot be started ({error}); set EDITOR to the one that you use."
        ) from error
    if done.returncode:
        sentence = f"The editor ended with {done.returncode}, so nothing is changed; what you wrote is in {path}."
        raise click.ClickException(sentence)
