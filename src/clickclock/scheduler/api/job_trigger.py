"""`/schedulerService/jobTrigger`: the health check, what ran, run now, cancel.

Parse, call, render. Invariant: GET is 200 whenever the service is healthy, whatever it is asked about: a load
balancer reads the status, a person the triggers.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError
from starlette.responses import Response

from clickclock.foundation.caller import caller
from clickclock.foundation.errors import Fault, Invalid, Malformed, StoreUnreachable
from clickclock.foundation.ids import EXAMPLE_ID, new_id
from clickclock.foundation.permission import Permission
from clickclock.foundation.problem import Unhealthy
from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.api.operation import BASE, Call, Operation, success
from clickclock.scheduler.api.paging import columns, key_in, page, seen_by
from clickclock.scheduler.api.reading import Body, Page, Query, Word
from clickclock.scheduler.api.references import named_too
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import (
    JobIsDisabled,
    JobNotFound,
    TriggerIsFinished,
    TriggerNotFound,
)
from clickclock.scheduler.jobs.job import Name, Text
from clickclock.scheduler.jobs.trigger import KEY_PATTERN, STATES_PATTERN, Kind, NewTrigger, State, Trigger
from clickclock.scheduler.jobs.waiting import reasons

Key = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=KEY_PATTERN)]
_KEY: TypeAdapter[str] = TypeAdapter(Key)


class TriggerFilters(Page):
    """Which triggers."""

    application: Word | None = Field(None, description="Triggers of this application.", examples=["shop"])
    job_name: Word | None = Field(None, description="Triggers of jobs of this name.", examples=["nightly-export"])
    schedule_id: Word | None = Field(None, description="Triggers that this schedule decided.", examples=["every-night"])
    backfill_id: Word | None = Field(None, description="Triggers that this backfill made.", examples=[EXAMPLE_ID])
    trigger_id: Word | None = Field(None, description="This trigger, with its attempts.", examples=[EXAMPLE_ID])
    state: Annotated[str, StringConstraints(pattern=STATES_PATTERN, max_length=256)] | None = Field(
        None, description="Triggers in this state, or in one of several, with commas between.", examples=["failed,lost"]
    )
    kind: Kind | None = Field(None, description="Triggers that were decided in this way.", examples=["manual"])
    group_name: Word | None = Field(None, description="Triggers of jobs in this group.", examples=["exports"])
    idempotency_key: Word | None = Field(
        None, description="The trigger that was asked for with this key.", examples=["order-4711"]
    )
    since: Instant | None = Field(
        None, alias="from", description="Recorded at this time or later.", examples=["2026-11-20T00:00:00.000Z"]
    )
    until: Instant | None = Field(
        None, alias="to", description="Recorded before this time.", examples=["2026-11-21T00:00:00.000Z"]
    )


class TriggerRequest(Record):
    """A call to run a job once."""

    application: Name = Field(description="The job's application.", examples=["shop"])
    job_name: Name = Field(description="The job to run.", examples=["nightly-export"])
    parameters: dict[str, str] = Field(
        default_factory=dict, max_length=64, description="Values for its parameters.", examples=[{"day": "2026-11-19"}]
    )
    idempotency_key: Key | None = Field(
        None,
        description="A repeated call for the job with the same key answers with the same trigger, whatever else it "
        "says. The header `Idempotency-Key` says the same.",
        examples=["order-4711"],
    )
    priority: int | None = Field(
        None, ge=0, le=100, description="Higher starts first; the job's own if not given.", examples=[50]
    )
    run_at: Instant | None = Field(
        None, description="Not before this time; at once if not given.", examples=["2026-11-20T22:00:00.000Z"]
    )
    reason: Text | None = Field(None, description="Why, for whoever looks later.", examples=["rerun after a fix"])
    nominal_time: Instant | None = Field(
        None,
        description="Run it for this time, as its schedule would have: dependents that were skipped because it failed "
        "then run after it.",
        examples=["2026-11-20T02:30:00.000Z"],
    )
    dependents: bool = Field(
        True, description="Whether jobs that depend on it run after it, and those that depend on them."
    )


class TriggerTarget(Query):
    """One trigger."""

    trigger_id: Word = Field(description="The trigger.", examples=[EXAMPLE_ID])


BODY = Body(TriggerRequest)


async def find(call: Call[TriggerFilters]) -> Response:
    """GET: health and triggers."""
    if faults := await call.engine.faults():
        raise Unhealthy(" ".join(faults))
    given = columns(call.filters)
    after = key_in(call.filters.cursor, "jobTrigger", given)
    seen = seen_by(by_columns(given), call.seen(Permission.TRIGGER_READ))
    if seen is None:
        return success(triggers=[], nextCursor=None)
    found = await call.engine.store.triggers.find(seen, after, call.filters.limit + 1)
    triggers, cursor = page("jobTrigger", given, found, call.filters.limit, lambda each: [each.trigger_id])
    if call.filters.trigger_id is not None and triggers:
        triggers = [await _whole(call.engine, call.filters.trigger_id)]
    return success(triggers=triggers, nextCursor=cursor)


async def tell_health(call: Call[TriggerFilters]) -> Response:
    """GET without a key: health alone."""
    if await call.engine.faults():
        raise Unhealthy
    return success()


async def _whole(engine: Engine, trigger_id: str) -> Trigger:
    """A trigger with its attempts, and with what it waits for."""
    trigger = await engine.store.triggers.get(trigger_id)
    if trigger.state is not State.QUEUED:
        return trigger
    facts = await engine.store.triggers.circumstances(trigger_id, engine.clock.now(), engine.default_cluster)
    return trigger if facts is None else trigger.model_copy(update={"waits_for": reasons(facts)})


def by_columns(given: Mapping[str, Any]) -> dict[str, Any]:
    """Filters as the store takes them: several states, or one, are a list."""
    filters = dict(given)
    if (state := filters.pop("state", None)) is not None:
        filters["states"] = [State(each) for each in state.split(",")]
    return filters


async def create(call: Call[Query]) -> Response:
    """POST: run now."""
    engine = call.engine
    async with named_too(engine, call.body, "triggers", call.seen(Permission.JOB_READ)):
        request: TriggerRequest = BODY.read(call.body)
    call.principal.require(Permission.TRIGGER_CREATE, application=request.application)
    trigger, created = await engine.store.triggers.create(
        NewTrigger(
            trigger_id=new_id(),
            application=request.application,
            job_name=request.job_name,
            parameters=request.parameters,
            run_at=request.run_at,
            priority=request.priority,
            idempotency_key=_agreed_key(call, request),
            requested_by="api",
            reason=request.reason,
            nominal_time=request.nominal_time,
            dependents=request.dependents,
            trace=caller().trace,
        ),
        engine.clock.now(),
    )
    where = {"location": f"{BASE}/jobTrigger?triggerId={trigger.trigger_id}"}
    return success(201 if created else 200, where, trigger=trigger)


async def cancel(call: Call[TriggerTarget]) -> Response:
    """DELETE: at once when queued, by stopping it when it runs."""
    engine = call.engine
    if call.principal.scope(Permission.TRIGGER_CANCEL) is not None:
        of = await engine.store.triggers.get(call.filters.trigger_id)
        call.require_of(Permission.TRIGGER_CANCEL, of.application, Permission.TRIGGER_READ, TriggerNotFound)
    trigger = await engine.store.triggers.cancel(call.filters.trigger_id, engine.clock.now())
    engine.stop_attempts()
    engine.wake_dispatcher()
    engine.wake_chainer()
    return success(202, trigger=trigger)


def _agreed_key(call: Call[Query], request: TriggerRequest) -> str | None:
    key = call.idempotency_key
    if key is None:
        return request.idempotency_key
    if request.idempotency_key not in {None, key}:
        sentence = "The header and idempotencyKey in the body differ; give one of them."
        raise Malformed(faults=[Fault("Idempotency-Key", sentence)])
    try:
        return _KEY.validate_python(key)
    except ValidationError as error:
        sentence = "Give 1 to 256 printable ASCII characters."
        raise Malformed(faults=[Fault("Idempotency-Key", sentence)]) from error


OPERATIONS = (
    Operation(
        "GET",
        "Check health and list triggers",
        Permission.TRIGGER_READ,
        find,
        TriggerFilters,
        {200: {"triggers": list[Trigger], "nextCursor": str | None}},
        description="The health check: 200 with `status` `success` whenever the service is healthy, and 503 saying "
        "what is wrong when the store does not answer or a loop has stalled. An unknown job is no error: it has no "
        "triggers. The newest come first. With `triggerId` the trigger comes with its attempts and, while it is "
        "queued, with everything that it waits for. A caller without a key and a filter gets the `status` alone.",
        keyless=tell_health,
        errors=(StoreUnreachable, Unhealthy),
    ),
    Operation(
        "POST",
        "Run a job now",
        Permission.TRIGGER_CREATE,
        create,
        Query,
        {200: {"trigger": Trigger}, 201: {"trigger": Trigger}},
        description="201 with a new trigger, 200 with the earlier one when the idempotency key was used before.",
        body=TriggerRequest,
        examples={
            "plain": {"application": "shop", "jobName": "nightly-export"},
            "with parameters": {
                "application": "shop",
                "jobName": "nightly-export",
                "parameters": {"day": "2026-11-19"},
                "idempotencyKey": "order-4711",
                "reason": "rerun after a fix",
            },
        },
        headers={
            "Idempotency-Key": ("The same as `idempotencyKey` in the body.", "order-4711"),
            "traceparent": (
                "The span that asks, by W3C Trace Context: the job's process goes on with its trace.",
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            ),
        },
        answer_headers={
            "Location": ("Where the trigger can be read.", f"{BASE}/jobTrigger?triggerId={EXAMPLE_ID}"),
        },
        errors=(JobNotFound, JobIsDisabled, Invalid),
    ),
    Operation(
        "DELETE",
        "Cancel a trigger",
        Permission.TRIGGER_CANCEL,
        cancel,
        TriggerTarget,
        {202: {"trigger": Trigger}},
        description="A queued trigger is cancelled at once. A running one gets SIGTERM, and SIGKILL after the job's "
        "`gracePeriodSeconds`; it is cancelled when it has ended.",
        target_in_body=True,
        errors=(TriggerNotFound, TriggerIsFinished),
    ),
)
