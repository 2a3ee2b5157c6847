"""Where the installed program is, what a person types for it, and the PATH that jobs get."""

import sys
from pathlib import Path

import pytest

from clickclock.app.own_program import PLAIN_PATH, own_program, path_of_jobs, typed


def _script(folder: Path) -> Path:
    folder.mkdir(parents=True)
    script = folder / "clickclock"
    script.write_text("#!/bin/sh\n", encoding="utf-8")
    script.chmod(0o755)
    return script


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/bin:/bin", "/usr/bin:/bin:/opt/cc/bin"),
        ("/opt/cc/bin:/bin", "/opt/cc/bin:/bin"),
        (None, f"{PLAIN_PATH}:/opt/cc/bin"),
        ("", f"{PLAIN_PATH}:/opt/cc/bin"),
    ],
)
def test_the_programs_folder_is_the_last_of_the_jobs_path(path: str | None, expected: str) -> None:
    assert path_of_jobs(path, Path("/opt/cc/bin/clickclock")) == expected


def test_a_folder_that_no_path_can_name_is_left_out() -> None:
    assert path_of_jobs("/bin", Path("/opt/a:b/clickclock")) == "/bin"
    assert path_of_jobs("/bin", None) == "/bin"


def test_the_program_is_the_script_that_was_called_even_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = _script(tmp_path / "venv/bin")
    link = tmp_path / "bin/clickclock"
    link.parent.mkdir()
    link.symlink_to(script)
    monkeypatch.setattr(sys, "argv", [str(link), "serve"])
    assert own_program() == link


def test_a_module_that_was_called_has_its_script_beside_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = _script(tmp_path / "venv/bin")
    monkeypatch.setattr(sys, "argv", ["/lib/clickclock/cli/__main__.py"])
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    assert own_program() == script


def test_hints_name_the_program_as_it_can_be_started_here(tmp_path: Path) -> None:
    script = _script(tmp_path / ".venv/bin")
    assert typed(script, str(script.parent), tmp_path) == "clickclock"
    assert typed(script, "/usr/bin", tmp_path) == ".venv/bin/clickclock"
    assert typed(script, None, tmp_path / "elsewhere") == str(script)
    other = _script(tmp_path / "other")
    assert typed(script, str(other.parent), tmp_path) == ".venv/bin/clickclock"
