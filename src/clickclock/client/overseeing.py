"""The part of the client that looks at many things at once: what comes, what became of times, where jobs stand.

Only `bulk` changes anything. Invariant: a method returns the body of the answer as the reference shows it.

>>> with Client() as client:                                                          # doctest: +SKIP
...     failing = [each for each in client.job_states()["jobStates"] if (each["currentStreak"] or 0) < 0]
"""

from collections.abc import Iterator, Mapping, Sequence

from clickclock.client.connection import Connection, Payload, given
from clickclock.foundation.ids import new_id


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
        """Things with `text` in their name."""
        return self._connection.call("GET", "search", query={"q": text, "limit": limit})

    def job_stat_grid(self, figure: str, **query: object) -> Payload:
        """One figure of many jobs by hour or day, such as `lagP95` or `failed`."""
        return self._connection.call("GET", "jobStatGrid", query={"figure": figure, **query})

    def node_stat_grid(self, figure: str, **query: object) -> Payload:
        """One figure of many machines by hour or day, such as `lagP95` or `failed`."""
        return self._connection.call("GET", "nodeStatGrid", query={"figure": figure, **query})

    def trigger_counts(self, **query: object) -> Payload:
        """What ended by minute, from `from` to `to`."""
        return self._connection.call("GET", "triggerCounts", query=query)

    def zone_changes(self, time_zone: str, year: int | None = None) -> Payload:
        """When a zone's clocks are changed in a year."""
        return self._connection.call("GET", "zoneChanges", query={"timeZone": time_zone, "year": year})

    def search_log(self, trigger_id: str, text: str, **query: object) -> Payload:
        """Where a text is in an attempt's output, from byte `offset`; `nextOffset` goes on unless `atEnd`."""
        return self._connection.call("GET", "jobLogSearch", query={"triggerId": trigger_id, "text": text, **query})

    def count_bulk(self, action: str, filter_: Mapping[str, object]) -> Payload:
        """How many triggers or schedules a bulk action would be done to, by state."""
        body = {"action": action, "filter": dict(filter_), "dryRun": True}
        return self._connection.call("POST", "bulk", body, is_repeatable=True)

    def bulk(self, action: str, filter_: Mapping[str, object], reason: str | None = None) -> Iterator[Payload]:
        """Do the same to many triggers (`cancel`, `runAgain`) or schedules (`pause`, `resume`): what became of each.

        It goes on for as long as it is read. A call whose connection breaks is sent again, and does nothing twice.
        """
        body = {"action": action, "filter": dict(filter_), "bulkId": new_id(), **given({"reason": reason})}
        while True:
            page = self._connection.call("POST", "bulk", body, is_repeatable=True)
            yield from page["items"]
            if page["nextCursor"] is None:
                return
            body["cursor"] = page["nextCursor"]
