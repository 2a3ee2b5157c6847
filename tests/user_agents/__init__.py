"""User agents of programs, of people and of servers, in the forms in which they are met: one a line."""

from pathlib import Path

BOTS, PEOPLE, SERVERS = (
    (Path(__file__).parent / f"{kind}.txt").read_text().splitlines() for kind in ("bots", "people", "servers")
)
"""Previewers of links, scanners of mail, those who look at ads, crawlers; browsers and apps; libraries for HTTP."""
