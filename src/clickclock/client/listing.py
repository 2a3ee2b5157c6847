"""The part of the client that lists everything there is, page after page.

Never keeps a page longer than it is read. Invariants: a page is asked for when its first entry is wanted; what comes or
goes meanwhile neither hides nor doubles what stays.

>>> with Client() as client:                                                          # doctest: +SKIP
...     names = [job["jobName"] for job in client.jobs(application="shop")]
"""

from collections.abc import Iterator

from clickclock.client.connection import Connection, Payload

PER_PAGE = 1000


class Listing:
    """Iterators over all lists; filters have the names of the API."""

    _connection: Connection

    def jobs(self, **filters: object) -> Iterator[Payload]:
        """All jobs, by name."""
        return self._each("job", "jobs", filters)

    def schedules(self, **filters: object) -> Iterator[Payload]:
        """All schedules, by id."""
        return self._each("schedules", "schedules", filters)

    def triggers(self, **filters: object) -> Iterator[Payload]:
        """All triggers, newest first."""
        return self._each("jobTrigger", "triggers", filters)

    def groups(self, **filters: object) -> Iterator[Payload]:
        """All groups, by name."""
        return self._each("group", "groups", filters)

    def mappings(self, **filters: object) -> Iterator[Payload]:
        """All mappings, by prefix."""
        return self._each("commandPrefixImageMapping", "commandPrefixImageMappings", filters)

    def _each(self, path: str, name: str, filters: dict[str, object]) -> Iterator[Payload]:
        cursor = None
        while True:
            page = self._connection.call("GET", path, query={"limit": PER_PAGE, **filters, "cursor": cursor})
            yield from page[name]
            cursor = page.get("nextCursor")
            if cursor is None:
                return
