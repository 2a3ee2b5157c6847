"""The list of changes that tests have to notice is about this tree: each old text stands exactly once in its file."""

import pytest

from tests.house.tree import ROOT
from tests.mutants import Mutant, mutants

CHANGES_MIN = 30


@pytest.mark.parametrize("mutant", mutants(), ids=lambda each: each.why)
def test_what_is_to_be_changed_is_there_once_and_its_tests_too(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
    assert mutant.old != mutant.new
    files = [each for each in mutant.tests if each.endswith(".py")]
    assert files
    assert [each for each in files if not (ROOT / each).exists()] == []


def test_there_are_as_many_as_were_promised() -> None:
    assert len(mutants()) >= CHANGES_MIN
