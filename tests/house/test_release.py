"""The release procedure: what it refuses, and that the wheel is the same each time it is built.

Never publishes anything, and asks no network: the bill of materials and the advisories are left to `make release`.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from clickclock.foundation.commit import commit
from tests.house.tree import ROOT

AUTHOR = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
SAID = "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-11-26\n\n- It is there.\n"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A repository of one commit, with what a wheel is made of."""
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".ci/release"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "src/clickclock").mkdir(parents=True)
    shutil.copy(ROOT / "src/clickclock/__init__.py", tmp_path / "src/clickclock")
    (tmp_path / "CHANGELOG.md").write_text(SAID)
    (tmp_path / ".gitignore").write_text("dist/\n")
    _git(tmp_path, "init", "--quiet")
    _commit(tmp_path)
    return tmp_path


def _git(folder: Path, *words: str) -> str:
    environment = {**os.environ, **AUTHOR}
    return subprocess.run(
        ["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


def _commit(folder: Path) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "one")


def _release(folder: Path, step: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ".ci/release", step]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_release_whose_changelog_has_its_version_is_well(copy: Path) -> None:
    done = _release(copy, "changelog")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("## [Unreleased]\n\n- New.\n", "has no section [0.1.0]"),
        ("## [0.1.0]\n\n- New.\n", "has no day"),
        ("## [0.1.0] - 2026-11-26\n", "says nothing"),
        ("## [Unreleased]\n\n- More.\n\n## [0.1.0] - 2026-11-26\n\n- New.\n", "more under [Unreleased]"),
    ],
)
def test_a_changelog_that_does_not_fit_is_refused_with_what_to_write(copy: Path, text: str, said: str) -> None:
    (copy / "CHANGELOG.md").write_text(f"# Changelog\n\n{text}")
    _commit(copy)
    done = _release(copy, "changelog")
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr


def test_what_is_not_committed_is_in_no_release(copy: Path) -> None:
    (copy / "CHANGELOG.md").write_text("changed")
    done = _release(copy, "changelog")
    assert done.returncode == 1
    assert "not committed: 1, the first is CHANGELOG.md" in done.stderr


def test_the_wheel_is_the_same_twice_and_knows_its_commit(copy: Path) -> None:
    done = _release(copy, "wheel")
    assert (done.returncode, done.stderr) == (0, "")
    (wheel,) = (copy / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("clickclock/commit").decode() == _git(copy, "rev-parse", "HEAD")


def test_a_checkout_knows_its_commit_without_git(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickclock.foundation.commit._PACKAGE", copy / "src/clickclock")
    at = _git(copy, "rev-parse", "HEAD").strip()
    assert commit() == at
    _git(copy, "pack-refs", "--all")
    assert commit() == at
    _git(copy, "checkout", "--quiet", "--detach")
    assert commit() == at
    _git(copy, "worktree", "add", "--quiet", "-b", "other", str(copy / "beside"))
    monkeypatch.setattr("clickclock.foundation.commit._PACKAGE", copy / "beside/src/clickclock")
    assert commit() == at
    shutil.rmtree(copy / "beside")
    assert commit() is None


def test_the_version_names_the_commit_and_python() -> None:
    command = [sys.executable, "-m", "clickclock.cli", "--version"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"clickclock, version \d+\.\d+\.\d+ \((commit [0-9a-f]{12}, )?Python 3\.\d+\.\d+\S*\)\n", told)
