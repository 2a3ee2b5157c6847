"""The pages hold together: no link leads nowhere, no decision is unlisted, no dependency is unexplained.

Never fetches anything: links to other sites are their owners' affair.
Invariant: a heading's anchor is made as GitHub makes it, so a link that passes here works there.
"""

import re
import tomllib
from pathlib import Path
from urllib.parse import unquote

from tests.house.tree import ROOT, markdown_files, name

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def test_every_link_between_pages_leads_somewhere() -> None:
    broken = [
        f"{name(page)}: {target}"
        for page in markdown_files()
        for target in LINK.findall(_prose(page))
        if not ELSEWHERE.match(target) and not _resolves(page, target)
    ]
    assert broken == []


def test_every_room_of_both_services_is_on_the_map() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    inside = [
        path for service in ("attribution", "scheduler") for path in (ROOT / "src/clickclock" / service).iterdir()
    ]
    rooms = [f"{path.name}/" for path in inside if path.is_dir() and path.name != "__pycache__"]
    files = [path.name for path in inside if path.suffix == ".py" and path.stem not in {"__init__", "errors"}]
    assert [room for room in [*rooms, *files] if f"`{room}`" not in page] == []


def test_every_decision_is_numbered_once_and_in_the_index() -> None:
    folder = ROOT / "docs/adr"
    decisions = sorted(path.name for path in folder.glob("*.md") if path.name != "README.md")
    assert [decision[:5] for decision in decisions] == [f"{number:04}-" for number in range(1, len(decisions) + 1)]
    linked = LINK.findall((folder / "README.md").read_text(encoding="utf-8"))
    assert [target for target in linked if re.match(r"\d{4}-", target)] == decisions


def test_every_decision_says_what_why_and_what_follows() -> None:
    wanted = ["Status", "Context", "Decision", "Consequences"]
    pages = sorted((ROOT / "docs/adr").glob("[0-9]*.md"))
    missing = {
        name(page): lacking
        for page in pages
        if (lacking := [part for part in wanted if part not in HEADING.findall(page.read_text(encoding="utf-8"))])
    }
    assert missing == {}


def test_every_dependency_is_explained_and_nothing_else_is() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    # Those of `spark` are in the table of what the tests need.
    required = [
        *project["dependencies"],
        *(
            each
            for extra in ("attribution", "encryption", "oidc", "traces")
            for each in project["optional-dependencies"][extra]
        ),
    ]
    for group in settings["dependency-groups"].values():
        required += [entry for entry in group if isinstance(entry, str)]
    page = (ROOT / "docs/explanation/dependencies.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert sorted(explained) == sorted(re.split(r"[\[<>=]", entry)[0] for entry in required)


def _prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def _resolves(page: Path, target: str) -> bool:
    path, _, fragment = unquote(target).partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists() or not file.is_relative_to(ROOT):
        return False
    return not fragment or file.suffix != ".md" or fragment in _anchors(file)


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings; the second of one name gets `-1`, and so on."""
    anchors: set[str] = set()
    for heading in HEADING.findall(_prose(page)):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        count = sum(1 for anchor in anchors if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", anchor))
        anchors.add(f"{slug}-{count}" if count else slug)
    return anchors
