"""Insight: statistics, alarms, events and findings, computed from runs.

Never does I/O. Others use `statistics`, `ranking`, `grid`, `summary`, `alarm`, `event` and `finding`; `window` has the
hours and days in which statistics count.
"""
