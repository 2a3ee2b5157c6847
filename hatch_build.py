"""Puts the commit into the wheel, for `clickclock --version`.

Never fails a build: without Git, as from an archive, and without CLICKCLOCK_COMMIT, the wheel says no commit.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface[Any]):
    """Called by hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file `clickclock/commit`; a package that points at this tree reads Git's own files."""
        if version == "editable" or not (commit := self._commit()):
            return
        file = Path(tempfile.mkdtemp()) / "commit"
        file.write_text(f"{commit}\n", encoding="ascii")
        build_data["force_include"][str(file)] = "clickclock/commit"

    def _commit(self) -> str:
        told = os.environ.get("CLICKCLOCK_COMMIT", "")  # noqa: TID251 (no program of ours runs yet)
        if not told and (Path(self.root) / ".git").exists():
            command = ["git", "rev-parse", "HEAD"]
            done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)  # noqa: S603 (our own words)
            told = done.stdout.strip()
        return told if re.fullmatch("[0-9a-f]{40}", told) else ""
