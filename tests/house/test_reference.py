"""The reference says what the code does: every setting, and every state and transition."""

import json
import re

from clickclock.app.doctor.check import CHECKS
from clickclock.attribution.clicks.click import Flag
from clickclock.attribution.clicks.consent import DENIED, GRANTED, KEPT
from clickclock.attribution.clicks.query import Reason
from clickclock.attribution.files.counters import FAMILIES
from clickclock.foundation.config import Config
from clickclock.scheduler.api.metrics import Measures
from clickclock.scheduler.declarations.declaration_schema import declaration_schema
from clickclock.scheduler.executors.kubernetes.options import KubernetesOptions
from clickclock.scheduler.insight.finding import RULES, FindingCode
from clickclock.scheduler.jobs.trigger import TRANSITIONS
from tests.house.tree import ROOT


def test_every_setting_is_in_the_reference_with_its_name() -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `(\w+)` \|", page.replace(_kubernetes(page), ""), flags=re.MULTILINE))
    assert described == set(Config.model_fields)


def test_every_option_of_a_kubernetes_cluster_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", _kubernetes(page), flags=re.MULTILINE)) == set(
        KubernetesOptions.model_fields
    )


def test_every_default_that_the_reference_names_is_the_true_one() -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    wrong = {
        name: told
        for text, model in ((page.replace(_kubernetes(page), ""), Config), (_kubernetes(page), KubernetesOptions))
        for name, told in re.findall(r"^\| `(\w+)` \| ((?:`[^`]+`(?:, )?)+) \|", text, flags=re.MULTILINE)
        if told != _written(model.model_fields[name].default)
    }
    assert wrong == {}


def _written(default: object) -> str:
    """A default as the page writes it."""
    values = default if isinstance(default, tuple) else (default,)
    return ", ".join(
        f"`{str(each).lower() if isinstance(each, bool) else f'{each:g}' if isinstance(each, float) else each}`"
        for each in values
    )


def _kubernetes(page: str) -> str:
    return page.partition("### Kubernetes")[2].partition("\n## ")[0]


def _codes(page: str, heading: str) -> set[str]:
    """What the first column of the table under a heading names."""
    text = (ROOT / "docs/reference" / page).read_text(encoding="utf-8")
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert section is not None
    return set(re.findall(r"^\| `(\w+)` \|", section.group(1), flags=re.MULTILINE))


def test_every_flag_and_every_fault_of_a_click_is_in_the_reference() -> None:
    assert _codes("clicks.md", "Flags") == set(Flag)
    assert _codes("clicks.md", "Faults") == set(Reason)


def test_the_words_of_consent_and_what_is_kept_without_it_are_in_the_reference() -> None:
    text = (ROOT / "docs/reference/clicks.md").read_text(encoding="utf-8")
    section = text.partition("\n## Consent\n")[2].partition("\n## ")[0]
    _, *rows = (frozenset(re.findall("`([^`]+)`", row)) for row in re.findall(r"(?m)^\| (`[^|]+) \|", section))
    assert rows == [GRANTED, DENIED]
    kept = section.partition("**What is kept without consent**")[2].partition(";")[0]
    assert set(re.findall("`([^`]+)`", kept)) == {*KEPT, "consent=denied"}


def test_every_metric_is_in_the_reference() -> None:
    uncounted = {"clickclock_start_time_seconds", "clickclock_collector_build_info"}
    assert _codes("collector.md", "Metrics") == {family.name for family in FAMILIES} | uncounted


def test_every_finding_metric_and_check_is_in_the_reference() -> None:
    assert _codes("findings.md", "Findings") == set(RULES) == set(FindingCode)
    assert _codes("findings.md", "Metrics") == {family.name for family in Measures.families_of("")}
    assert _codes("findings.md", "Checks") == set(CHECKS)
    page = (ROOT / "docs/reference/findings.md").read_text(encoding="utf-8")
    assert [rule.remedy for rule in RULES.values() if rule.remedy not in page] == []


def test_the_state_diagram_is_printed_from_the_table() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- states:.*?-->\n(.*?)<!-- /states -->", page, flags=re.DOTALL)
    assert shown is not None
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> queued"]
    lines += [f"    {state} --> {after}" for state, allowed in TRANSITIONS.items() for after in sorted(allowed)]
    assert shown.group(1) == "\n".join([*lines, "```", ""])


def test_the_schema_of_files_in_the_reference_is_the_one_that_the_program_prints() -> None:
    kept = json.loads((ROOT / "docs/reference/clickclock.schema.json").read_text(encoding="utf-8"))
    assert kept == declaration_schema()
