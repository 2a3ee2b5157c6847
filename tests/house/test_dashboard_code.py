"""The dashboard's code has no fault that a compiler or a linter finds: TypeScript reads its JSDoc, ESLint the rest."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.tree import ROOT

pytestmark = pytest.mark.needs("npm")

STATIC = ROOT / "src/clickclock/web/static"
TYPES = ROOT / "tests/data/dashboard"
"""Settings, the tools with their hashes, and types for what others wrote."""
CODE = ("app.js", "routes.js", "core", "components", "pages")


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dashboard") / "code"
    shutil.copytree(STATIC, folder, ignore=shutil.ignore_patterns("vendor"))
    shutil.copytree(TYPES, folder, dirs_exist_ok=True)
    subprocess.run(
        ["npm", "ci", "--silent", "--no-audit", "--no-fund", "--prefer-offline"], cwd=folder, check=True, timeout=300
    )
    return folder


def said(code: Path, *command: str) -> list[str]:
    """What a tool reports, a fault a line."""
    tool = code / "node_modules/.bin" / command[0]
    done = subprocess.run([tool, *command[1:]], cwd=code, capture_output=True, text=True, timeout=300, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_its_types_agree(code: Path) -> None:
    assert said(code, "tsc", "--project", ".") == []


def test_it_is_as_the_linter_wants_it(code: Path) -> None:
    assert said(code, "eslint", "--max-warnings", "0", *CODE) == []


def test_a_call_that_fits_nothing_and_a_name_that_is_not_used_are_found(code: Path) -> None:
    wrong = code / "pages/wrong.js"
    wrong.write_text('import { change } from "../core/api.js";\nlet unused = change("PUT", "job", {}, { tag: 1 });\n')
    try:
        types, words = said(code, "tsc", "--project", "."), said(code, "eslint", *CODE)
    finally:
        wrong.unlink()
    assert any("'tag' does not exist" in line for line in types), types
    assert any("'unused' is assigned a value but never used" in line for line in words), words
