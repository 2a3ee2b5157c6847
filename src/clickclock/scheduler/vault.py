"""The door to secrets: files of a folder, and variables of the service that a prefix marks as meant for jobs.

It never writes, logs or keeps a value on disk, and an error names where a secret was looked for, never what was found.
Invariants: a job reaches its own application's folder alone, and of the service's environment only what the prefix
marks; values are read anew for every attempt.

>>> asyncio.run(Vault(None, {}).masks("shop"))
frozenset()
"""

import asyncio
import contextlib
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from clickclock.foundation.errors import Fault, Invalid
from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.secret import MASKED_BYTES_MIN, SecretRef

SECRET_BYTES_MAX = 65_536
"""Longer than any key; an environment could not hold much more."""
MASKED_LINE_BYTES_MIN = 8
"""Shorter lines of a value in several, such as the brackets of JSON, are in any log."""


class Vault:
    """Reads secrets when an attempt starts, and what has to be masked when a log is read."""

    def __init__(self, folder: Path | None, variables: Mapping[str, str]) -> None:
        """`variables` are those for jobs, by their names without the prefix."""
        self._folder = folder
        self._variables = variables
        self._seen: dict[str, set[bytes]] = {}

    async def fill(self, launches: Sequence[Launch]) -> tuple[list[Launch], dict[str, str]]:
        """The launches with their secrets; and by name those that lack one, each with a sentence why."""
        ready: list[Launch] = []
        lacking: dict[str, str] = {}
        for launch in launches:
            if not launch.secret_refs:
                ready.append(launch)
                continue
            try:
                secrets = await asyncio.to_thread(self._resolve, launch.application, launch.secret_refs)
            except Invalid as invalid:
                lacking[launch.name] = " ".join(fault.message for fault in invalid.faults)
            else:
                self._seen.setdefault(launch.application, set()).update(map(str.encode, secrets.values()))
                ready.append(replace(launch, secrets=secrets))
        return ready, lacking

    async def masks(self, application: str) -> frozenset[bytes]:
        """Values that must not be shown to readers of this application's logs: all that its jobs could have been given.

        Not by what a job refers to now: it may have been changed since it ran, or deleted.
        """
        values = {value.encode() for value in self._variables.values()} | self._seen.get(application, set())
        if (folder := self._folder_of(application)) is not None:
            values |= await asyncio.to_thread(_all_in, folder)
        return frozenset(part for value in values for part in _maskable(value))

    def _folder_of(self, application: str) -> Path | None:
        """One folder for each name, whatever it has in it; none is a way out."""
        if self._folder is None:
            return None
        name = application.replace("%", "%25").replace("/", "%2F")
        return self._folder / (f"%2E{name[1:]}" if name.startswith(".") else name)

    def _resolve(self, application: str, refs: Sequence[SecretRef]) -> dict[str, str]:
        values: dict[str, str] = {}
        faults: list[Fault] = []
        for ref in refs:
            try:
                values[ref.name] = self._value(application, ref)
            except OSError as error:
                faults.append(
                    Fault(ref.name, f"The secret file {ref.file} of {application} cannot be read: {error.strerror}.")
                )
            except ValueError as error:
                faults.append(Fault(ref.name, str(error)))
        if faults:
            raise Invalid(faults=faults)
        return values

    def _value(self, application: str, ref: SecretRef) -> str:
        if ref.environment is not None:
            if ref.environment not in self._variables:
                raise ValueError(
                    f"The service has no variable {ref.environment} for jobs; see secret_environment_prefix."
                )
            return self._variables[ref.environment]
        folder = self._folder_of(application)
        if folder is None or ref.file is None:
            raise ValueError(f"The secret file {ref.file} cannot be read: the service has no secrets_dir.")
        return _read(folder / ref.file)


def _maskable(value: bytes) -> Iterator[bytes]:
    """A value, and the lines of a long one: a key is also printed line by line, or indented."""
    if len(value) >= MASKED_BYTES_MIN:
        yield value
    if len(lines := value.splitlines()) > 1:
        yield from (line for line in map(bytes.strip, lines) if len(line) >= MASKED_LINE_BYTES_MIN)


def _all_in(folder: Path) -> set[bytes]:
    values = set()
    for file in folder.iterdir() if folder.is_dir() else ():
        with contextlib.suppress(OSError, ValueError):  # no attempt can have been given it
            values.add(_read(file).encode())
    return values


def _read(file: Path) -> str:
    """A secret without the line's end that editors add. Raises `OSError`; `ValueError` if no variable can hold it."""
    if not stat.S_ISREG(file.stat().st_mode):  # first: whoever opens a pipe waits for a writer
        raise ValueError(f"The secret file {file.name} is no plain file.")
    with file.open("rb") as opened:
        value = opened.read(SECRET_BYTES_MAX + 1)
    value = value.removesuffix(b"\n").removesuffix(b"\r")
    if len(value) > SECRET_BYTES_MAX or b"\0" in value:
        raise ValueError(f"The secret file {file.name} is longer than {SECRET_BYTES_MAX} bytes or has a NUL character.")
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ValueError(f"The secret file {file.name} is not UTF-8.") from None
