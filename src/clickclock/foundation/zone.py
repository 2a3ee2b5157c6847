"""Time zones by their names in the IANA database; for a name that is none, the one that was meant.

Never computes a time. Invariant: a name is one of the database's own, in its own spelling.

>>> zone_named("Europe/Berlin").key
'Europe/Berlin'
"""

import re
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from clickclock.foundation.errors import Fault, Invalid

_OFFSET = re.compile(r"(?:GMT|UTC)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?", re.ASCII | re.IGNORECASE)
_ABBREVIATIONS = {
    "z": "UTC",
    **dict.fromkeys(("pst", "pdt", "pt"), "America/Los_Angeles"),
    **dict.fromkeys(("mdt", "mt"), "America/Denver"),
    **dict.fromkeys(("cst", "cdt", "ct"), "America/Chicago"),
    **dict.fromkeys(("edt", "et"), "America/New_York"),
    **dict.fromkeys(("bst",), "Europe/London"),
    **dict.fromkeys(("cest", "mez", "mesz"), "Europe/Berlin"),
    **dict.fromkeys(("eest",), "Europe/Athens"),
    **dict.fromkeys(("msk",), "Europe/Moscow"),
    **dict.fromkeys(("ist",), "Asia/Kolkata"),
    **dict.fromkeys(("sgt",), "Asia/Singapore"),
    **dict.fromkeys(("hkt",), "Asia/Hong_Kong"),
    **dict.fromkeys(("jst",), "Asia/Tokyo"),
    **dict.fromkeys(("kst",), "Asia/Seoul"),
    **dict.fromkeys(("aest", "aedt"), "Australia/Sydney"),
    **dict.fromkeys(("awst",), "Australia/Perth"),
    **dict.fromkeys(("nzst", "nzdt"), "Pacific/Auckland"),
    **dict.fromkeys(("brt",), "America/Sao_Paulo"),
    **dict.fromkeys(("sast",), "Africa/Johannesburg"),
}
"""Abbreviations that are no IANA names, each with the place that most people mean."""


@lru_cache(maxsize=1)
def _zone_names() -> dict[str, str]:
    """The zones there are, by lower-cased name. `localtime` would differ from machine to machine."""
    return {name.lower(): name for name in available_timezones() - {"localtime", "Factory"}}


def zone_named(name: str) -> ZoneInfo:
    """The zone of that IANA name. Raises `Invalid`, with the nearest name there is."""
    names = _zone_names()
    if names.get(name.lower()) == name:
        return ZoneInfo(name)
    raise Invalid(faults=[Fault("timeZone", f'There is no time zone "{name[:64]}"; {_advice(name[:64], names)}')])


def _advice(name: str, names: dict[str, str]) -> str:
    """What to write instead of a name that is none."""
    if place := _ABBREVIATIONS.get(name.lower()):
        return f'did you mean "{place}"?'
    if (offset := _OFFSET.fullmatch(name)) and (zone := _of_offset(offset)) in names.values():
        return (
            f'did you mean "{zone}"? In these names the sign is the other way round: west of Greenwich is plus. '
            'A place, such as "Europe/London", follows daylight saving.'
        )
    nearest = [] if offset else get_close_matches(name.lower(), names, n=1)
    return f'did you mean "{names[nearest[0]]}"?' if nearest else 'use an IANA name such as "Europe/London".'


def _of_offset(offset: re.Match[str]) -> str:
    """The zone with this offset from UTC; none has one of half an hour.

    >>> _of_offset(_OFFSET.fullmatch("UTC+03:00"))
    'Etc/GMT-3'
    """
    if int(offset["minutes"] or 0):
        return ""
    hours = int(offset["hours"])
    return f"Etc/GMT{'-' if offset['sign'] == '+' else '+'}{hours}" if hours else "UTC"
