"""The examples in the docstrings of the source are true."""

import doctest
import importlib
from pathlib import Path

import pytest

from tests.house.tree import name, python_files

SHOWING = [
    path for path in python_files("src") if path.stem != "__main__" and ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("path", SHOWING, ids=name)
def test_every_example_in_a_docstring_is_true(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dotted = ".".join(Path(name(path)).with_suffix("").parts[1:])
    failed = doctest.testmod(importlib.import_module(dotted.removesuffix(".__init__"))).failed
    assert failed == 0, capsys.readouterr().out
