"""The reference says what the code does: every setting, and every state and transition."""

import re

from clickclock.foundation.config import Config
from clickclock.scheduler.trigger import TRANSITIONS
from tests.house.tree import ROOT


def test_every_setting_is_in_the_reference_with_its_name() -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE))
    assert described == set(Config.model_fields)


def test_the_state_diagram_is_printed_from_the_table() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- states:.*?-->\n(.*?)<!-- /states -->", page, flags=re.DOTALL)
    assert shown is not None
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> queued"]
    lines += [f"    {state} --> {after}" for state, allowed in TRANSITIONS.items() for after in sorted(allowed)]
    assert shown.group(1) == "\n".join([*lines, "```", ""])
