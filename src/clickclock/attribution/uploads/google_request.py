"""The Google Ads API: a file of conversions or adjustments as requests, and what an answer means.

Never does I/O. Invariants: a request has at most as many conversions as Google takes; a conversion has its order id, so
that Google counts it once; one that Google has already is taken, and not refused.

The sources are Google's pages on `ConversionUploadService`, `ConversionAdjustmentUploadService` and partial failures:
https://developers.google.com/google-ads/api/docs/conversions/upload-clicks.

>>> [len(each.body["conversions"]) for each in requests(FILE, "1234567890", "7", "v24")]
[1]
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from zoneinfo import ZoneInfo

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
from clickclock.attribution.uploads.google_upload import CONSENT, GRANTED

FILE: Final = (
    b"Parameters:TimeZone=Europe/Berlin\n"
    b"Google Click ID,Conversion Name,Conversion Time,Conversion Value,Conversion Currency,Order ID\n"
    b"EAIaIQ,Order,2026-11-20 10:00:00,24.90,EUR,A-1\n"
)
OPERATIONS_MAX: Final = 2000
"""Of one request."""
_ZONE: Final = "Parameters:TimeZone="
_KNOWN: Final = frozenset(
    {
        "CLICK_CONVERSION_ALREADY_EXISTS",
        "ORDER_ID_ALREADY_IN_USE",
        "CONVERSION_ALREADY_RETRACTED",
        "RESTATEMENT_ALREADY_EXISTS",
        "RETRACTION_ALREADY_EXISTS",
    }
)
"""Codes of what Google has already: an attempt before this one arrived, and its answer did not."""
_OF_THE_SETTINGS: Final = frozenset(
    {
        "CONVERSION_ACTION_NOT_FOUND",
        "CUSTOMER_NOT_ACCEPTED_CUSTOMER_DATA_TERMS",
        "INVALID_CONVERSION_ACTION",
        "INVALID_CONVERSION_ACTION_TYPE",
        "UNAUTHORIZED_CUSTOMER",
    }
)
"""Codes that every conversion gets until the settings are changed."""
_CLICK_IDS: Final = {"gclid": "Google Click ID", "gbraid": "GBRAID", "wbraid": "WBRAID"}


def requests(
    content: bytes, customer_id: str, action_id: str, api_version: str, others: Mapping[str, str] = MappingProxyType({})
) -> Sequence[Request]:
    """The requests of a file, in its order. `others` are the actions with a name of their own, each with its number."""
    zone, rows = _rows(content)

    def action(row: Mapping[str, str]) -> str:
        return f"customers/{customer_id}/conversionActions/{others.get(row['Conversion Name'], action_id)}"

    items = [
        _adjustment(row, zone, action(row)) if "Adjustment Type" in row else _conversion(row, zone, action(row))
        for row in rows
    ]
    is_adjusting = bool(rows) and "Adjustment Type" in rows[0]
    name, method = (
        ("conversionAdjustments", "uploadConversionAdjustments")
        if is_adjusting
        else ("conversions", "uploadClickConversions")
    )
    return [
        Request(
            f"/{api_version}/customers/{customer_id}:{method}",
            {name: items[start : start + OPERATIONS_MAX], "partialFailure": True},
            name,
        )
        for start in range(0, len(items), OPERATIONS_MAX)
    ]


def delivery(answer: Answer, count: int) -> Delivery:
    """What the answer to a request with so many conversions means."""
    said = read(answer)
    if answer.status <= HTTP_OK_MAX:
        faults: dict[int, str] = {}
        for place, code in _faults(said.get("partialFailureError")):
            faults.setdefault(place, code)
        if wrong := _OF_THE_SETTINGS & set(faults.values()):
            return Delivery(Outcome.REFUSED, sentence=f"Google takes nothing: {', '.join(sorted(wrong))}")
        refused = Counter(code for code in faults.values() if code not in _KNOWN)
        return Delivery(Outcome.TAKEN, count - refused.total(), dict(sorted(refused.items())))
    error = error_of(said)
    state, words = error.get("status"), error.get("message") or ""
    sentence = f"Google answered {answer.status}" + (f", {state}: {words}" if state else "")
    if answer.status == TOO_MANY or answer.status >= SERVER_ERROR or state == "RESOURCE_EXHAUSTED":
        return later(sentence, answer)
    if answer.status != BAD_REQUEST:
        return Delivery(Outcome.REFUSED, sentence=sentence)
    return Delivery(Outcome.BAD_CONVERSION, refused={state or f"status_{answer.status}": count}, sentence=sentence)


def _rows(content: bytes) -> tuple[ZoneInfo, list[dict[str, str]]]:
    head, *lines = (f"{line}\n" for line in content.decode().removesuffix("\n").split("\n"))
    return ZoneInfo(head.strip().removeprefix(_ZONE)), list(csv.DictReader(lines))


def _conversion(row: Mapping[str, str], zone: ZoneInfo, action: str) -> dict[str, Any]:
    click = {name: row[column] for name, column in _CLICK_IDS.items() if row.get(column)}
    consent = {"consent": {"adUserData": "GRANTED"}} if row.get(CONSENT) == GRANTED else {}
    return {
        **click,
        **consent,
        "conversionAction": action,
        "conversionDateTime": _time(row["Conversion Time"], zone),
        "conversionValue": msgspec.Raw(row["Conversion Value"].encode()),
        "currencyCode": row["Conversion Currency"],
        "orderId": row["Order ID"],
    }


def _adjustment(row: Mapping[str, str], zone: ZoneInfo, action: str) -> dict[str, Any]:
    is_restated = row["Adjustment Type"] == "RESTATE"
    made: dict[str, Any] = {
        "adjustmentType": "RESTATEMENT" if is_restated else "RETRACTION",
        "conversionAction": action,
        "orderId": row["Order ID"],
        "adjustmentDateTime": _time(row["Adjustment Time"], zone),
    }
    if is_restated:
        made["restatementValue"] = {
            "adjustedValue": msgspec.Raw(row["Adjusted Value"].encode()),
            "currencyCode": row["Adjusted Value Currency"],
        }
    return made


def _time(text: str, zone: ZoneInfo) -> str:
    """A time of a file as the API wants it, with its offset.

    >>> _time("2026-10-25 02:30:00", ZoneInfo("Europe/Berlin")), _time("2026-10-25 02:30:00+0100", ZoneInfo("UTC"))
    ('2026-10-25 02:30:00+02:00', '2026-10-25 02:30:00+01:00')
    """
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=zone)).isoformat(sep=" ")


def _faults(error: Any) -> Iterator[tuple[int, str]]:
    """The place of each conversion that is refused, and its code."""
    details = error.get("details", ()) if isinstance(error, dict) else ()
    for fault in (fault for detail in details for fault in detail.get("errors", ())):
        path = fault.get("location", {}).get("fieldPathElements", ())
        code = next(iter(fault.get("errorCode", {}).values()), "UNKNOWN")
        yield int(path[0].get("index", 0)) if path else 0, str(code)
