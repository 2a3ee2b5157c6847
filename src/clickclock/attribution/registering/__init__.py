"""Registering: what is kept of a request: accepted clicks, identifications and refusals, and how they are shown again.

Never does I/O: the journal keeps them. `check` says what the collector would make of a query, and keeps nothing.
"""
