"""What the code imports and what `pyproject.toml` declares are the same packages.

Never imports the code: it is read. Invariant: a package that is declared and not imported has its reason here.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import distribution, packages_distributions

from clickclock.foundation.extras import MODULES
from tests.house.tree import ROOT, python_files, tree

NOT_IMPORTED = {
    "packaging": "ibis imports it and does not declare it",
    "pandas": "pyspark's mapInArrow imports it and does not declare it",
    "tzdata": "zoneinfo reads it where the machine has no time zones",
}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _tops() -> Mapping[str, Sequence[str]]:
    return packages_distributions()


def _home(module: str) -> str:
    """The package that brings a module; of several that share its first name, the one that has its file."""
    homes = _tops().get(module.partition(".")[0], [f"{module}, which is not installed"])
    path = module.replace(".", "/")
    having = [each for each in homes if len(homes) > 1 and _has(each, (f"{path}.py", f"{path}/__init__.py"))]
    return _plain((having or homes)[0])


def _has(package: str, paths: Sequence[str]) -> bool:
    return any(str(each) in paths for each in distribution(package).files or ())


def _imported() -> set[str]:
    """Modules of others, wherever in a file they are imported."""
    nodes = [node for file in python_files("src") for node in ast.walk(tree(file))]
    full = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    full |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    ours = {"clickclock"} | sys.stdlib_module_names
    return {name for name in full if name.partition(".")[0] not in ours}


def test_every_import_is_declared_and_nothing_is_declared_for_nothing() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: each for name, each in project["optional-dependencies"].items() if name != "all"}
    required = [*project["dependencies"], *(each for extra in extras.values() for each in extra)]
    declared = {_plain(re.split(r"[\[<>=;, ]", each, maxsplit=1)[0]) for each in required}
    imported = {_home(module) for module in _imported()}
    assert imported == declared - NOT_IMPORTED.keys()
    assert declared >= NOT_IMPORTED.keys()


def test_a_missing_part_is_known_by_what_its_extra_brings() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert extras.pop("all") == [f"clickclock[{','.join(extras)}]"]
    for extra, requirements in extras.items():
        brought = {_plain(re.split(r"[\[<>=;, ]", each, maxsplit=1)[0]) for each in requirements}
        assert {_home(module) for module in MODULES[extra]} == brought
