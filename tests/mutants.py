"""Changes of important lines, each made in a copy of the tree: the nearest tests have to notice it (`make mutants`).

Never touches the tree itself. Invariants: every change is one of `mutants.toml`, whose old text stands exactly once in
its file; the nearest tests pass without a change, or their failing would prove nothing.

    python -m tests.mutants             all of them; exits with 1 if one lives
    python -m tests.mutants window      those whose reason or file has that word
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests/mutants.toml"
AT_ONCE = 2
WITHIN_S = 300
"""Tests that take longer hang because of the change: that is noticed, too."""
_TIMES_S = count(1_000_000_000)
COPIED = ("src", "tests", "docs", "examples", "deploy", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: what it would do, where, and which tests are nearest."""

    why: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def mutants() -> list[Mutant]:
    """All of the list, in its order."""
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutants"]
    return [Mutant(**{**each, "tests": tuple(each["tests"])}) for each in listed]


def copy_of_the_tree(folder: Path) -> Path:
    """A copy in which a change harms nobody."""
    for name in COPIED:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(place, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(place, folder / name)
    return folder


def passes(tree: Path, tests: Sequence[str]) -> bool:
    """Whether these tests pass in this tree."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tree}/scratch",
        *tests,
    ]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, check=False, timeout=WITHIN_S)
    except subprocess.TimeoutExpired:
        return False
    # Anything but "passed" and "a test failed" is no verdict: a mistake in the list itself.
    if done.returncode not in {0, 1}:
        raise SystemExit(f"pytest {' '.join(tests)} ended with {done.returncode}:\n{done.stdout.decode()[-2000:]}")
    return done.returncode == 0


def lives(tree: Path, mutant: Mutant) -> bool:
    """Whether no test notices the change."""
    file = tree / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.file}: the old text of “{mutant.why}” has to stand there exactly once.")
    _write(file, text.replace(mutant.old, mutant.new))
    try:
        return passes(tree, mutant.tests)
    finally:
        _write(file, text)


def _write(file: Path, text: str) -> None:
    """With a time of change that no other text of it had: Python knows by that which compiled file is out of date."""
    file.write_text(text, encoding="utf-8")
    at_s = next(_TIMES_S)
    os.utime(file, (at_s, at_s))


def main(words: Sequence[str]) -> int:
    """Make them all, two at once; the number of those that live."""
    wanted = [each for each in mutants() if all(word in f"{each.why} {each.file}" for word in words)]
    begun_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees: Queue[Path] = Queue()
        for number in range(AT_ONCE):
            trees.put(copy_of_the_tree(Path(folder) / str(number)))

        def in_a_tree(work: Mutant | tuple[str, ...]) -> bool:
            tree = trees.get()
            try:
                verdict = lives(tree, work) if isinstance(work, Mutant) else not passes(tree, work)
            finally:
                trees.put(tree)
            if isinstance(work, Mutant):
                print(f"{'LIVES ' if verdict else 'killed'}  {work.file}: {work.why}", flush=True)
            elif verdict:
                print(f"FAILS without a change: {' '.join(work)}", flush=True)
            return verdict

        with ThreadPoolExecutor(AT_ONCE) as pool:
            broken = sum(pool.map(in_a_tree, dict.fromkeys(each.tests for each in wanted)))
            alive = sum(pool.map(in_a_tree, wanted))
    print(f"{len(wanted)} changes, {alive} not noticed, in {time.monotonic() - begun_s:.0f} s.")
    return min(alive + broken, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
