"""The pages about the models are right: what they show is what one gets, and no model, transform or setting lacks."""

import re
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest

from clickclock.attribution.models import BUILT_IN, TRANSFORMS
from tests.house.tree import ROOT

HOW_TO = (ROOT / "docs/how-to/compare-models.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs/reference/models.md").read_text(encoding="utf-8")
CALLS = re.findall(r"^```console\n\$ (.*?)\n(.*?)^```", HOW_TO, re.MULTILINE | re.DOTALL)
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", HOW_TO + REFERENCE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("call", "shown"), CALLS)
def test_each_command_prints_what_the_page_shows(call: str, shown: str, tmp_path: Path) -> None:
    program = tmp_path / "clickclock"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m clickclock.cli "$@"\n')
    program.chmod(0o755)
    command = ["sh", "-c", f"PATH={tmp_path}:$PATH; {call} 2>&1 || true"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout == shown


@pytest.mark.parametrize(("program", "shown"), PROGRAMS)
def test_each_program_prints_what_the_page_shows(program: str, shown: str) -> None:
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.rstrip() == shown.rstrip()


def _named(heading: str) -> set[str]:
    """What the first column of the table under a heading names."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", REFERENCE, re.MULTILINE | re.DOTALL)
    assert section is not None
    return set(re.findall(r"^\| `(\w+)` \|", section[1], re.MULTILINE))


def test_every_model_and_every_transform_is_in_the_reference() -> None:
    assert _named("The models") == set(BUILT_IN)
    assert _named("Transforms") == set(TRANSFORMS)


def test_every_setting_of_a_model_is_in_the_reference() -> None:
    assert _named("Settings") == {name for factory in BUILT_IN.values() for name in signature(factory).parameters}
