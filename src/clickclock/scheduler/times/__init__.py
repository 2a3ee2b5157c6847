"""Times: when a schedule fires, by cron, RRULE or interval, in its zone, with calendars of business days.

Never does I/O. Others use `schedule` (a schedule and its decisions), `calendar` (an expression and its times),
`business_days`, `forecast`, `lookahead` (decided before they come), `backfill` and `wall_clock`. The files `cron_…` and
`rrule_…` are parts of `calendar`.
"""
