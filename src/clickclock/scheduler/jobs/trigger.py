"""A trigger: one decision to run a job once; and its attempts, each one try at it.

Never decides when something is due (`schedule.py`) and never starts anything (`dispatcher.py`).
Invariants: a state changes only along `TRANSITIONS`; every ending goes through `conclude`;
an attempt's name is `<triggerId>-<attempt>`.

>>> State.RUNNING in TRANSITIONS[State.STARTING]
True
"""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from msgspec.structs import replace
from pydantic import Field

from clickclock.foundation.record import Instant, Record
from clickclock.foundation.trace_context import TraceContext
from clickclock.scheduler.jobs.retry import RetryRule
from clickclock.scheduler.jobs.waiting import Wait


class State(StrEnum):
    """Where a trigger stands."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timedOut"
    CANCELLED = "cancelled"
    LOST = "lost"
    SKIPPED = "skipped"


KEY_PATTERN = r"^[\x20-\x7e]+$"
"""What an idempotency key is made of: it has to go through a header."""
STATES_PATTERN = f"^({'|'.join(State)})(,({'|'.join(State)}))*$"
"""One state, or several with commas between."""

_RETRYABLE = frozenset({State.QUEUED})
TRANSITIONS: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.STARTING, State.SKIPPED, State.CANCELLED}),
    State.STARTING: frozenset(
        {State.RUNNING, State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.CANCELLED, State.LOST, State.QUEUED}
    ),
    State.RUNNING: frozenset(
        {State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.CANCELLED, State.LOST, State.QUEUED}
    ),
    State.FAILED: _RETRYABLE,
    State.TIMED_OUT: _RETRYABLE,
    State.LOST: _RETRYABLE,
    State.SUCCEEDED: frozenset(),
    State.CANCELLED: frozenset(),
    State.SKIPPED: frozenset(),
}
"""What may follow what. An attempt that ended before it was seen running goes from starting straight to its end."""

LIVE = frozenset({State.STARTING, State.RUNNING})
"""States that hold a concurrency slot."""
UNFINISHED = LIVE | {State.QUEUED}
FINISHED = frozenset(State) - UNFINISHED


class Kind(StrEnum):
    """What decided that the job should run."""

    MANUAL = "manual"
    SCHEDULE = "schedule"
    BACKFILL = "backfill"
    DEPENDENCY = "dependency"


class SkipReason(StrEnum):
    """Why a nominal time did not become a run."""

    OVERLAP = "overlap"
    CATCH_UP_WINDOW = "catchUpWindow"
    PAUSED = "paused"
    EXCLUDED = "excluded"
    DST_GAP = "dstGap"
    JOB_DISABLED = "jobDisabled"
    GROUP_PAUSED = "groupPaused"
    UPSTREAM_FAILED = "upstreamFailed"
    UPSTREAM_SKIPPED = "upstreamSkipped"
    UPSTREAM_SUCCEEDED = "upstreamSucceeded"


BY_UPSTREAM = frozenset({SkipReason.UPSTREAM_FAILED, SkipReason.UPSTREAM_SKIPPED, SkipReason.UPSTREAM_SUCCEEDED})
"""Skips that an upstream's end decided; a later end in the same run may decide otherwise."""


class When(StrEnum):
    """How an upstream has to end before a dependent runs."""

    SUCCEEDED = "succeeded"
    FINISHED = "finished"
    FAILED = "failed"
    ANY_SUCCEEDED = "anySucceeded"


class ExitKind(StrEnum):
    """How an attempt ended, as the executor saw it."""

    CODE = "code"
    SIGNAL = "signal"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    LOST = "lost"
    NOT_STARTED = "notStarted"
    DISRUPTED = "disrupted"
    UNSTARTED = "unstarted"


DISRUPTIONS_MAX = 20
"""How often a cluster may take an attempt's place away before that counts as a failure: some jobs are what their nodes
run short of."""
_NOBODYS_FAULT = frozenset({ExitKind.DISRUPTED, ExitKind.UNSTARTED})
STOP_SIGNALS = frozenset({15, 9})
"""The signals by which attempts are stopped: SIGTERM, and SIGKILL when the grace period is over."""
NEVER_STARTED = "Stopped before it was started."
"""The message of an attempt that was stopped so early."""


