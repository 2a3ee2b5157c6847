"""Every class of error is met by some test: by its name, or by its code in an answer.

A guard that no test makes fail may be deleted, and nobody notices. Never runs anything: it reads the trees.
"""

import ast
from functools import cache
from pathlib import Path

from tests.house.tree import name, python_files, tree

ROOT_CLASS = "ClickclockError"
BRANCHES = {ROOT_CLASS, "Transient", "Permanent"}
"""They only say whether trying again can help: nobody raises them."""


@cache
def errors() -> dict[str, tuple[Path, ast.ClassDef]]:
    """Every class of error of the product, by name."""
    classes = [
        (path, each) for path in python_files("src") for each in ast.walk(tree(path)) if isinstance(each, ast.ClassDef)
    ]
    found: dict[str, tuple[Path, ast.ClassDef]] = {}
    while True:
        known = {ROOT_CLASS, *found}
        fresh = {
            each.name: (path, each)
            for path, each in classes
            if each.name not in found and known & {base.id for base in each.bases if isinstance(base, ast.Name)}
        }
        if not fresh:
            return found
        found |= fresh


def code_of(error: ast.ClassDef) -> str | None:
    """The code that answers have, if the class says one of its own."""
    for each in error.body:
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
            return each.value.value
    return None


@cache
def met() -> frozenset[str]:
    """Names and texts that tests mention, imports and this house aside."""
    found: set[str] = set()
    for path in python_files("tests"):
        if path.parent.name == "house":
            continue
        for each in ast.walk(tree(path)):
            match each:
                case ast.Name(id=word) | ast.Attribute(attr=word) | ast.Constant(value=str(word)):
                    found.add(word)
    return frozenset(found)


def test_every_error_is_raised_by_some_test() -> None:
    unmet = [
        f"{name(path)}: {error}"
        for error, (path, class_) in errors().items()
        if error not in BRANCHES and not error.startswith("_") and not {error, code_of(class_)} & met()
    ]
    assert unmet == []


def test_the_tree_is_seen() -> None:
    assert {"Invalid", "JobNotFound", "ErasureUnfinished", "Undelivered"} <= errors().keys()
