"""Of which commit this program is: as the wheel says it, or, in a checkout, as Git's own files do.

Never runs Git. Invariant: what cannot be known is None.

>>> commit() is None or len(commit()) == 40
True
"""

import re
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def commit() -> str | None:
    """40 hex digits."""
    try:
        if (told := _PACKAGE / "commit").is_file():
            return _hash(told.read_text(encoding="ascii"))
        return _checked_out(_PACKAGE.parents[1] / ".git")
    except (OSError, UnicodeDecodeError):
        return None


def _checked_out(git: Path) -> str | None:
    if git.is_file():  # of a worktree: where its own files are
        git = git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    head = (git / "HEAD").read_text(encoding="utf-8").strip()
    if not head.startswith("ref: "):
        return _hash(head)
    ref, common = head.removeprefix("ref: "), git / "commondir"
    shared = git / common.read_text(encoding="utf-8").strip() if common.is_file() else git
    for folder in (git, shared):
        if (folder / ref).is_file():
            return _hash((folder / ref).read_text(encoding="ascii"))
    packed = (shared / "packed-refs").read_text(encoding="utf-8")
    return next((_hash(line.split()[0]) for line in packed.splitlines() if line.endswith(f" {ref}")), None)


def _hash(text: str) -> str | None:
    return text.strip() if re.fullmatch(r"[0-9a-f]{40}\s*", text) else None
