"""The files of this repository as the house tests see them.

Never looks into `.venv`, caches or the service's data: only where people write.
Invariant: every path is absolute and sorted, so that a failing test names the same file everywhere.

>>> (ROOT / "pyproject.toml").exists()
True
"""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def python_files(*folders: str) -> list[Path]:
    """Every Python file under these folders of the repository."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def markdown_files() -> list[Path]:
    """Every page: those at the top, and those under docs, examples, src and tests."""
    below = (path for folder in ("docs", "examples", "src", "tests") for path in (ROOT / folder).rglob("*.md"))
    return sorted([*ROOT.glob("*.md"), *below])


def name(path: Path) -> str:
    """A path as a person would say it, from the top of the repository."""
    return path.relative_to(ROOT).as_posix()


def tree(path: Path) -> ast.Module:
    """A Python file, parsed."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=name(path))
