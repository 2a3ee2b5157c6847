"""Foresight: which times of a schedule are decided before they come, because they cannot come out otherwise.

Never decides what becomes of a time (`schedule.decide` does). Invariants: what is decided ahead is a fire and nothing
else; whatever may yet end, begin or be found missing before its time is left until then.

>>> facts = Circumstances(now=None, unfinished=1)
>>> is_open(Schedule(application="a", job_name="j", expression="* * * * *"), facts)
False
"""

from clickclock.scheduler.times.schedule import Circumstances, Decision, OverlapPolicy, Schedule

HORIZON_S = 0.5
"""What is due within this is planned in one go, when the first of it is half of it away: so five of twenty fires a
second share a plan, and a thousand that are due together are planned when their time comes. An edit waits so long."""


def is_open(schedule: Schedule, facts: Circumstances) -> bool:
    """Whether nothing that is known now stands in the way of its next time."""
    if schedule.paused or facts.group_paused or not facts.job_enabled:
        return False
    match schedule.overlap_policy:
        case OverlapPolicy.ALLOW:
            return True
        case OverlapPolicy.SKIP:
            return not facts.unfinished
        case _:
            return False


def is_certain(decision: Decision) -> bool:
    """Whether a decision about a time that has not come is one fire that waits for nobody."""
    if decision.skips or decision.replace or len(decision.fires) != 1:
        return False
    return not decision.fires[0].serial
