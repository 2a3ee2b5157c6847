"""Clickclock: a scheduler that never loses or doubles a run, and attribution that says why."""
