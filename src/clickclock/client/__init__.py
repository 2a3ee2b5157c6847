"""The Python client of both services: one method per call, over HTTP like any other user.

Synchronous, on purpose: who wants a job run wants to write one line. Never imports the service. Invariants: a method
returns the body of the answer as the reference shows it, except where it says otherwise; whatever goes wrong is a
`Refused` or an `Unreachable`; no call is tried again that could do it twice; a stream that broke goes on where it was.

>>> with Client("http://127.0.0.1:8080") as client:                                   # doctest: +SKIP
...     client.trigger("shop", "nightly-export", wait=True, parameters={"day": "2026-11-20"})["state"]
'succeeded'
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpx

from clickclock.client.alarming import Alarming
from clickclock.client.attributing import Attributing
from clickclock.client.auditing import Auditing
from clickclock.client.connection import (
    OPENED,
    RETRIES,
    Conflict,
    Connection,
    Invalid,
    NotFound,
    Payload,
    Refused,
    Unavailable,
    Unreachable,
    changed,
    given,
    only,
)
from clickclock.client.declaring import Declaring
from clickclock.client.event_stream import Event
from clickclock.client.granting import Granting
from clickclock.client.listing import Listing
from clickclock.client.overseeing import Overseeing
from clickclock.client.patience import PAUSE_MAX_S, Patience
from clickclock.client.place import place_of
from clickclock.client.timing import Timing
from clickclock.foundation.errors import Transient
from clickclock.foundation.ids import new_id

__all__ = [
    "DEFAULT_CLICK_URL",
    "DEFAULT_URL",
    "FINISHED",
    "AttemptEnd",
    "Client",
    "Conflict",
    "Invalid",
    "LogText",
    "NotFound",
    "Payload",
    "Refused",
    "Sighting",
    "Unavailable",
    "Unfinished",
    "Unreachable",
]

DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_CLICK_URL = "http://127.0.0.1:8081"
FINISHED = frozenset({"succeeded", "failed", "timedOut", "cancelled", "lost", "skipped"})


@dataclass(frozen=True, slots=True)
class LogText:
    """A piece of an attempt's output; reading goes on at byte `next_offset`."""

    attempt: int
    text: str
    next_offset: int


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """No more output comes from an attempt: it ended in `state` (None if it never began)."""

    attempt: int
    state: str | None
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something that the stream of clicks told; `position` is where to go on after it.

    `seen` is `click`, `rejection`, `order` or `other`, with the entry's fields; `missed`, with how many `entries` were
    left out (None if nobody knows) and a `message`; or `watching`, which says that the view stands.
    """

    seen: str
    fields: Payload
    position: str | None


class Unfinished(Transient):
    """The trigger has not finished in that time; it goes on, and can be waited for again."""

    code = "unfinished"

    def __init__(self, trigger: Payload) -> None:
        super().__init__()
        self.trigger = trigger


class Client(Alarming, Attributing, Auditing, Declaring, Granting, Listing, Overseeing, Timing):
    """A connection to one scheduler service.

    `base_url` may end in `/schedulerService`; `click_url` is the collector's. `retries` is how often a call is tried
    again whose connection broke, if it cannot do its work twice. `headers`, and `token` as a bearer's, go to the origin
    of `base_url` alone. `context` is one of `clickclock context`; `ca_file` has further certificates to believe. No
    message shows a password. Every method raises `Refused`, `Unreachable`. Filters and fields have the API's names
    (`jobName`); those that are None are not sent. Raises `ConfigurationError`.
    """

    def __init__(  # noqa: PLR0913 (each is a term of one connection, by name)
        self,
        base_url: str | None = None,
        *,
        click_url: str = DEFAULT_CLICK_URL,
        timeout_s: float = 30.0,
        retries: int = RETRIES,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
        context: str | None = None,
        ca_file: Path | str | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        place = place_of(DEFAULT_URL, base_url, context, token, ca_file)
        self._connection = Connection(place, timeout_s, transport, retries, headers=headers)
        self._click_url = self._connection.also_at(click_url)
        self._call = self._connection.call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection; leaving its `with` does the same."""
        self._connection.close()

    # Triggers

    def list_triggers(self, **filters: object) -> Payload:
        """Triggers, newest first; with `triggerId` that one, its attempts included. Also the health check."""
        return self._call("GET", "jobTrigger", query=filters)

    def trigger(
        self, application: str, job_name: str, *, wait: bool = False, timeout_s: float | None = None, **fields: object
    ) -> Payload:
        """Run a job; the trigger itself, with `wait` when it has finished for good, whatever its end.

        `fields` as of `trigger_job`. Raises `Unfinished` where it takes longer than `timeout_s`.
        """
        trigger: Payload = self.trigger_job(application, job_name, **fields)["trigger"]
        return self.wait(trigger["triggerId"], timeout_s) if wait else trigger

    def wait(self, trigger_id: str, timeout_s: float | None = None) -> Payload:
        """The trigger itself, when it has finished for good. Raises `Unfinished` after `timeout_s`; it goes on then."""
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        trigger: Payload = {}
        patience = Patience()
        while True:
            try:
                trigger = self.get_trigger(trigger_id)["triggers"][0]
                patience.answered()
            except (Unreachable, Unavailable) as error:
                patience.bear(error)
            if trigger["state"] in FINISHED:
                return trigger
            left_s = PAUSE_MAX_S if until_s is None else until_s - time.monotonic()
            if left_s <= 0:
                raise Unfinished(trigger)
            patience.pause(left_s)

    def get_trigger(self, trigger_id: str) -> Payload:
        """One trigger with its attempts, as the only one of `triggers`; refused if there is none."""
        return only("triggers", self.list_triggers(triggerId=trigger_id), "triggerNotFound", trigger_id)

    def trigger_job(self, application: str, job_name: str, **fields: object) -> Payload:
        """Run a job now, or at `runAt`.

        Further fields: `parameters`, `priority`, `idempotencyKey`, `reason`, `nominalTime` (run it for this time),
        `dependents` (False: nothing runs after it). Without a key it makes one, so that it may try again and still
        runs the job once.
        """
        body = {"application": application, "jobName": job_name, "idempotencyKey": new_id(), **given(fields)}
        return self._call("POST", "jobTrigger", body, is_repeatable=True)

    def cancel_trigger(self, trigger_id: str) -> Payload:
        """Ask a trigger to end."""
        return self._call("DELETE", "jobTrigger", query={"triggerId": trigger_id})

    # Jobs

    def list_jobs(self, **filters: object) -> Payload:
        """Jobs, by name."""
        return self._call("GET", "job", query=filters)

    def job_detail(self, application: str, job_name: str) -> Payload:
        """All about one job."""
        return self._call("GET", "jobDetail", query={"application": application, "jobName": job_name})

    def create_job(self, job: Payload) -> Payload:
        """Create a job."""
        return self._call("POST", "job", job)

    def put_job(self, job: Payload, if_match: int | None = None) -> Payload:
        """Create or replace a job; with `if_match` only if that is its version."""
        return self._call("PUT", "job", job, if_match=if_match)

    def change_job(self, application: str, job_name: str, changes: Payload) -> Payload:
        """Change some fields of a job and leave the others; refused if someone else changed it meanwhile."""
        found = self.list_jobs(application=application, jobName=job_name)
        job = only("jobs", found, "jobNotFound", application, job_name)["jobs"][0]
        return self.put_job(changed(job, changes, "application", "jobName"), job["version"])

    def delete_job(self, application: str, job_name: str, *, force: bool | None = None) -> Payload:
        """Delete a job and its schedules; with `force` even while it runs."""
        query = {"application": application, "jobName": job_name, "force": force}
        return self._call("DELETE", "job", query=query)

    def job_stat(self, **filters: object) -> Payload:
        """Statistics of a job, an application, a group, or all.

        `from`, `to`, `bucket` (`hour`, `day`), `timeZone` of the days, `rank` (`slowest`, `latest`, `flaky`, `failing`)
        and its `limit`.
        """
        return self._call("GET", "jobStat", query=filters)

    # Schedules

    def list_schedules(self, **filters: object) -> Payload:
        """Schedules, by id."""
        return self._call("GET", "schedules", query=filters)

    def schedule(self, schedule_id: str) -> Payload:
        """One schedule, as the only one of `schedules`; refused if there is none."""
        return only("schedules", self.list_schedules(scheduleId=schedule_id), "scheduleNotFound", schedule_id)

    def create_schedule(self, schedule: Payload) -> Payload:
        """Create a schedule."""
        return self._call("POST", "schedules", schedule)

    def update_schedule(self, schedule_id: str, changes: Payload, if_match: int | None = None) -> Payload:
        """Change some fields of a schedule and leave the others; with `if_match` only if that is its version."""
        body = changed({"scheduleId": schedule_id}, changes, "scheduleId")
        return self._call("PUT", "schedules", body, if_match=if_match)

    def delete_schedule(self, schedule_id: str) -> Payload:
        """Delete a schedule."""
        return self._call("DELETE", "schedules", query={"scheduleId": schedule_id})

    # Groups

    def list_groups(self, **filters: object) -> Payload:
        """Groups with what they hold now."""
        return self._call("GET", "group", query=filters)

    def group(self, group_name: str) -> Payload:
        """One group, as the only one of `groups`; refused if there is none."""
        return only("groups", self.list_groups(groupName=group_name), "groupNotFound", group_name)

    def create_group(self, group: Payload) -> Payload:
        """Create a group."""
        return self._call("POST", "group", group)

    def put_group(self, group: Payload, if_match: int | None = None) -> Payload:
        """Create or replace a group; with `if_match` only if that is its version."""
        return self._call("PUT", "group", group, if_match=if_match)

    def change_group(self, group_name: str, changes: Payload) -> Payload:
        """Change some fields of a group and leave the others; refused if someone else changed it meanwhile."""
        group = self.group(group_name)["groups"][0]
        return self.put_group(changed(group, changes, "groupName"), group["version"])

    def delete_group(self, group_name: str) -> Payload:
        """Delete a group that holds no job."""
        return self._call("DELETE", "group", query={"groupName": group_name})

    # The cluster, and images

    def cluster(self) -> Payload:
        """Replicas, clusters, the store, and what is not as it should be."""
        return self._call("GET", "cluster")

    def list_mappings(self, **filters: object) -> Payload:
        """Command prefixes with their images; with `command`, which image that command gets and why."""
        return self._call("GET", "commandPrefixImageMapping", query=filters)

    def put_mapping(self, prefix: str, image: str, **fields: object) -> Payload:
        """Create or replace the image for a prefix."""
        return self._call("PUT", "commandPrefixImageMapping", {"prefix": prefix, "image": image, **given(fields)})

    def delete_mapping(self, prefix: str) -> Payload:
        """Delete a prefix."""
        return self._call("DELETE", "commandPrefixImageMapping", query={"prefix": prefix})

    # Output

    def log(self, trigger_id: str, attempt: int | None = None, offset: int = 0) -> Iterator[bytes]:
        """An attempt's output so far, from byte `offset`, in pieces; of the last attempt if none is named."""
        while True:
            query = {"triggerId": trigger_id, "attempt": attempt, "offset": offset}
            response = self._connection.send("GET", "jobLog", query=query)
            if not response.content:
                return
            yield response.content
            offset = int(response.headers["X-Next-Offset"])

    def follow_log(self, trigger_id: str, attempt: int, offset: int = 0) -> Iterator[LogText | AttemptEnd]:
        """One attempt's output as it is written, from byte `offset`, until the attempt ends."""
        query = {"triggerId": trigger_id, "attempt": attempt, "follow": True}
        patience = Patience(is_there=True)
        while True:
            try:
                for event in self._connection.stream("jobLog", {**query, "offset": offset}):
                    patience.answered()
                    patience.told()
                    if event.name == "log":
                        offset = int(event.id)
                        yield LogText(attempt, json.loads(event.data)["text"], offset)
                    elif event.name == "end":
                        end = json.loads(event.data)
                        yield AttemptEnd(attempt, end["attemptState"], end["exitCode"])
                        return
            except (Unreachable, Unavailable) as error:
                patience.bear(error)
            patience.pause()

    def follow_trigger(self, trigger_id: str, attempt: int = 1, offset: int = 0) -> Iterator[LogText | AttemptEnd]:
        """The output of a trigger's attempts, from this attempt and byte on, until it has finished for good."""
        while self._has_attempt(trigger_id, attempt):
            yield from self.follow_log(trigger_id, attempt, offset)
            attempt, offset = attempt + 1, 0

    # Clicks and events

    def follow_clicks(self, *, after: str | None = None, **filters: object) -> Iterator[Sighting]:
        """Clicks, rejections and orders as they arrive, from now on or `after` a position, for as long as it is read.

        Filters are `clientId` and `kind` (what is seen).
        """
        address = f"{self._connection.root_url}/attribution/clicks/stream"
        for event in self._follow(address, filters, after):
            yield Sighting(event.name, json.loads(event.data), event.id or after)

    def list_events(self, **filters: object) -> Payload:
        """What changed, newest first, each a CloudEvent."""
        return self._call("GET", "events", query={**filters, "follow": False})

    def follow_events(self, *, after: str | None = None, **filters: object) -> Iterator[Payload]:
        """What changes, from now on or `after` an event's id, for as long as it is read, each a CloudEvent.

        Changes that are no longer kept appear as one of the type `missed`, with a `message` in its data.
        """
        for event in self._follow("events", filters, after):
            told = json.loads(event.data)
            yield {"type": event.name, "data": told} if event.name == "missed" else told

    def _follow(self, path: str, query: Mapping[str, object], after: str | None) -> Iterator[Event]:
        """The events of a stream without an end; one that broke goes on where it stopped."""
        patience = Patience()
        while True:
            try:
                for event in self._connection.stream(path, query, after):
                    patience.answered()
                    after = event.id or after
                    if event.name != OPENED:
                        patience.told()
                        yield event
            except (Unreachable, Unavailable) as error:
                patience.bear(error)
            patience.pause()

    def _has_attempt(self, trigger_id: str, attempt: int) -> bool:
        """Wait for an attempt; False when the trigger finished without it. For the first the service itself waits."""
        patience = Patience(is_there=True)
        while attempt > 1:
            try:
                trigger = self.get_trigger(trigger_id)["triggers"][0]
                patience.answered()
                if trigger["attempt"] >= attempt:
                    break
                if trigger["state"] in FINISHED:
                    return False
            except (Unreachable, Unavailable) as error:
                patience.bear(error)
            patience.pause()
        return True
