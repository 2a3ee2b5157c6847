"""The time zone of this machine, by its IANA name, as cron has it.

Never guesses: where no name can be found, it says so. Invariant: the name found means the times that the machine's
clock shows.

>>> machine_zone({"TZ": ":Europe/Berlin"})
'Europe/Berlin'
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from clickclock.foundation.errors import ConfigurationError, Fault

_NO_ZONES: Final = frozenset({"localtime", "Factory", "posixrules"})
_YEARS: Final = range(2015, 2038)
"""Rules of the past that were corrected since do not matter to a crontab."""
_TABLE: Final = "zone1970.tab"
"""Names the zone of each region; other names with the same content are older ones."""


def machine_zone(environment: Mapping[str, str], root: Path = Path("/")) -> str:
    """The zone: of `TZ`, else of /etc/localtime, a link, a copy or mounted, else of /etc/timezone.

    Raises `ConfigurationError` where none of them names one.
    """
    names = available_timezones() - _NO_ZONES
    said = environment.get("TZ", "").removeprefix(":")
    if said:
        zone = said.rpartition("zoneinfo/")[2]
        if zone in names:
            return zone
        raise _unknown(f"TZ is {said!r}, which is no IANA name")
    clock, noted = root / "etc/localtime", _noted(root / "etc/timezone")
    linked = str(clock.resolve()).rpartition("zoneinfo/")[2] if clock.is_symlink() else ""
    if linked in names:
        return linked
    try:
        content = clock.read_bytes()
    except OSError:
        if noted in names:
            return noted
        raise _unknown("neither TZ nor /etc/localtime nor /etc/timezone says it") from None
    alike = sorted(name for name in names if content in _contents(root, name)) or _like(content, names)
    if not alike:
        raise _unknown("/etc/localtime is no zone that is known here")
    regions = _regions(root)
    return noted if noted in alike else next((name for name in alike if name in regions), alike[0])


def _like(content: bytes, names: frozenset[str] | set[str]) -> list[str]:
    """The zones that show the same times as a file of another release: at each noon and midnight of `_YEARS`."""
    try:
        zone = ZoneInfo.from_file(BytesIO(content))
    except ValueError:
        return []
    begin = datetime(_YEARS[0], 1, 1, tzinfo=UTC)
    instants = [begin + timedelta(hours=12 * number) for number in range(len(_YEARS) * 731)]
    shown = [zone.utcoffset(each) for each in (instant.astimezone(zone) for instant in instants)]

    def is_like(name: str) -> bool:
        other = ZoneInfo(name)
        return all(
            instant.astimezone(other).utcoffset() == offset for instant, offset in zip(instants, shown, strict=True)
        )

    return sorted(filter(is_like, names))


def _unknown(why: str) -> ConfigurationError:
    sentence = f"The zone of this machine is not known: {why}. Give --time-zone, such as Europe/Berlin."
    return ConfigurationError(faults=[Fault("--time-zone", sentence)])


def _noted(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _contents(root: Path, name: str) -> list[bytes]:
    """What files of a zone have: the system's, and those that come with the program."""
    places = (root / "usr/share/zoneinfo", files("tzdata") / "zoneinfo")
    found = []
    for place in places:
        try:
            found.append(place.joinpath(*name.split("/")).read_bytes())
        except OSError:
            continue
    return found


def _regions(root: Path) -> frozenset[str]:
    """The names of zones that are nobody's alias, as far as a table says it."""
    for place in (root / "usr/share/zoneinfo", files("tzdata") / "zoneinfo"):
        try:
            lines = (place / _TABLE).read_text(encoding="utf-8").splitlines()
        except OSError:
            continue
        return frozenset({"Etc/UTC", *(line.split("\t")[2] for line in lines if line and not line.startswith("#"))})
    return frozenset()
