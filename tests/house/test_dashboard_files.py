"""WEB.md as tests: what a machine can see of the dashboard's conventions.

Invariant: a failing test lists every place at fault, not only the first.
"""

import hashlib
import re
from pathlib import Path

from tests.house.tree import ROOT, markdown_files, name

STATIC = ROOT / "src/clickclock/web/static"
VENDOR = STATIC / "vendor"
LINES_MAX = 250
IMAGE_BYTES_MAX = 200_000
PUBLISHED = {
    "LICENSE": "2b66f9390afde29e",
    "directive-helpers.js": "f7fb1154b8f72ed2",
    "directive.js": "3344c4f41c69cd07",
    "directives/guard.js": "8534c98865e29fb6",
    "directives/live.js": "b305f9066319d838",
    "directives/repeat.js": "083140026ecd8665",
    "lit-html.js": "b878e7f95dec8a9b",
}
"""SHA-256 of each file of the package lit-html 3.3.3, as it was published."""
COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b(?=[;,)\s])|\blight-dark\(|\brgba?\(|\bhsl")
ONLY_IN = {
    r"\bfetch\(": {"core/api.js", "core/live.js", "core/log-worker.js"},
    r"\bIntl\.|\btoLocale(?:Time|Date)": {"core/time.js"},
    r"\blocalStorage\b": {"core/time.js", "core/keep.js"},
    r"\binnerHTML\b|\bunsafeHTML\b|\beval\(|\bnew Function\b|\bdocument\.write": set[str](),
    r"\bstyle=[\"']": set[str](),
}
"""What may be written only in these files. A `style` attribute is refused by the policy: set the property `.style`."""


def _own(*suffixes: str) -> list[Path]:
    return sorted(path for path in STATIC.rglob("*") if path.suffix in suffixes and VENDOR not in path.parents)


def test_no_file_of_the_dashboard_outgrows_its_room() -> None:
    lines = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in _own(".js", ".css")}
    assert {path: count for path, count in lines.items() if count > LINES_MAX} == {}


def test_only_the_tokens_name_a_colour() -> None:
    found = [
        f"{name(path)}:{number} {line.strip()}"
        for path in _own(".css", ".js")
        if path.name != "tokens.css"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if COLOUR.search(line)
    ]
    assert found == []


def test_asking_formatting_and_keeping_have_one_place_each() -> None:
    found = [
        f"{name(path)}:{number} {line.strip()}"
        for path in _own(".js", ".html")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for pattern, places in ONLY_IN.items()
        if re.search(pattern, line.partition("//")[0] if "://" not in line else line)
        and path.relative_to(STATIC).as_posix() not in places
    ]
    assert found == []


def test_every_import_leads_to_a_file_of_the_package() -> None:
    wanted = re.compile(r'(?:^import [^;]*?from|^import|\bimport\()\s*"([^"]+)"', re.MULTILINE)
    found = [
        f"{name(path)}: {target}"
        for path in _own(".js")
        for target in wanted.findall(path.read_text(encoding="utf-8"))
        if not (target.startswith(".") and (path.parent / target).resolve().is_file())
    ]
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    found += [target for target in re.findall(r"\{static\}/([^\"]+)", page) if not (STATIC / target).is_file()]
    assert found == []


def test_what_others_wrote_is_what_they_published() -> None:
    found = {
        path.relative_to(VENDOR / "lit-html").as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in VENDOR.rglob("*")
        if path.is_file()
    }
    assert found == PUBLISHED


def test_every_picture_of_the_documentation_is_small_and_shown() -> None:
    shown = "".join(page.read_text(encoding="utf-8") for page in markdown_files())
    pictures = sorted((ROOT / "docs/images").iterdir())
    assert [each.name for each in pictures if each.stat().st_size > IMAGE_BYTES_MAX] == []
    assert [each.name for each in pictures if f"images/{each.name}" not in shown] == []


def test_every_page_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/dashboard.md").read_text(encoding="utf-8")
    routes = re.findall(r'\{ path: "([^"]+)"', (STATIC / "routes.js").read_text(encoding="utf-8"))
    assert [path for path in routes if f"`{path}`" not in page] == []
