"""STYLE.md as tests: what a machine can see of the habits.

Never judges taste: what is here is countable, and each rule has its reason in STYLE.md.
Invariant: a failing test lists every place at fault, not only the first.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator

import pytest

from tests.house.tree import ROOT, name, python_files, tree

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
WORDS_OF_A_REASON = 2
NAMES_THAT_SAY_NOTHING = {"utils", "util", "common", "helpers", "helper", "manager", "handler", "handlers", "misc"}
# Written with brackets so that this file is not among those it finds.
UNFINISHED = re.compile(r"T[O]DO|FI[X]ME|X[X]X|NotImplemente[d]Error|mark\.ski[p]\b|assert Tru[e]\b")
WAITING_ON_SECONDS = {"time.sleep", "asyncio.sleep", "anyio.sleep"}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

SRC = python_files("src")
TESTS = python_files("tests")


def test_no_file_in_src_outgrows_its_room() -> None:
    lines = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SRC}
    assert {path: count for path, count in lines.items() if count > FILE_LINES_MAX} == {}


def test_no_function_in_src_outgrows_a_screen() -> None:
    long = [
        f"{name(path)}:{node.lineno} {node.name} has {size} lines"
        for path in SRC
        if "migrations/versions" not in path.as_posix()  # a list of what was done once, in order
        for node in ast.walk(tree(path))
        if isinstance(node, DEFINITIONS) and (size := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert long == []


def test_every_module_in_src_says_what_it_is() -> None:
    assert [name(path) for path in SRC if not ast.get_docstring(tree(path))] == []


def test_every_file_and_folder_has_a_name_that_says_something() -> None:
    paths = [path.relative_to(ROOT) for path in (*SRC, *TESTS)]
    assert [str(path) for path in paths if NAMES_THAT_SAY_NOTHING & {*path.parent.parts, path.stem}] == []


def test_nothing_is_unfinished_or_switched_off() -> None:
    found = [
        f"{name(path)}:{number} {line.strip()}"
        for path in (*SRC, *TESTS)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if UNFINISHED.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("folder", ["unit", "contract", "agents", "api", "simulation", "house"])
def test_tests_wait_on_facts_and_not_on_seconds(folder: str) -> None:
    found = [
        f"{name(path)}:{line}"
        for path in python_files(f"tests/{folder}")
        for line, called in _calls(tree(path))
        if called in WAITING_ON_SECONDS
    ]
    assert found == []


def test_the_finder_of_sleeps_sees_through_an_import() -> None:
    assert list(_calls(ast.parse("from asyncio import sleep as rest\nrest(1)\n"))) == [(2, "asyncio.sleep")]


def test_no_test_mocks_our_own_code() -> None:
    assert [name(path) for path in TESTS if "unittest.mock" in set(_imports(tree(path)))] == []


def test_the_supervisor_needs_the_standard_library_the_clock_and_the_seal() -> None:
    """It outlives upgrades of the service, so it must not need what an upgrade replaces."""
    package = "clickclock.scheduler.supervisor"
    own = [path.stem for path in (ROOT / "src" / package.replace(".", "/")).glob("[a-z]*.py")]
    program = [
        "import sys",
        "import importlib",
        "sys.path.insert(0, 'src')",
        *(f"importlib.import_module('{package}.{module}')" for module in own),
        "print(*sys.modules)",
    ]
    bare = [sys.executable, "-I", "-S", "-c", "\n".join(program)]
    loaded = set(subprocess.run(bare, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())
    outside = {module for module in loaded if module.partition(".")[0] not in sys.stdlib_module_names}
    ours = {
        module
        for module in outside
        if module.startswith((package, "clickclock.foundation.clock", "clickclock.foundation.seal"))
    }
    folders = {"clickclock", "clickclock.foundation", "clickclock.scheduler"}
    assert own
    assert outside - ours - folders - {"__main__", "__mp_main__"} == set()


def test_every_noun_is_held_to_purity() -> None:
    """The layers under the doors and the contract that forbids I/O name the same rooms."""
    contracts = _contracts()
    nouns = set()
    for service, lowest_door in (("scheduler", "supervisor"), ("attribution", "journal")):
        layers = contracts[service]["layers"]
        lowest = next(place for place, layer in enumerate(layers) if lowest_door in layer)
        rooms = {room for layer in layers[lowest + 1 :] for room in re.findall(r"\w+", layer)}
        nouns |= {f"clickclock.{service}.{room}" for room in rooms}
    assert set(contracts["nouns"]["source_modules"]) == nouns


def test_every_rule_switched_off_says_why() -> None:
    """On that line, or in a comment on the line above."""
    switched_off = re.compile(r"#\s*(?:ruff: )?(?:noqa|type: ignore)(?P<rest>.*)")
    found = []
    for path in SRC:
        above = ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if (match := switched_off.search(line)) and not above.lstrip().startswith("#"):
                reason = re.findall(r"[a-z]{2,}", match["rest"].rpartition("]")[2])
                if len(reason) < WORDS_OF_A_REASON:
                    found.append(f"{name(path)}:{number} {line.strip()}")
            above = line
    assert found == []


def _contracts() -> dict[str, dict[str, list[str]]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {contract["id"]: contract for contract in settings["tool"]["importlinter"]["contracts"]}


def _imports(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _calls(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Every call by its full name, `from time import sleep` seen through."""
    full = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            yield node.lineno, full.get(called, called)
