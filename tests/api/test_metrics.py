"""The page of metrics: what Prometheus reads of it, that it stays short, and that what is watched exists."""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

import httpx
import yaml
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from clickclock.attribution.api import metrics as of_collectors
from clickclock.attribution.files.counters import FAMILIES
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.measure import Family, text
from clickclock.scheduler.api.metrics import Measures
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.insight.statistics import Ending
from clickclock.scheduler.jobs.trigger import State

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "deploy/monitoring"
ADDRESS = "http://127.0.0.1/metrics"
UNITS = ("_seconds", "_bytes", "_total", "_info", "_fds")
COUNTED = {"clickclock_findings", "clickclock_triggers", "clickclock_jobs", "clickclock_schedules"}
COUNTED_BY_COLLECTORS = {"clickclock_connections", "clickclock_waiting"}


def _read(page: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(page)}


def _value(page: str, name: str, **labels: str) -> float:
    (found,) = [
        sample.value
        for family in _read(page).values()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return found


async def test_what_ended_is_counted_once_with_its_lag_and_its_duration(
    http: httpx.AsyncClient, engine: Engine, clock: ManualClock
) -> None:
    ended = Ending("shop", "export", State.SUCCEEDED, clock.now(), duration_ms=700.0, lag_ms=3.0)
    skipped = Ending("shop", "export", State.SKIPPED, clock.now(), count=4)
    engine.store.statistics.on_counted([ended, ended, skipped])
    page = (await http.get(ADDRESS)).text
    assert _value(page, "clickclock_triggers_concluded_total", state="succeeded") == 2
    assert _value(page, "clickclock_triggers_concluded_total", state="skipped") == 4
    assert _value(page, "clickclock_trigger_lag_seconds_bucket", le="0.005") == 2
    assert _value(page, "clickclock_trigger_lag_seconds_sum") == 0.006
    assert _value(page, "clickclock_trigger_duration_seconds_bucket", le="0.5", state="succeeded") == 0
    assert _value(page, "clickclock_trigger_duration_seconds_bucket", le="1.0", state="succeeded") == 2


async def test_a_trigger_that_the_counter_counts_is_in_the_metrics(
    http: httpx.AsyncClient, engine: Engine, job: None
) -> None:
    await http.post("jobTrigger", json={"application": "shop", "jobName": "export"})
    (trigger,) = (await http.get("jobTrigger")).json()["triggers"]
    await http.delete(f"jobTrigger?triggerId={trigger['triggerId']}")
    await engine.counter.step()
    page = (await http.get(ADDRESS)).text
    assert _value(page, "clickclock_triggers_concluded_total", state="cancelled") == 1
    assert _value(page, "clickclock_store_write_duration_seconds_count") > 2
    assert _value(page, "process_open_fds") > 0
    started = _value(page, "process_start_time_seconds")
    assert abs(started - os.stat(f"/proc/{os.getpid()}").st_ctime) < 60  # noqa: PTH116 (a look at the kernel)


async def test_the_scan_counts_what_waits(http: httpx.AsyncClient, engine: Engine, job: None) -> None:
    await http.post("jobTrigger", json={"application": "shop", "jobName": "export"})
    await engine.scanner.step()
    page = (await http.get(ADDRESS)).text
    assert _value(page, "clickclock_triggers", state="queued") == 1
    assert _value(page, "clickclock_jobs") == 1


def test_a_request_counts_by_a_path_of_the_interface_and_no_other(engine: Engine) -> None:
    measures = Measures(engine, ["/schedulerService/job"])
    for path in ("/schedulerService/job", "/attribution/report", "/attribution/x", *(f"/{n}" for n in range(1000))):
        measures.answered("BREW" if path == "/1" else "GET", path, 200, 0.002)
    page = measures.text()
    samples = [s for s in _read(page)["clickclock_http_requests"].samples if s.name.endswith("_total")]
    assert {s.labels["path"] for s in samples} == {"/schedulerService/job", "/attribution/*", "other"}
    assert {s.labels["method"] for s in samples} == {"GET", "other"}
    assert sum(s.value for s in samples) == 1003


async def test_the_page_is_as_long_with_many_jobs_and_made_in_no_time(http: httpx.AsyncClient, engine: Engine) -> None:
    await http.post("job", json={"application": "a", "jobName": "first", "command": "true"})
    await engine.scanner.step()
    before = (await http.get(ADDRESS)).text
    jobs = [{"application": f"a{n}", "jobName": "j", "command": "true"} for n in range(300)]
    assert (await http.post("job", json=jobs)).status_code < 300
    await engine.scanner.step()
    after = (await http.get(ADDRESS)).text
    assert len(after.splitlines()) == len(before.splitlines())
    assert _value(after, "clickclock_jobs") == 301


def _well_named(families: Iterable[Family], counted: set[str]) -> list[str]:
    """What Prometheus' own checker would say of names, units and kinds."""
    wrong = []
    for each in families:
        if each.kind == "counter" and not each.name.endswith("_total"):
            wrong.append(f"{each.name} is a counter, and does not end with _total")
        if each.kind != "counter" and each.name.endswith("_total"):
            wrong.append(f"{each.name} is no counter, and ends with _total")
        if not each.name.endswith(UNITS) and each.name not in counted:
            wrong.append(f"{each.name} has no unit")
        if each.kind == "histogram" and (list(each.bounds) != sorted(set(each.bounds)) or "le" in each.labels):
            wrong.append(f"{each.name} has buckets that do not rise")
        if not each.meaning.endswith("."):
            wrong.append(f"{each.name} is not explained by a sentence")
    return wrong


def test_names_and_units_are_by_the_conventions_of_prometheus(engine: Engine) -> None:
    families = Measures.families_of("1")
    assert _well_named(families, COUNTED) == []
    ours = [Family(each.name, each.kind, each.meaning) for each in FAMILIES]  # type: ignore[arg-type]  # a plain text
    assert _well_named(ours, COUNTED_BY_COLLECTORS) == []
    for page in (Measures(engine, ()).text(), of_collectors.text([])):
        names = [line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")]
        assert len(names) == len(set(names)) > 0
        assert _read(page)


def test_a_label_with_a_quote_and_a_line_end_is_read_as_it_is() -> None:
    family = Family("clickclock_x_total", "counter", "X.", ("a",))
    family.add(1, 'say "\\n"\n')
    (read,) = _read(text([family])).values()
    assert read.samples[0].labels == {"a": 'say "\\n"\n'}


def test_alerts_and_the_dashboard_ask_for_metrics_and_labels_that_exist() -> None:
    labels_of = {each.name: set(each.labels) for each in Measures.families_of("")} | {
        each.name: {each.label} for each in FAMILIES
    }
    groups = yaml.safe_load((MONITORING / "rules.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    recorded = {rule["record"] for rule in rules if "record" in rule}
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [rule["expr"] for rule in rules]
    assert len(asked) > 25
    for expression in asked:
        names = set(re.findall(r"\b(?:clickclock|process)[a-z_:0-9]+", expression))
        assert names
        bare = {re.sub(r"_bucket$", "", name) for name in names - recorded}
        assert bare <= labels_of.keys(), expression
        for name, chosen in re.findall(r"\b(clickclock_\w+?)(?:_bucket)?\{([^}]+)\}", expression):
            labels = set(re.findall(r"(\w+)[=!]", chosen))
            assert labels <= {*labels_of[name], "job", "instance"}, expression
    alerts = [rule for rule in rules if "alert" in rule]
    assert all({"summary", "description"} <= rule["annotations"].keys() for rule in alerts)
    placed = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in dashboard["panels"]]
    assert len(placed) == len(set(placed))


async def test_readiness_says_what_health_says(http: httpx.AsyncClient) -> None:
    for path in ("/readyz", "/healthz", "/livez"):
        assert (await http.get(f"http://127.0.0.1{path}")).status_code == 200
