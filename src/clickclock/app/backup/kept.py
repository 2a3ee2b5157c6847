"""The backups of a place: heads, tables, what was verified; and which are deleted.

Never deletes a part that a backup still has. Invariants: a backup is there once its head is, which is written last; the
backups of each data folder have a folder of their own, named after its node.

>>> Kept.at(config, "web-1-5f0c6c1d9a11").heads()   # doctest: +SKIP
[]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from clickclock.app.backup.cipher import Cipher, cipher_of, expect_key
from clickclock.app.backup.manifest import FORMAT, About, Contents, Head, Verified
from clickclock.app.backup.parts import PARTS, Parts, Reader, path_of
from clickclock.app.backup.place import BackupRefused, Place, PlaceFailed, place_at
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError, Fault

_NODES: Final = "nodes"
_HEADS: Final = "backups"
_VERIFIED: Final = "verified"
T = TypeVar("T")


def place_of(config: Config) -> Place:
    """Where a configuration has its backups. Raises `ConfigurationError` if it does not say."""
    if config.backup_url is None:
        sentence = "it is not said where the backups are; give --backup-url, or backup_url in the configuration."
        raise ConfigurationError(faults=[Fault("backup_url", sentence)])
    options: Mapping[str, str] = {name: value.get_secret_value() for name, value in config.backup_options.items()}
    return place_at(config.backup_url, options)


def nodes_in(place: Place) -> list[str]:
    """The nodes of all data folders that have backups there."""
    return sorted(Path(name).name.removesuffix(".json") for name in place.names(_NODES))


@dataclass(frozen=True)
class Kept:
    """The backups of one data folder in a place."""

    place: Place
    node: str
    cipher: Cipher

    @classmethod
    def at(cls, config: Config, node: str) -> "Kept":
        """As configured. Raises `ConfigurationError` for a wrong key, or one too many, or none; `PlaceFailed`."""
        place, cipher = place_of(config), cipher_of(config.backup_key_file)
        about = _read(place, f"{_NODES}/{node}.json", About)
        if about is not None:
            _refuse_format(about.format, place)
            expect_key(cipher, about.key_check, place.where, config.backup_key_file)
        return cls(place, node, cipher)

    def begin(self) -> None:
        """Say whose these are, before the first part is there."""
        name = f"{_NODES}/{self.node}.json"
        if _read(self.place, name, About) is None:
            self.place.write(name, msgspec.json.encode(About(FORMAT, self.node, self.cipher.check)))

    def ids(self) -> list[str]:
        """The ids of all backups, oldest first."""
        return sorted(Path(name).name.removesuffix(".json") for name in self.place.names(f"{self.node}/{_HEADS}"))

    def head(self, backup_id: str) -> Head:
        """What a backup says of itself. Raises `BackupRefused` if there is none, or it is of a newer program."""
        name = f"{self.node}/{_HEADS}/{backup_id}.json"
        raw: dict[str, Any] | None = _read(self.place, name, dict)
        if raw is None:
            raise BackupRefused(
                f"There is no backup {backup_id} in {self.place.where}; `clickclock backup list` has all."
            )
        _refuse_format(raw.get("format", FORMAT), self.place)
        head = _read(self.place, name, Head)
        assert head is not None
        return head

    def heads(self) -> list[Head]:
        """All of them, oldest first."""
        return [self.head(backup_id) for backup_id in self.ids()]

    def contents(self, head: Head) -> Contents:
        """A backup's table. Raises `BackupRefused` if it is damaged."""
        reader = Reader(self.place, self.node, self.cipher)
        try:
            return msgspec.msgpack.decode(b"".join(map(reader.part, head.index)), type=Contents)
        except msgspec.MsgspecError as error:
            raise BackupRefused(f"The table of backup {head.backup_id} cannot be read: {error}.") from error

    def finish(self, head: Head) -> None:
        """Have the backup be there."""
        self.place.write(f"{self.node}/{_HEADS}/{head.backup_id}.json", msgspec.json.encode(head))

    def verified(self, backup_id: str) -> Verified | None:
        """What the last look at a backup has found; None if nobody looked."""
        return _read(self.place, f"{self.node}/{_VERIFIED}/{backup_id}.json", Verified)

    def note(self, verified: Verified) -> None:
        """Keep what a look has found."""
        self.place.write(f"{self.node}/{_VERIFIED}/{verified.backup_id}.json", msgspec.json.encode(verified))

    def parts(self) -> Parts:
        """What a new backup writes its parts with."""
        return Parts(self.place, self.node, self.cipher)

    def reader(self) -> Reader:
        """What parts are read with."""
        return Reader(self.place, self.node, self.cipher)

    def prune(self, keep: int) -> int:
        """Delete all but the newest `keep` backups, the last verified one excepted; how many. The heads go first."""
        ids = self.ids()
        good = [each for each in ids if (seen := self.verified(each)) is not None and seen.is_whole]
        stay = {*ids[-keep:], *good[-1:]}
        old = [each for each in ids if each not in stay]
        if not old:
            return 0
        for backup_id in old:
            self.place.delete(f"{self.node}/{_HEADS}/{backup_id}.json")
            self.place.delete(f"{self.node}/{_VERIFIED}/{backup_id}.json")
        needed = {name for head in self.heads() for name in (*head.index, *self.contents(head).parts)}
        there = {path.rpartition("/")[2] for path in self.place.names(f"{self.node}/{PARTS}")}
        for name in sorted(there - needed):
            self.place.delete(path_of(self.node, name))
        return len(old)


def _read(place: Place, name: str, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(place.read(name), type=kind)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise PlaceFailed(f"{place.where}/{name} cannot be read: {error}; bring it back, or delete it.") from error


def _refuse_format(form: int, place: Place) -> None:
    if form > FORMAT:
        raise BackupRefused(
            f"The backups in {place.where} are of format {form}, and this program knows {FORMAT}; use the program that "
            "made them, or a newer one."
        )
