"""Clicks: what the query of a click says, by whose rules it is judged, and the entry that keeps it.

Never does I/O. This is the lowest room of attribution: it knows no other. `click.judge` is the door; `template` judges
many clicks of one form at once, with the same result.
"""