class StopReason(StrEnum):
    """Why the scheduler asked for an attempt to be stopped."""

    CANCELLED = "cancelled"
    REPLACED = "replaced"
    PREEMPTED = "preempted"
    SHUTDOWN = "shutdown"


class NewTrigger(msgspec.Struct, frozen=True):
    """A call to run a job once. `parameters` are already filled in."""

    trigger_id: str
    application: str
    job_name: str
    parameters: dict[str, str]
    run_at: datetime | None = None
    priority: int | None = None
    idempotency_key: str | None = None
    requested_by: str | None = None
    reason: str | None = None
    nominal_time: datetime | None = None
    dependents: bool = True
    trace: TraceContext | None = None


class Exit(msgspec.Struct, frozen=True):
    """The end of one attempt. `code` is set for `CODE`, `signal` for `SIGNAL`; the rest where it is known."""

    kind: ExitKind
    finished_at: datetime
    started_at: datetime | None = None
    code: int | None = None
    signal: int | None = None
    message: str | None = None
    cpu_seconds: float | None = None
    max_memory_bytes: int | None = None
    node: str | None = None
    """The machine that ran it, where that is not the one that watched over it."""

    def known_at(self, now: datetime) -> "Exit":
        """The same, not later than it is known: the clock that stamped it may be ahead, or have been set back since."""
        if self.finished_at <= now:
            return self
        return replace(self, finished_at=now, started_at=self.started_at and min(self.started_at, now))


def attempt_name(trigger_id: str, attempt: int) -> str:
    """The deterministic name by which every executor's start is idempotent."""
    return f"{trigger_id}-{attempt}"


def parse_attempt_name(name: str) -> tuple[str, int]:
    """The trigger id and attempt number in a name; the inverse of `attempt_name`."""
    trigger_id, _, attempt = name.rpartition("-")
    return trigger_id, int(attempt)


class Conclusion(msgspec.Struct, frozen=True):
    """What an exit means for its trigger: the attempt's final state, and when to try again, if at all."""

    state: State
    message: str | None
    retry_at: datetime | None = None
    uses_up_retry: bool = True
    is_awaited: bool = False
    """Whether it is final and other jobs depend on it; the store knows."""
    failed_schedule: str | None = None
    """The schedule of which a trigger has failed for good; the store knows."""


def conclude(
    exit_: Exit,
    *,
    attempt: int,
    max_attempts: int,
    stop_reason: StopReason | None,
    rule: RetryRule,
    fraction: float,
    preemption_count: int = 0,
) -> Conclusion:
    """Decide an ending: every attempt, however it ended, is judged here and nowhere else.

    `attempt` counts from 1, without those that used up no retry, which `preemption_count` counts; `fraction` in [0, 1)
    spreads the back-off (full jitter).
    """
    state, message = _judge(exit_, stop_reason, rule)
    if exit_.kind in _NOBODYS_FAULT and stop_reason is None and preemption_count < DISRUPTIONS_MAX:
        # Later each time: a cluster that had no room a moment ago has none now. An attempt that was only held can
        # start.
        is_full = exit_.kind is ExitKind.DISRUPTED
        delay_s = rule.delay_s(preemption_count + 1, fraction) if is_full else 0.0
        retry_at = exit_.finished_at + timedelta(seconds=delay_s)
        return Conclusion(State.QUEUED, message, retry_at=retry_at, uses_up_retry=False)
    if state is State.QUEUED:
        return Conclusion(state, message, retry_at=exit_.finished_at, uses_up_retry=False)
    wanted_over = stop_reason not in {None, StopReason.PREEMPTED}
    if state in {State.SUCCEEDED, State.CANCELLED} or wanted_over or attempt >= max_attempts:
        return Conclusion(state, message)
    if not rule.allows(exit_.code):
        return Conclusion(state, message)
    delay_s = rule.delay_s(attempt, fraction)
    return Conclusion(state, message, retry_at=exit_.finished_at + timedelta(seconds=delay_s))


