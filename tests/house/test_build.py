"""The Makefile, the locked requirements and the gate do what the README promises.

Never installs anything: make is asked what it would do (`--dry-run`) in a copy that holds no code.
Invariant: the copy is thrown away; the repository's own .venv is not looked at.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import LONG
from tests.house.tree import ROOT

TARGETS = ("help", "install", "run", "test", "lint", "bench", "format", "lock", "release", "clean")
LOCKS = ("run", "dev", "bench")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """What make looks at, and nothing else."""
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    for file in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / file, tmp_path)
    return tmp_path


def _make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make as from a shell, even where make itself runs the suite."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("target", TARGETS)
def test_make_has_the_target_and_help_explains_it(copy: Path, target: str) -> None:
    assert _make(copy, "--dry-run", target).returncode == 0
    assert re.search(rf"^make {target} +\S", _make(copy, "help").stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("target", "lock"),
    [("install", "dev"), ("test", "dev"), ("lint", "dev"), ("run", "run"), ("bench", "bench"), ("release", "release")],
)
def test_a_fresh_machine_installs_hashed_requirements_first(copy: Path, target: str, lock: str) -> None:
    planned = _make(copy, "--dry-run", target).stdout
    assert "-m venv" in planned
    assert f"pip install --quiet --require-hashes -r requirements/{lock}.txt" in planned
    assert "--no-deps --no-build-isolation -e ." in planned


@pytest.mark.parametrize("changed", ["requirements/dev.txt", "pyproject.toml"])
def test_a_second_make_installs_nothing_until_something_changes(copy: Path, changed: str) -> None:
    (copy / ".venv/bin").mkdir(parents=True)
    assert _make(copy, "--touch", "install").returncode == 0
    assert "pip install" not in _make(copy, "--dry-run", "test").stdout
    with (copy / changed).open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert "pip install" in _make(copy, "--dry-run", "test").stdout


def test_an_unfit_python_is_refused_with_what_to_do(copy: Path) -> None:
    refused = _make(copy, "install", "PYTHON=false")
    assert refused.returncode != 0
    assert "needs Python 3.11 or newer" in refused.stderr
    assert "make install PYTHON=" in refused.stderr


@pytest.mark.parametrize("lock", [*LOCKS, "release"])
def test_every_locked_requirement_has_hashes_and_no_address(lock: str) -> None:
    text = (ROOT / f"requirements/{lock}.txt").read_text(encoding="utf-8")
    entries = text.replace("\\\n", " ").strip().splitlines()
    hashed = re.compile(r"[a-z0-9-]+(\[[a-z,]+\])?==\S+( ; [^\\]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*")
    assert [entry for entry in entries if not hashed.fullmatch(entry)] == []
    assert "://" not in text
    assert "--index" not in text


def test_a_package_has_one_version_in_every_lock() -> None:
    run, dev, bench = (_pins(lock) for lock in LOCKS)
    assert run.items() <= dev.items() <= bench.items()


def test_the_gate_can_be_run() -> None:
    gate = ROOT / ".ci/run"
    assert os.access(gate, os.X_OK)
    assert subprocess.run(["bash", "-n", gate], check=False).returncode == 0


def _pins(lock: str) -> dict[str, str]:
    text = (ROOT / f"requirements/{lock}.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)(?:\[[a-z,]+\])?==(\S+)", text, re.MULTILINE))


def test_the_files_that_begin_first_are_there() -> None:
    assert [name for name in LONG if not (ROOT / "tests" / f"{name}.py").exists()] == []
