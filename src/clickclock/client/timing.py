"""The part of the client about times: previews, calendars of business days, and backfills of times that are past.

Never computes a time. Invariant: a change of a calendar is refused if somebody else changed it meanwhile.

>>> with Client() as client:                                                          # doctest: +SKIP
...     client.start_backfill("shop.export", **{"from": "2026-11-01T00:00:00Z", "to": "2026-11-08T00:00:00Z"})
"""

from clickclock.client.connection import Connection, Payload, changed, given, only


class Timing:
    """Previews, calendars and backfills."""

    _connection: Connection

    def preview_schedule(self, **query: object) -> Payload:
        """The next times of an expression: `kind`, `expression`, `timeZone`, `from`, `count`, the DST policies."""
        return self._connection.call("GET", "schedulePreview", query=query)

    def preview_command(self, run: Payload) -> Payload:
        """What a command becomes, in `commandPreview`: `application` and `jobName`, or `command`; `nominalTime`."""
        return self._connection.call("POST", "commandPreview", run)

    def list_calendars(self, **filters: object) -> Payload:
        """Calendars, by name."""
        return self._connection.call("GET", "calendar", query=filters)

    def calendar(self, calendar_name: str) -> Payload:
        """One calendar, as the only one of `calendars`; refused if there is none."""
        found = self.list_calendars(calendarName=calendar_name)
        return only("calendars", found, "calendarNotFound", calendar_name)

    def create_calendar(self, calendar: Payload) -> Payload:
        """Create a calendar."""
        return self._connection.call("POST", "calendar", calendar)

    def put_calendar(self, calendar: Payload, if_match: int | None = None) -> Payload:
        """Create or replace a calendar; with `if_match` only if that is its version."""
        return self._connection.call("PUT", "calendar", calendar, if_match=if_match)

    def change_calendar(self, calendar_name: str, changes: Payload) -> Payload:
        """Change some fields of a calendar and leave the others; refused if someone else changed it meanwhile."""
        calendar = self.calendar(calendar_name)["calendars"][0]
        return self.put_calendar(changed(calendar, changes, "calendarName"), calendar["version"])

    def delete_calendar(self, calendar_name: str) -> Payload:
        """Delete a calendar that no schedule goes by."""
        return self._connection.call("DELETE", "calendar", query={"calendarName": calendar_name})

    def list_backfills(self, **filters: object) -> Payload:
        """Backfills, newest first, each with how far it is."""
        return self._connection.call("GET", "backfill", query=filters)

    def backfill(self, backfill_id: str) -> Payload:
        """One backfill, as the only one of `backfills`; refused if there is none."""
        return only("backfills", self.list_backfills(backfillId=backfill_id), "backfillNotFound", backfill_id)

    def start_backfill(self, schedule_id: str, **fields: object) -> Payload:
        """Run a schedule's times `from` … `to` (as `**{"from": …}`); with `dryRun` only say what would run."""
        return self._connection.call(
            "POST", "backfill", changed({"scheduleId": schedule_id}, given(fields), "scheduleId")
        )

    def change_backfill(self, backfill_id: str, changes: Payload) -> Payload:
        """Pause (`paused`), resume or pace a backfill."""
        return self._connection.call("PUT", "backfill", changed({"backfillId": backfill_id}, changes, "backfillId"))

    def cancel_backfill(self, backfill_id: str) -> Payload:
        """End a backfill with its unfinished triggers."""
        return self._connection.call("DELETE", "backfill", query={"backfillId": backfill_id})
