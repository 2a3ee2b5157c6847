"""Answers that may be kept: how long a browser may keep each, and the sums that are remembered here.

Never remembers a proof or a list of orders, which are about people. Invariants: what is remembered is what would be
computed; all of it is forgotten when another result version is published, as every erasure does.

>>> Remembered().answer(desk, "report", Asked(version=3)).headers["cache-control"]   # doctest: +SKIP
'private, no-cache'
"""

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import msgspec

from clickclock.attribution.reporting.cohorts import Cohorts
from clickclock.attribution.reporting.listing import Paths
from clickclock.attribution.reporting.report import Asked, find

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply

BYTES_MAX: Final = 32 * 2**20
"""Some hundred reports as pages ask for them; the longest answer alone is less."""
_COSTS: Final = "costs"
CACHE_CONTROL: Final = "cache-control"
ETAG: Final = "etag"
_ASK_AGAIN: Final = "private, no-cache"
"""A browser keeps it, and asks each time whether it is still true."""
_FOR_EVER: Final = "private, max-age=31536000, immutable"


class Remembered:
    """What one process remembers."""

    def __init__(self) -> None:
        self._latest: object = None
        self._replies: OrderedDict[str, Reply] = OrderedDict()
        self._bytes = 0

    def answer(self, desk: "Desk", question: Any, compute: Callable[["Desk", Any], "Reply"]) -> "Reply":
        """The answer, with how long it may be kept. Raises what `compute` raises."""
        if not isinstance(question, Asked | Paths | Cohorts):
            return _with(compute(desk, question), _ASK_AGAIN)
        results = desk.lake.results()
        result = find(results, question.version)
        if results[-1] != self._latest:
            self._replies.clear()
            self._latest, self._bytes = results[-1], 0
        of_version = msgspec.structs.replace(question, version=result.version)
        costs = desk.lake.version_of(_COSTS) if _has_costs(question) else None
        etag = _etag(msgspec.json.encode([type(question).__name__, of_version, result, costs]))
        if etag in self._replies:
            self._replies.move_to_end(etag)
        else:
            self._keep(etag, compute(desk, of_version))
        is_final = question.version is not None and not _has_costs(question)
        return _with(self._replies[etag], _FOR_EVER if is_final else _ASK_AGAIN, etag)

    def _keep(self, etag: str, reply: "Reply") -> None:
        self._replies[etag] = reply
        self._bytes += len(reply.body)
        while self._bytes > BYTES_MAX and len(self._replies) > 1:
            _, oldest = self._replies.popitem(last=False)
            self._bytes -= len(oldest.body)


def _with(reply: "Reply", cache_control: str, etag: str | None = None) -> "Reply":
    headers = {ETAG: etag or _etag(reply.body), CACHE_CONTROL: cache_control}
    return type(reply)(reply.body, reply.media_type, reply.headers | headers)


def _has_costs(question: Asked | Paths | Cohorts) -> bool:
    """Whether it changes when costs are imported."""
    return isinstance(question, Asked) and question.has_costs


def _etag(told: bytes) -> str:
    """Weak, because an answer may be compressed."""
    return f'W/"{blake2b(told, digest_size=12).hexdigest()}"'
