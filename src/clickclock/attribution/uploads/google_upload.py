r"""Google's upload files: offline conversions, and adjustments of them, as CSV.

Never does I/O. Invariants: a time means the instant that it was made of, in the zone that the file's first row names;
an adjustment names its conversion by the order id that the conversion had, so every conversion has one.

The columns are those of Google Ads' own templates ("conversions from clicks", with its optional columns, and
"conversion adjustments"): https://support.google.com/google-ads/answer/7014069 and …/7686280.

>>> when(1_800_000_000_000, ZoneInfo("Europe/Berlin"))
'2027-01-15 09:00:00'
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo

from clickclock.attribution.clicks.absent import present
from clickclock.attribution.orders.money import to_text
from clickclock.attribution.uploads.upload import Kind, Upload
from clickclock.attribution.uploads.upload_form import is_click_id

CONVERSION_NAME: Final = "Order"
"""Default name of the conversion action in the Google Ads account."""
ROWS_MAX: Final = 50_000
"""Of one file: Google takes files of at most 50 MB."""
CONVERSIONS: Final = (
    *("Google Click ID", "Conversion Name", "Conversion Time", "Conversion Value", "Conversion Currency"),
    "Order ID",
)
IDS: Final = ("gclid", "gbraid", "wbraid")
"""The parameters of a click that have Google's id of it; the first that has its form counts."""
BRAIDS: Final = ("GBRAID", "WBRAID")
"""Columns beside the Google Click ID, where a click on iOS has none; of the three, a row has one."""
CONSENT: Final = "Ad User Data"
"""The column for the visitor's consent to sending data to Google."""
GRANTED: Final = "Granted"
NO_BRAIDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType({})
ADJUSTMENTS: Final = (
    *("Order ID", "Conversion Name", "Adjustment Time", "Adjustment Type", "Adjusted Value"),
    "Adjusted Value Currency",
)
_TYPES: Final = {Kind.RESTATE: "RESTATE", Kind.RETRACT: "RETRACT"}
_TO_BE_QUOTED: Final = frozenset('",\r\n')


@dataclass(frozen=True)
class Account:
    """Facts that all files of one Google Ads account share."""

    conversion_name: str
    zone: ZoneInfo

    def conversions(
        self,
        uploads: Iterable[Upload],
        gclids: Mapping[str, str],
        braids: Mapping[str, tuple[str, str]] = NO_BRAIDS,
        consented: Container[str] = (),
    ) -> bytes:
        """A file of conversions, by the gclid of each click, else by its gbraid and wbraid, one of them empty.

        The columns of these two are in a file that needs them, and so is `CONSENT`: clicks of `consented` said it.
        """
        uploads = list(uploads)
        has_consent = any(each.click_id in consented for each in uploads)
        has_braids = any(each.click_id in braids for each in uploads)
        rows = [
            (
                gclids.get(each.click_id, ""),
                *(braids.get(each.click_id, ("", "")) if has_braids else ()),
                self.conversion_name,
                when(each.conversion_ms, self.zone),
                to_text(each.value_minor, each.currency),
                each.currency,
                each.name,
                *((GRANTED if each.click_id in consented else "",) if has_consent else ()),
            )
            for each in uploads
        ]
        header = (CONVERSIONS[0], *BRAIDS, *CONVERSIONS[1:]) if has_braids else CONVERSIONS
        return _file(self.zone, (*header, CONSENT) if has_consent else header, rows)

    def adjustments(self, uploads: Iterable[Upload], now_ms: int) -> bytes:
        """A file of adjustments that are made now; of two of one conversion, Google counts the later one."""
        rows = []
        for each in uploads:
            is_worth = each.kind is Kind.RESTATE
            value = (to_text(each.value_minor, each.currency), each.currency) if is_worth else ("", "")
            rows.append((each.name, self.conversion_name, when(now_ms, self.zone), _TYPES[each.kind], *value))
        return _file(self.zone, ADJUSTMENTS, rows)


def when(ms: int, zone: ZoneInfo) -> str:
    """A time as Google reads it, `yyyy-MM-dd HH:mm:ss`; of an hour that clocks have twice, the second with its offset.

    >>> [when(1_792_888_200_000 + hour, ZoneInfo("Europe/Berlin")) for hour in (0, 3_600_000)]
    ['2026-10-25 02:30:00', '2026-10-25 02:30:00+0100']
    """
    at = datetime.fromtimestamp(ms // 1000, UTC).astimezone(zone)
    text = f"{at:%Y-%m-%d %H:%M:%S}"
    return f"{text}{at:%z}" if at.fold else text


def ids_of(row: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """The names and values of the ids by which Google may know a click, a row of the lake."""
    return [(name, value) for name in IDS if (value := present(row, name)) is not None]


def id_of(row: Mapping[str, str | None]) -> tuple[str, str]:
    """The one that counts, of a click that has any."""
    ids = ids_of(row)
    return next((each for each in ids if is_click_id(each[1])), ids[0])


def _file(zone: ZoneInfo, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> bytes:
    lines = [f"Parameters:TimeZone={zone.key}", ",".join(header), *(",".join(map(_cell, row)) for row in rows)]
    return "".join(f"{line}\n" for line in lines).encode()


def _cell(text: str) -> str:
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if _TO_BE_QUOTED & set(text) else text