def _judge(exit_: Exit, stop_reason: StopReason | None, rule: RetryRule) -> tuple[State, str | None]:
    kind = exit_.kind if exit_.kind is not ExitKind.UNSTARTED else ExitKind.DISRUPTED
    if kind is ExitKind.SIGNAL and stop_reason is not None and exit_.signal in STOP_SIGNALS:
        # The process that asked it to end may be gone, and its request with it.
        kind = ExitKind.STOPPED
    match kind:
        case ExitKind.CODE if exit_.code in rule.success_exit_codes:
            return State.SUCCEEDED, exit_.message
        case ExitKind.CODE:
            return State.FAILED, exit_.message or f"The command ended with exit code {exit_.code}."
        case ExitKind.TIMEOUT:
            return State.TIMED_OUT, exit_.message or "The command ran longer than timeoutSeconds and was stopped."
        case ExitKind.DISRUPTED if stop_reason is None:
            return State.LOST, exit_.message or "The cluster took the attempt's place away."
        case ExitKind.STOPPED | ExitKind.DISRUPTED if stop_reason is StopReason.PREEMPTED:
            return State.QUEUED, "Preempted to make room for a trigger of higher priority."
        case ExitKind.STOPPED | ExitKind.DISRUPTED if stop_reason is StopReason.REPLACED:
            return State.CANCELLED, "Replaced by the schedule's next time."
        case ExitKind.STOPPED | ExitKind.DISRUPTED if stop_reason is StopReason.SHUTDOWN:
            return State.CANCELLED, "Stopped with the service (--stop-jobs)."
        case ExitKind.STOPPED | ExitKind.DISRUPTED:
            return State.CANCELLED, exit_.message or "Cancelled."
        case ExitKind.SIGNAL:
            return State.FAILED, exit_.message or f"The command was ended by signal {exit_.signal}."
        case ExitKind.NOT_STARTED:
            return State.FAILED, exit_.message or "The command could not be started."
        case ExitKind.LOST:
            return State.LOST, exit_.message or "The attempt vanished; its exit is unknown."


class Attempt(Record):
    """One try at a trigger."""

    attempt: int = Field(description="Its number, from 1.", examples=[1])
    state: State = Field(description="How it ended, or where it stands.", examples=["succeeded"])
    started_at: Instant | None = Field(None, description="When its process started.")
    finished_at: Instant | None = Field(None, description="When it ended.")
    exit_code: int | None = Field(None, description="Exit code, if it ended by itself.", examples=[0])
    signal: int | None = Field(None, description="The signal that ended it.", examples=[9])
    message: str | None = Field(None, description="What there is to say about its end.")
    cluster: str | None = Field(None, description="The cluster that ran it.", examples=["local"])
    node: str | None = Field(None, description="The machine that ran it.", examples=["web-1"])
    cpu_seconds: float | None = Field(None, description="Processor time used.", examples=[0.25])
    max_memory_bytes: int | None = Field(
        None,
        description="Most memory used at once; of a process at least some 11 MB, which what starts it takes.",
        examples=[12_582_912],
    )
    preempted_by: str | None = Field(None, description="The trigger that it made room for.")


class UpstreamTrigger(Record):
    """What an upstream job did in the same run, when it was last looked at."""

    application: str = Field(description="The upstream job's application.", examples=["shop"])
    job_name: str = Field(description="The upstream job.", examples=["extract"])
    trigger_id: str | None = Field(None, description="Its trigger; null before there is one.")
    state: State | None = Field(None, description="Where that stood.", examples=["succeeded"])
    when: When = Field(When.SUCCEEDED, description="How it had to end.", examples=["succeeded"])


