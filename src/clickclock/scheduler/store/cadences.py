"""The schedules of runs, as far as their commands ask about them.

Never decides what a template means. Invariant: a run of a schedule is asked about that schedule, and a run that no
schedule asked for about those of its job.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.launch import depends_on_schedule
from clickclock.scheduler.jobs.template_values import Cadence
from clickclock.scheduler.store.jobs import keyed
from clickclock.scheduler.store.rows import planned_days, planned_schedule
from clickclock.scheduler.store.schema import calendar, schedule
from clickclock.scheduler.times.cadence import cadence_of
from clickclock.scheduler.times.calendar import Timetable

GONE = Cadence(None, lack="its schedule has been deleted")
_s = schedule.c
_ROWS = sa.select(
    _s.schedule_id, _s.application, _s.job_name, _s.definition, _s.created_at, calendar.c.definition.label("calendar")
).select_from(schedule.outerjoin(calendar))


def cadence_of_rows(rows: Sequence[Any]) -> Cadence:
    """What templates may ask of these schedules, each a row with `definition`, `created_at` and `calendar`."""
    try:
        return cadence_of([_timetable(row) for row in rows])
    except Invalid as invalid:  # its zone is gone from this machine: the planner says so
        return Cadence(None, lack=" ".join(each.message.rstrip(".") for each in invalid.faults))


def rows_of_job(connection: sa.Connection, application: str, job_name: str) -> Sequence[Any]:
    """The schedules of a job, as `cadence_of_rows` takes them."""
    return connection.execute(_ROWS.where(*keyed([(application, job_name)], schedule))).all()


def cadences(connection: sa.Connection, triggers: Sequence[tuple[Any, Job]]) -> dict[str, Cadence]:
    """By trigger id, for those of whose jobs a template asks; the others have none to be asked about.

    `triggers` are rows with `trigger_id`, `application`, `job_name` and `schedule_id`, each with its job.
    """
    asking = [row for row, its_job in triggers if depends_on_schedule(its_job)]
    if not asking:
        return {}
    ids = sorted({row.schedule_id for row in asking if row.schedule_id is not None})
    jobs = sorted({(row.application, row.job_name) for row in asking if row.schedule_id is None})
    by_id: dict[str, Any] = {}
    by_job: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    if ids:
        by_id = {row.schedule_id: row for row in connection.execute(_ROWS.where(_s.schedule_id.in_(ids)))}
    for condition in keyed(jobs, schedule):
        for row in connection.execute(_ROWS.where(condition).order_by(_s.schedule_id)):
            by_job[row.application, row.job_name].append(row)
    found: dict[str, Cadence] = {}
    for row in asking:
        if row.schedule_id is None:
            found[row.trigger_id] = cadence_of_rows(by_job[row.application, row.job_name])
        elif row.schedule_id in by_id:
            found[row.trigger_id] = cadence_of_rows([by_id[row.schedule_id]])
        else:
            found[row.trigger_id] = GONE
    return found


def _timetable(row: Any) -> Timetable:
    of = planned_schedule(row.definition)
    return of.timetable(row.created_at, planned_days(row.calendar, of.calendar_rule))
