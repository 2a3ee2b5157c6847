r"""What a change looks like: the lines of YAML that go and come.

Never asks what there is: the service says what was and what will be. Invariant: lines that begin with `-` alone are
what was, lines that begin with `+` alone what will be.

>>> print(difference({"kind": "job", "name": "a/b", "before": {"priority": 50}, "after": {"priority": 70}}), end="")
--- job a/b
+++ job a/b
@@ -1 +1 @@
-priority: 50
+priority: 70
"""

from collections.abc import Mapping
from difflib import unified_diff
from typing import Any

from clickclock.files.documents import written

NOTHING = "/dev/null"
"""As git and diff say that there is no such file."""
CONTEXT_LINES = 3


def difference(alteration: Mapping[str, Any]) -> str:
    """One alteration, as a unified difference."""
    title = f"{alteration['kind']} {alteration['name']}"
    before, after = alteration["before"], alteration["after"]
    return "".join(
        unified_diff(
            _lines(before),
            _lines(after),
            NOTHING if before is None else title,
            NOTHING if after is None else title,
            n=CONTEXT_LINES,
        )
    )


def _lines(value: Mapping[str, Any] | None) -> list[str]:
    return [] if value is None else written([dict(value)]).splitlines(keepends=True)
