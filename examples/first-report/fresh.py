"""Copies the files of the tutorial into a folder, with newer days: the last one is the day before yesterday.

Run as `python examples/first-report/fresh.py FOLDER`. Ad networks take conversions of the last weeks alone.
"""

import re
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

LAST = date(2026, 3, 15)
FILES = ("orders_export.csv", "google_ads_report.csv", "ga4_events.json")


def main() -> None:
    """Copy the files."""
    here, there = Path(__file__).parent, Path(sys.argv[1])
    today = datetime.now(UTC).date()  # noqa: TID251 (a program of its own, which has no Clock)
    days = (today - timedelta(days=2) - LAST).days
    there.mkdir(parents=True, exist_ok=True)

    def iso(found: re.Match[str]) -> str:
        return (date.fromisoformat(found[0]) + timedelta(days=days)).isoformat()

    def compact(found: re.Match[str]) -> str:
        return found[1] + (date.fromisoformat(found[2]) + timedelta(days=days)).strftime("%Y%m%d")

    def micros(found: re.Match[str]) -> str:
        return found[1] + str(int(found[2]) + days * 86_400_000_000)

    for name in FILES:
        text = (here / name).read_text("utf-8")
        text = re.sub(r"\b2026-03-\d\d\b", iso, text)
        text = re.sub(r'("event_date":")(\d{8})', compact, text)
        text = re.sub(r'("event_timestamp":")(\d{16})', micros, text)
        (there / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
