"""Declarations: applications with their jobs, schedules and groups as one document, and the JSON Schema of it.

Never does I/O and never writes a row. YAML files are read by `clickclock.files`.
"""
