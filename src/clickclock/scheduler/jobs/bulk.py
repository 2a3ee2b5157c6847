"""A bulk action: the same done to many triggers or schedules, each with an answer of its own.

Never does it. Invariants: an action is only done to what can take it, by the states of `TAKES`; what it is done to is
one page of a list, so that whoever asks again with the cursor comes to the end of any number.

>>> BulkAction.CANCEL.takes([State.RUNNING, State.FAILED])
[<State.RUNNING: 'running'>]
"""

from collections.abc import Iterable
from enum import StrEnum

from pydantic import Field

from clickclock.foundation.errors import Fault, Invalid
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.jobs.job import Text
from clickclock.scheduler.jobs.trigger import FINISHED, UNFINISHED, Kind, State

ITEMS_MAX = 100
"""Items of one call: each is a transaction, and they share their commits."""
COUNTED_MAX = 10_000
"""Items that a dry run counts; a million would take seconds."""
_OF_SCHEDULES = frozenset({"application", "job_name", "schedule_id"})


class BulkAction(StrEnum):
    """The action."""

    CANCEL = "cancel"
    RUN_AGAIN = "runAgain"
    PAUSE = "pause"
    RESUME = "resume"

    @property
    def is_of_triggers(self) -> bool:
        """Whether it is done to triggers; else to schedules."""
        return self in TAKES

    def takes(self, states: Iterable[State]) -> list[State]:
        """Those of the states in which a trigger takes it."""
        return [each for each in states if each in TAKES[self]]


TAKES = {BulkAction.CANCEL: UNFINISHED, BulkAction.RUN_AGAIN: FINISHED}
"""In which states a trigger takes an action."""


class BulkFilter(Record):
    """Which triggers or schedules; those that meet all that is given."""

    application: str | None = Field(None, max_length=4096, description="Those of this application.", examples=["shop"])
    job_name: str | None = Field(None, max_length=4096, description="Those of jobs of this name.", examples=["export"])
    schedule_id: str | None = Field(
        None, max_length=4096, description="This schedule, or the triggers that it decided.", examples=["every-night"]
    )
    group_name: str | None = Field(
        None, max_length=4096, description="Triggers of jobs in this group.", examples=["exports"]
    )
    backfill_id: str | None = Field(
        None, max_length=4096, description="Triggers that this backfill made.", examples=[EXAMPLE_ID]
    )
    trigger_ids: list[str] = Field(
        default_factory=list,
        max_length=ITEMS_MAX,
        description="These triggers alone, as far as they meet the rest.",
        examples=[[EXAMPLE_ID]],
    )
    kind: Kind | None = Field(None, description="Triggers that were decided in this way.", examples=["manual"])
    states: list[State] = Field(
        default_factory=list,
        max_length=len(State),
        description="Triggers in these states; if none is given, in all that take the action.",
        examples=[["failed", "lost"]],
    )
    since: Instant | None = Field(None, alias="from", description="Triggers recorded at this time or later.")
    until: Instant | None = Field(None, alias="to", description="Triggers recorded before this time.")


_LISTS = frozenset({"states", "trigger_ids"})


class BulkRequest(Record):
    """An action, and the things that it is for."""

    action: BulkAction = Field(description="What is done.", examples=["runAgain"])
    filter: BulkFilter = Field(description="To what. It has to name something: an empty one is refused.")
    dry_run: bool = Field(False, description="Count by state, and do nothing.", examples=[True])
    limit: int = Field(ITEMS_MAX, ge=1, le=ITEMS_MAX, description="At most this many items in this call.")
    cursor: str | None = Field(
        None, max_length=8192, description="Where to go on: `nextCursor` of the answer before, with the same filter."
    )
    bulk_id: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        pattern=r"^[A-Za-z0-9._-]+$",
        description="A key of the whole: with `runAgain`, calls with the same one run each trigger again only once. "
        "The service makes one if none is given, and says it.",
        examples=["after-the-fix"],
    )
    reason: Text | None = Field(None, description="Why, for whoever looks later.", examples=["rerun after a fix"])

    def columns(self) -> dict[str, object]:
        """The filter as the store takes it."""
        given = {name: value for name, value in self.filter if value is not None and name not in _LISTS}
        if self.filter.trigger_ids:
            given["trigger_id"] = sorted(set(self.filter.trigger_ids))
        if self.action.is_of_triggers:
            given["states"] = self.filter.states or sorted(TAKES[self.action])
        return given

    def check(self) -> None:
        """Raise `Invalid` for a filter that the action does not take."""
        faults = []
        given = self.filter.model_fields_set
        if not given:
            faults.append(Fault("filter", "This names nothing; give at least an application, a job or a state."))
        if self.action.is_of_triggers:
            wrong = [each for each in self.filter.states if each not in TAKES[self.action]]
            if wrong:
                sentence = f"Triggers that are {', '.join(wrong)} do not take {self.action}; leave these states out."
                faults.append(Fault("filter.states", sentence))
        else:
            names = BulkFilter.model_fields
            faults += [
                Fault(f"filter.{names[name].alias or name}", f"{self.action} is done to schedules, which have no such.")
                for name in sorted(given - _OF_SCHEDULES)
            ]
        if self.filter.since and self.filter.until and self.filter.until <= self.filter.since:
            faults.append(Fault("filter.to", "This is not after filter.from; give a later time."))
        if faults:
            raise Invalid(faults=faults)


class BulkItem(Record):
    """What became of one item."""

    trigger_id: str | None = Field(description="The trigger that it was done to.", examples=[EXAMPLE_ID])
    schedule_id: str | None = Field(description="The schedule that it was done to.", examples=["every-night"])
    done: bool = Field(description="Whether it was done.", examples=[True])
    new_trigger_id: str | None = Field(description="With `runAgain`: the new trigger.", examples=[EXAMPLE_ID])
    code: str | None = Field(description="Why it was not done, for programs.", examples=["triggerIsFinished"])
    message: str | None = Field(description="Why it was not done, for people.")


class BulkCount(Record):
    """How many items a dry run found."""

    states: dict[str, int] = Field(
        description="How many in each state; of schedules, `paused` and `active`.", examples=[{"failed": 12}]
    )
    is_complete: bool = Field(description="False where more than 10,000 match, and counting ended.", examples=[True])
