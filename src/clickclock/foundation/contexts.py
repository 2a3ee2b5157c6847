"""Contexts: services by name, each with its address and its token, in one file of this user.

Never sends anything, and never shows a token. Invariants: the file is for its owner alone, and one that others may read
is refused; it is replaced whole, so that a crash leaves the old one or the new one.

>>> Contexts().named
{}
"""

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from clickclock.foundation.errors import ConfigurationError
from clickclock.foundation.user_settings import contexts_path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_FIELDS = ("url", "token", "token_file", "ca_file")


@dataclass(frozen=True, slots=True)
class Context:
    """Where a service is, and how one proves who one is."""

    url: str
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    ca_file: str | None = None

    def key(self) -> str | None:
        """Its token, from the file if it has one. Raises `ConfigurationError`."""
        if self.token_file is None:
            return self.token
        try:
            return Path(self.token_file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            said = getattr(error, "strerror", None) or "it is no text in ASCII"
            raise ConfigurationError(f"The token of {self.token_file} cannot be read: {said}.") from None


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts, and which one is in use."""

    current: str | None = None
    named: Mapping[str, Context] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Self:
        """Those of a file; none if it is not there. Raises `ConfigurationError`."""
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return cls()
        except (OSError, UnicodeDecodeError) as error:
            said = getattr(error, "strerror", None) or "it is not UTF-8"
            raise ConfigurationError(f"The contexts in {file} cannot be read: {said}.") from None
        if mode & 0o077:
            raise ConfigurationError(
                f"Others may read the tokens in {file} (mode {mode:04o}); close it: chmod 600 {file}"
            )
        import tomllib  # noqa: PLC0415 (each command comes by here, and few have contexts)

        try:
            return cls._of(tomllib.loads(text))
        except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigurationError(f"{file} is no file of contexts ({error}); mend it, or remove it.") from None

    @classmethod
    def _of(cls, read: Mapping[str, Any]) -> Self:
        given: Mapping[str, Mapping[str, Any]] = read.get("contexts", {})
        strange = [name for name, each in given.items() if not all(isinstance(value, str) for value in each.values())]
        if strange:
            raise ValueError(f"not all of {strange[0]} is text")
        named = {checked_name(name): Context(**each) for name, each in given.items()}
        current = read.get("current")
        return cls(current if current in named else None, named)

    def find(self, name: str | None) -> Context | None:
        """The one of that name, or the one in use; None if none is. Raises `ConfigurationError`."""
        if name is None:
            return None if self.current is None else self.named[self.current]
        if name not in self.named:
            known = ", ".join(sorted(self.named)) or "none yet"
            raise ConfigurationError(
                f"There is no context {name} (there are: {known}); clickclock context add makes one."
            )
        return self.named[name]

    def having(self, name: str, context: Context) -> Self:
        """With that one, in use. Raises `ConfigurationError` for what is no name."""
        return replace(self, current=checked_name(name), named={**self.named, name: context})

    def without(self, name: str) -> Self:
        """Without that one. Raises `ConfigurationError` if it is not there."""
        self.find(name)
        left = {each: context for each, context in self.named.items() if each != name}
        return replace(self, current=None if self.current == name else self.current, named=left)

    def write(self, file: Path) -> None:
        """Replace the file. Raises `OSError`."""
        lines = [] if self.current is None else [f"current = {json.dumps(self.current)}"]
        for name, context in self.named.items():
            told = {each: getattr(context, each) for each in _FIELDS}
            lines += ["", f"[contexts.{json.dumps(name)}]"]
            lines += [f"{each} = {json.dumps(value)}" for each, value in told.items() if value is not None]
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = file.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as made:
            made.write("\n".join([*lines, ""]))
            made.flush()
            os.fsync(made.fileno())
        fresh.rename(file)


def checked_name(name: str) -> str:
    """A name as it may be. Raises `ConfigurationError`."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} is no name of a context: give letters, digits and ._-, at most 63.")
    return name


def contexts_file() -> Path:
    """Where this user's contexts are."""
    return Path(contexts_path())
