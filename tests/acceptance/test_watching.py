"""The guide to Grafana, command by command, on a service that wants tokens; and what Prometheus' own checker says.

Each alert of the rules has a story here: numbers of a healthy installation, of which some go wrong.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.acceptance.service import running
from tests.house.tree import ROOT

GUIDE = ROOT / "docs/how-to/watch-it-with-grafana.md"
RULES = ROOT / "deploy/monitoring/rules.yaml"
MINUTES = 180
OURS = 'job="clickclock", instance="s-1:8080"'
COLLECTOR = 'job="clickclock-collectors", instance="s-1:8081"'
JOB = "/schedulerService/job"

Series = dict[str, str]


def _steady(value: float) -> str:
    """A gauge that stays."""
    return f"{value:g}x{MINUTES}"


def _rising(by: float) -> str:
    """A counter that rises by so much each minute."""
    return f"0+{by:g}x{MINUTES}"


def _histogram(name: str, labels: str, *, slow: bool) -> Series:
    """A hundred observations each minute, a tenth of which are slow."""
    buckets = {"0.05": 90 if slow else 100, "0.5": 90 if slow else 100, "10": 100, "+Inf": 100}
    return {f'{name}_bucket{{{labels}, le="{bound}"}}': _rising(count) for bound, count in buckets.items()}


HEALTHY: Series = {
    f'clickclock_build_info{{{OURS}, version="1"}}': _steady(1),
    f'clickclock_findings{{{OURS}, code="stalledLoop", severity="fail"}}': _steady(0),
    f'clickclock_findings{{{OURS}, code="backupTooOld", severity="warn"}}': _steady(0),
    f"clickclock_scan_timestamp_seconds{{{OURS}}}": _rising(60),
    **_histogram("clickclock_trigger_lag_seconds", OURS, slow=False),
    **_histogram("clickclock_store_write_duration_seconds", OURS, slow=False),
    **_histogram("clickclock_kept_seconds", COLLECTOR, slow=False),
    f'clickclock_http_requests_total{{{OURS}, method="GET", path="{JOB}", status="500"}}': _rising(1),
    f"process_open_fds{{{OURS}}}": _steady(50),
    f"process_max_fds{{{OURS}}}": _steady(1024),
    'process_open_fds{job="another", instance="other:9100"}': _steady(1000),
    'process_max_fds{job="another", instance="other:9100"}': _steady(1024),
    f"clickclock_connections{{{COLLECTOR}}}": _steady(3),
    f'clickclock_refused_total{{{COLLECTOR}, limit="disk"}}': _steady(7),
    f'clickclock_clicks_total{{{COLLECTOR}, profile="open"}}': _rising(100),
    f'clickclock_rejections_total{{{COLLECTOR}, what="click"}}': _rising(10),
}
"""Also one that is busy: refusals of the past, a fault now and then, and another's process that is nearly full."""
WRONG: dict[str, tuple[Series, dict[str, str]]] = {
    "ClickclockIsDown": ({f'clickclock_build_info{{{OURS}, version="1"}}': "1x60"}, {}),
    "ClickclockHasAFinding": (
        {f'clickclock_findings{{{OURS}, code="stalledLoop", severity="fail"}}': _steady(1)},
        {"code": "stalledLoop"},
    ),
    "ClickclockHasAWarning": (
        {f'clickclock_findings{{{OURS}, code="backupTooOld", severity="warn"}}': _steady(1)},
        {"code": "backupTooOld"},
    ),
    "ClickclockDoesNotLook": (
        {f"clickclock_scan_timestamp_seconds{{{OURS}}}": _steady(3600)},
        {"job": "clickclock", "instance": "s-1:8080"},
    ),
    "ClickclockStartsLate": (_histogram("clickclock_trigger_lag_seconds", OURS, slow=True), {}),
    "ClickclockStoreIsSlow": (
        _histogram("clickclock_store_write_duration_seconds", OURS, slow=True),
        {"instance": "s-1:8080"},
    ),
    "ClickclockTakesNoClicks": ({f"clickclock_connections{{{COLLECTOR}}}": "3x60"}, {}),
    "ClickclockTurnsClicksAway": (
        {f'clickclock_refused_total{{{COLLECTOR}, limit="disk"}}': _rising(1)},
        {"job": "clickclock-collectors", "instance": "s-1:8081"},
    ),
    "ClickclockRejectsClicks": ({f'clickclock_rejections_total{{{COLLECTOR}, what="click"}}': _rising(30)}, {}),
    "ClickclockKeepsClicksSlowly": (_histogram("clickclock_kept_seconds", COLLECTOR, slow=True), {}),
    "ClickclockRefusesRequests": (
        {f'clickclock_http_requests_total{{{OURS}, method="GET", path="{JOB}", status="500"}}': _rising(9)},
        {"path": JOB},
    ),
    "ClickclockHasFewFilesLeft": (
        {f"process_open_fds{{{OURS}}}": _steady(1000)},
        {"job": "clickclock", "instance": "s-1:8080"},
    ),
}
"""Of each alert: what goes wrong, and the labels with which it is raised then."""


def _promtool(*arguments: str, said: str = "") -> str:
    done = subprocess.run(["promtool", *arguments], input=said, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.needs("curl")
def test_the_guide_gives_prometheus_a_token_and_shows_the_metrics(tmp_path: Path) -> None:
    commands = re.findall(r"^\$ (.+)$", GUIDE.read_text(), re.MULTILINE)
    with running(tmp_path / "clickclock-data", "--authentication", "tokens") as service:
        script = "\n".join(["set -e", *commands]).replace("http://127.0.0.1:8080", service.url)
        done = subprocess.run(
            ["sh", "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert re.search(r'^clickclock_build_info\{version="[^"]+",commit="[^"]+",python="3', done.stdout, re.MULTILINE)


@pytest.mark.needs("promtool")
def test_prometheus_own_checker_finds_no_fault_in_what_both_ports_show(tmp_path: Path) -> None:
    with running(tmp_path, "--clicks", "--click-profile", "open", "--click-port", "0") as service:
        httpx.get(
            f"{service.click_url}/aclick", params={"client_id": "c", "cli_ubid": "u", "event_time": "1790000000000"}
        )
        for url in (service.url, service.click_url):
            page = httpx.get(f"{url}/metrics").raise_for_status().text
            assert page.count("# TYPE clickclock_") > 10
            _promtool("check", "metrics", said=page)


def _told(rule: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    """An alert as promtool expects it: its texts name the labels."""
    texts = {
        name: re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels[found[1]], text)
        for name, text in rule["annotations"].items()
    }
    return {"exp_labels": {**rule["labels"], **labels}, "exp_annotations": texts}


@pytest.mark.needs("promtool")
def test_an_alert_is_raised_by_what_it_is_for_and_by_nothing_else(tmp_path: Path) -> None:
    _promtool("check", "rules", str(RULES))
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    alerts = {rule["alert"]: rule for rule in rules if "alert" in rule}
    assert WRONG.keys() == alerts.keys()
    stories = {"": (HEALTHY, {}), **{name: (HEALTHY | wrong, labels) for name, (wrong, labels) in WRONG.items()}}
    tests = [
        {
            "name": story or "healthy",
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "alert_rule_test": [
                {
                    "eval_time": f"{MINUTES - 1}m",
                    "alertname": name,
                    "exp_alerts": [_told(rule, labels)] if name == story else [],
                }
                for name, rule in alerts.items()
            ],
        }
        for story, (series, labels) in stories.items()
    ]
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    _promtool("test", "rules", str(file))
