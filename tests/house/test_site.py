"""The documentation as a site: it builds without a warning, every page has its place, and nothing comes from elsewhere.

Never opens the site: a page that builds is shown by any browser.
Invariant: pages of decisions are found by their index, and all others by the navigation.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.house.tree import ROOT

LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(https?://[^\"'\s>]+)")


def _pages(entry: Any) -> list[str]:
    """The pages that one entry of the navigation holds."""
    if isinstance(entry, str):
        return [entry]
    return [page for each in (entry.values() if isinstance(entry, dict) else entry) for page in _pages(each)]


def test_every_page_has_its_place_in_the_navigation() -> None:
    settings = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    decisions = {page for page in pages if re.match(r"adr/\d", page)}
    assert sorted(_pages(settings["project"]["nav"])) == sorted(pages - decisions)


def test_the_first_page_leads_to_every_other() -> None:
    settings = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    linked = re.findall(r"\]\(([\w/-]+\.md)\)", (ROOT / "docs/index.md").read_text(encoding="utf-8"))
    assert set(linked) == set(_pages(settings["project"]["nav"])) - {"index.md"}


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "build/site").rglob("*.html"))
    assert len(pages) > 70
    elsewhere = {match for page in pages for match in LOADED.findall(page.read_text(encoding="utf-8"))}
    assert {each for each in elsewhere if "clickclock" not in each} == set()
