"""The part of the client that looks at many things at once: what comes, what became of times, where jobs stand.

Never changes anything. Invariant: a method returns the body of the answer as the reference shows it.

>>> with Client() as client:                                                          # doctest: +SKIP
...     failing = [each for each in client.job_states()["jobStates"] if (each["currentStreak"] or 0) < 0]
"""

from collections.abc import Sequence

from clickclock.client.connection import Connection, Payload


class Overseeing:
    """Many things at one look."""

    _connection: Connection

    def forecast(self, **query: object) -> Payload:
        """The times at which schedules will be due, from `from` to `to`; a truncated answer says where to go on."""
        return self._connection.call("GET", "forecast", query=query)

    def schedule_times(self, schedule_ids: Sequence[str], **query: object) -> Payload:
        """What became of the nominal times of these schedules, newest first."""
        return self._connection.call("GET", "scheduleTimes", query={"scheduleId": ",".join(schedule_ids), **query})

    def trigger_marks(self, **filters: object) -> Payload:
        """Triggers as columns, newest first; filters as of `list_triggers`."""
        return self._connection.call("GET", "triggerMarks", query=filters)

    def job_states(self, **filters: object) -> Payload:
        """Where jobs stand, by name, each with its `recent` newest triggers; filters as of `list_jobs`."""
        return self._connection.call("GET", "jobState", query=filters)

    def search(self, text: str, limit: int | None = None) -> Payload:
        """What has a name with `text` in it."""
        return self._connection.call("GET", "search", query={"q": text, "limit": limit})

    def job_stat_grid(self, figure: str, **query: object) -> Payload:
        """One figure of many jobs by hour or day, such as `lagP95` or `failed`."""
        return self._connection.call("GET", "jobStatGrid", query={"figure": figure, **query})

    def trigger_counts(self, **query: object) -> Payload:
        """What ended by minute, from `from` to `to`."""
        return self._connection.call("GET", "triggerCounts", query=query)

    def zone_changes(self, time_zone: str, year: int | None = None) -> Payload:
        """When a zone's clocks are changed in a year."""
        return self._connection.call("GET", "zoneChanges", query={"timeZone": time_zone, "year": year})
