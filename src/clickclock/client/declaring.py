"""The part of the client that declares: everything that files say, told and brought about in one call.

Never reads a file (`clickclock.files` does). Invariant: one call of `apply` is one transaction of the service.

>>> with Client() as client:                                                          # doctest: +SKIP
...     client.apply([{"application": "shop", "jobs": [{"jobName": "a", "command": "true"}]}])["unchanged"]
"""

from collections.abc import Mapping, Sequence
from typing import Any

from clickclock.client.connection import Connection, Payload

JOBS_PER_PAGE = 1000
APPLY_TIMEOUT_S = 300.0
"""Ten thousand jobs take seconds, on a busy machine many."""


class Declaring:
    """What a client can do with declarations."""

    _connection: Connection

    def apply(self, declarations: Sequence[Mapping[str, Any]], **terms: object) -> Payload:
        """Make it so, all or nothing. Terms: `set`, `prune`, `dryRun`, `adopt`, `force`, `allowEmpty`.

        The answer has what was changed (`alterations`) and how much was not (`unchanged`). It can be sent again, and
        is, if the connection breaks.
        """
        return self._connection.call("PUT", "declaration", list(declarations), query=terms, timeout_s=APPLY_TIMEOUT_S)

    def export(self, application: str | None = None) -> Payload:
        """Everything, or all of one application, as one declaration, ready to be applied."""
        whole: Payload = {}
        cursor = None
        while True:
            query = {"application": application, "cursor": cursor, "limit": JOBS_PER_PAGE}
            page = self._connection.call("GET", "declaration", query=query)
            for name, things in page["declaration"].items():
                known = whole.setdefault(name, [])
                known += [thing for thing in things if name == "jobs" or thing not in known]
            cursor = page["nextCursor"]
            if cursor is None:
                return whole
