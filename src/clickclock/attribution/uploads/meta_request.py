"""Meta's Conversions API: a file of events as requests, and what an answer means.

Never does I/O, and never puts the token into an address. Invariants: an event that is too old is left out, because one
makes Meta refuse all; an event has its id, so that Meta counts it once, however often it comes.

The source is https://developers.facebook.com/docs/marketing-api/conversions-api/using-the-api and
https://developers.facebook.com/docs/graph-api/guides/error-handling.

>>> said = Answer(400, None, b'{"error": {"code": 190, "message": "expired"}}')
>>> delivery(said, 1).outcome.value
'refused'
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from clickclock.attribution.uploads.delivery import (
    BAD_REQUEST,
    HTTP_OK_MAX,
    SERVER_ERROR,
    TOO_MANY,
    Answer,
    Delivery,
    Outcome,
    Request,
    error_of,
    later,
    read,
)
from clickclock.attribution.uploads.meta_upload import MS_PER_S
from clickclock.attribution.uploads.upload import META

MARGIN_MS: Final = 3_600_000
"""Less than seven days by this: the clock of Meta may be ahead, and the request may wait."""
_THROTTLED: Final = frozenset({1, 2, 4, 17, 32, 341, 368, 613, 80004})
"""Codes of a fault that passes, and of limits."""
_NOT_ALLOWED: Final = frozenset({3, 10, 102, 104, 190, 200, 294, 803})
"""Codes of a token that is not (any more) allowed to do this, and of a dataset that the token does not reach."""
_NO_SUCH_DATASET: Final = 33
"""A subcode: the dataset does not exist, or the token does not reach it."""


def requests(
    content: bytes, dataset_id: str, api_version: str, test_event_code: str | None, now_ms: int
) -> tuple[Sequence[Request], int]:
    """The requests of a file, and how many of its events are too old."""
    events: list[dict[str, Any]] = msgspec.json.decode(content, type=dict[str, list[dict[str, msgspec.Raw]]])["data"]
    oldest_s = (now_ms - META.conversion_age_ms_max + MARGIN_MS) // MS_PER_S
    fresh = [event for event in events if int(bytes(event["event_time"])) >= oldest_s]
    body: dict[str, Any] = {"data": fresh}
    if test_event_code is not None:
        body["test_event_code"] = test_event_code
    made = [Request(f"/{api_version}/{dataset_id}/events", body, "data")] if fresh else []
    return made, len(events) - len(fresh)


def delivery(answer: Answer, count: int) -> Delivery:
    """What the answer to a request with so many events means."""
    said = read(answer)
    if answer.status <= HTTP_OK_MAX:
        taken = int(said.get("events_received", 0))
        return Delivery(Outcome.TAKEN, taken, {"not_received": count - taken} if taken < count else {})
    error = error_of(said)
    code, words = error.get("code"), error.get("error_user_msg") or error.get("message") or ""
    sentence = f"Meta answered {answer.status}" + (f", code {code}: {words}" if code is not None else "")
    if answer.status == TOO_MANY or answer.status >= SERVER_ERROR or error.get("is_transient") or code in _THROTTLED:
        return later(sentence, answer)
    if answer.status != BAD_REQUEST or code in _NOT_ALLOWED or error.get("error_subcode") == _NO_SUCH_DATASET:
        return Delivery(Outcome.REFUSED, sentence=sentence)
    return Delivery(Outcome.BAD_CONVERSION, refused={f"code_{code}": count}, sentence=sentence)