class Trigger(Record):
    """One decision to run a job once, and what became of it."""

    trigger_id: str = Field(description="Unique id; newer ids sort after older ones.")
    kind: Kind = Field(description="What decided it.", examples=["schedule"])
    application: str = Field(description="The job's application.", examples=["shop"])
    job_name: str = Field(description="The job.", examples=["nightly-export"])
    schedule_id: str | None = Field(None, description="The schedule that decided it.")
    backfill_id: str | None = Field(None, description="The backfill that decided it.")
    group_name: str | None = Field(None, description="The job's group.", examples=["exports"])
    state: State = Field(description="Where it stands.", examples=["succeeded"])
    skip_reason: SkipReason | None = Field(None, description="Why its time did not become a run.")
    skipped_count: int | None = Field(None, description="Times that share this row, if more than one was skipped.")
    skipped_through: Instant | None = Field(None, description="The last of the times that share this row.")
    nominal_time: Instant | None = Field(None, description="The instant at which the schedule says the job is due.")
    run_id: str | None = Field(
        None,
        description="What it and the triggers of dependent jobs have in common: the nominal time, or the id of the "
        "trigger that was asked for; null where nothing depends on it by call.",
        examples=["2026-11-20T02:30:00.000Z"],
    )
    upstream: list[UpstreamTrigger] | None = Field(
        None, description="What it waits for or ran after, where its job depends on others."
    )
    due_time: Instant = Field(description="Nominal time plus jitter; for a call, when it is to run.")
    queued_at: Instant = Field(description="When the decision was recorded; if that was ahead, when it is due.")
    started_at: Instant | None = Field(None, description="When the current or last attempt's process started.")
    finished_at: Instant | None = Field(None, description="When it ended for good.")
    lag_ms: int | None = Field(None, description="Start of the first attempt minus due time, in ms.", examples=[4])
    duration_ms: int | None = Field(None, description="End minus start of the last attempt, in ms.", examples=[1250])
    priority: int = Field(description="Higher starts first.", examples=[50])
    attempt: int = Field(description="Number of the current or last attempt; 0 before the first.", examples=[1])
    max_attempts: int = Field(description="Attempts that it may have.", examples=[1])
    retry_at: Instant | None = Field(None, description="When a queued trigger is tried again, or may first start.")
    exit_code: int | None = Field(None, description="Exit code of the last attempt.", examples=[0])
    signal: int | None = Field(None, description="Signal that ended the last attempt.", examples=[9])
    message: str | None = Field(None, description="What there is to say about its end.")
    stop_reason: StopReason | None = Field(None, description="Why it was asked to stop.", examples=["cancelled"])
    cluster: str | None = Field(None, description="The cluster that runs it.", examples=["local"])
    node: str | None = Field(None, description="The machine that runs it.", examples=["web-1"])
    image: str | None = Field(None, description="Container image, if any.", examples=["python:3.13"])
    resolved_command: list[str] | None = Field(
        None, description="The words that were run.", examples=[["python", "export.py"]]
    )
    parameters: dict[str, str] = Field(default_factory=dict, description="Values of its parameters.")
    cpu_seconds: float | None = Field(None, description="Processor time of all attempts.", examples=[0.25])
    max_memory_bytes: int | None = Field(
        None,
        description="Most memory that an attempt used; of a process at least some 11 MB, which what starts it takes.",
        examples=[12_582_912],
    )
    preemption_count: int = Field(
        0, description="How often it was preempted, or lost its place and uses up no retry.", examples=[0]
    )
    preempted_by: str | None = Field(None, description="The trigger that took its place last.")
    requested_by: str | None = Field(None, description="Who asked for it.", examples=["api"])
    reason: str | None = Field(None, description="Why it was asked for.", examples=["rerun after a fix"])
    idempotency_key: str | None = Field(None, description="The key that makes a repeated call harmless.")
    traceparent: str | None = Field(
        None,
        description="The span of a trace that asked for it, from the header `traceparent` of the call.",
        examples=["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
    )
    attempts: list[Attempt] | None = Field(None, description="Its attempts, where one trigger is asked for.")
    waits_for: list[Wait] | None = Field(
        None, description="Everything that a queued trigger waits for, where one trigger is asked for."
    )
