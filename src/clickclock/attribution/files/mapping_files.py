"""Mappings on disk: the presets of the package, files of the user, and those that were kept of earlier imports.

Never decides which one fits. Invariants: a preset is a file like any other, to be copied and changed; a kept mapping is
found again by its client and the header of its file, in whatever order its columns stand: the same export of another
client may be in another currency; it is written whole or not at all.

>>> sorted(mapping.name for mapping in presets())[:2]
['bigcommerce', 'ga4']
"""

import os
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from clickclock.attribution.importing.columns import folded
from clickclock.attribution.importing.file_mapping import FileMapping, read, written
from clickclock.foundation.errors import Malformed

_PRESETS = files("clickclock.attribution.importing") / "presets"


@cache
def presets() -> tuple[FileMapping, ...]:
    """All presets of the package."""
    found = sorted((each for each in _PRESETS.iterdir() if each.name.endswith(".toml")), key=lambda each: each.name)
    return tuple(read(each.read_text("utf-8"), each.name) for each in found)


def preset_text(name: str) -> str:
    """A preset as it is written. Raises `Malformed` if there is none of this name."""
    known = [mapping.name for mapping in presets()]
    if name not in known:
        raise Malformed(f"There is no preset {name}; there are {', '.join(known)}.")
    return (_PRESETS / f"{name}.toml").read_text("utf-8")


def mapping_of(path: Path) -> FileMapping:
    """The mapping that a file is. Raises `Malformed` if it cannot be read, `Invalid` with every fault of it."""
    try:
        return read(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise Malformed(f"{path} cannot be read: {said}.") from error


def kept(folder: Path, header: Sequence[str], client_id: str) -> FileMapping | None:
    """The mapping that was kept of a client's file with this header. Raises as `mapping_of` does."""
    path = _place(folder, header, client_id)
    return mapping_of(path) if path.exists() else None


def keep(folder: Path, header: Sequence[str], mapping: FileMapping) -> Path:
    """Keep a mapping for the client's next file with this header; returns where. Raises `OSError`."""
    path = _place(folder, header, mapping.constants.get("client_id", ""))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = written(mapping, "Kept by clickclock import for files with these columns; delete it to be asked again.")
    new = path.with_suffix(".new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    return path


def _place(folder: Path, header: Sequence[str], client_id: str) -> Path:
    names = "\n".join([client_id, *sorted(map(folded, header))])
    return folder / f"{sha256(names.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}.toml"
