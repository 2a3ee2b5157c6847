r"""What stands in a template: a name, and filters that move a time or write it as a text.

Never runs anything, and never gives a value (`template_values.py`): a name is one of a fixed list, a filter is one of
four, and an argument is a number, a text or `zone`. Invariants: what was read without a fault can be given a value
wherever the run has one; every fault of a template is named at once.

>>> read("nominalTime | add(days=-1) | date('%Y-%m-%d')").shifts
(Shift(amounts=(('days', -1),), zone=None),)
"""

import re
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache

import msgspec

from clickclock.foundation.errors import Invalid
from clickclock.foundation.zone import zone_named

PARAMETER = "parameters."
NEIGHBOURS = ("previousNominalTime", "nextNominalTime")
TIMES = ("nominalTime", *NEIGHBOURS)
BUILT_IN_TEMPLATES = (*TIMES, "zone", "triggerId", "attempt")
TEMPLATES_KEPT = 4096
SHIFT_MAX = timedelta(days=36_600)
"""A hundred years: more is a slip of the pen, and would leave the years that dates have."""
EARLIEST, LATEST = datetime(1, 1, 3, tzinfo=UTC), datetime(9999, 12, 29, tzinfo=UTC)
"""Within these an instant has a local time in every zone."""

_UNITS = {
    "years": timedelta(days=365.25),
    "months": timedelta(days=30.5),
    "weeks": timedelta(weeks=1),
    "days": timedelta(days=1),
    "hours": timedelta(hours=1),
    "minutes": timedelta(minutes=1),
    "seconds": timedelta(seconds=1),
}
DEFAULT_FORM = "default('2026-01-01T00:00:00Z')"
_FORMS = {
    "date": "date('%Y-%m-%d') or date('%Y-%m-%d', 'Europe/Berlin')",
    "add": "add(days=1) or add(months=1, zone='Europe/Berlin')",
    "subtract": "subtract(days=1) or subtract(hours=2)",
    "default": DEFAULT_FORM,
}
_PLAIN_DIRECTIVES = "mdHMSjybBaAuwVGUWIpfzZ"
_DIRECTIVES = f"Y{_PLAIN_DIRECTIVES}FTs%"
DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)

_STEP = re.compile(
    r"\s*\|\s*(?P<filter>[A-Za-z_]\w*)?\s*(?P<call>\((?P<arguments>(?:[^()'\"]|'[^']*'|\"[^\"]*\")*)\))?\s*"
)
_ARGUMENT = re.compile(
    r"\s*(?:(?P<key>[A-Za-z_]\w*)\s*=\s*)?"
    r"(?:(?P<number>[+-]?\d{1,12})|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<word>[A-Za-z_]\w*))\s*(?:,|\Z)",
    re.ASCII,
)


class Shift(msgspec.Struct, frozen=True):
    """Moves a time; `zone` is whose calendar counts, None is the schedule's."""

    amounts: tuple[tuple[str, int], ...]
    zone: str | None = None


class Form(msgspec.Struct, frozen=True):
    """Writes a time as a text, on the clock of `zone`; None is the schedule's."""

    format: str
    zone: str | None = None


class Expression(msgspec.Struct, frozen=True):
    """The parts of a template's text. `faults` are sentences that go into one about the template."""

    name: str
    default: datetime | None = None
    shifts: tuple[Shift, ...] = ()
    form: Form | None = None
    faults: tuple[str, ...] = ()

    @property
    def asks_schedule(self) -> bool:
        """Whether its value depends on the schedule of the run."""
        zones = [each.zone for each in self.shifts] + ([self.form.zone] if self.form else [])
        return self.name in {*NEIGHBOURS, "zone"} or None in zones


@lru_cache(TEMPLATES_KEPT)
def read(text: str) -> Expression:
    """The parts of a template's text, and what is wrong with its filters; whether its name exists is not asked."""
    name, pipe, _ = text.partition("|")
    return _Reader(name.strip()).read(text, len(name)) if pipe else Expression(name.strip())


class _Word(msgspec.Struct, frozen=True):
    """A bare word among arguments."""

    text: str


_Given = int | str | _Word
_Arguments = list[tuple[str | None, _Given]]
"""The arguments of a filter, each with its key if it has one."""


class _Reader:
    """Reads the filters behind a name, and keeps what is wrong with each."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._default: datetime | None = None
        self._shifts: list[Shift] = []
        self._form: Form | None = None
        self._faults: list[str] = []

    def read(self, text: str, at: int) -> Expression:
        is_ours = self._name in BUILT_IN_TEMPLATES or self._name.startswith(PARAMETER)
        if is_ours and self._name not in TIMES:
            self._faults.append(f"filters take a time, and {self._name} is none; times are {', '.join(TIMES)}")
        while at < len(text):
            found = _STEP.match(text, at)
            if found is None or found["filter"] is None or found["call"] is None:
                self._faults.append(_unreadable(text[at:], found and found["filter"]))
                break
            at = found.end()
            arguments = _arguments(found["filter"], found["arguments"], self._faults)
            if arguments is not None:
                self._take(found["filter"], arguments)
        return Expression(self._name, self._default, tuple(self._shifts), self._form, tuple(self._faults))

    def _take(self, kind: str, arguments: _Arguments) -> None:
        if kind not in _FORMS:
            hint = nearest(kind, _FORMS) or f"known are {', '.join(_FORMS)}"
            self._faults.append(f"there is no filter {shown(kind)}: {hint}")
            return
        if self._form is not None:
            self._faults.append(f"{kind} stands after date, which has made a text of the time; put date last")
        match kind:
            case "date":
                self._form = _form(arguments, self._faults)
            case "default":
                if self._name not in NEIGHBOURS or self._shifts:
                    names = " or ".join(NEIGHBOURS)
                    self._faults.append(f"default stands directly after {names}: no other time can be missing")
                self._default = _instant(arguments, self._faults)
            case _:
                self._shifts.append(_shift(kind, arguments, self._faults))


def _unreadable(rest: str, kind: str | None) -> str:
    if kind in _FORMS:
        return f"{kind} is not written completely: write {_FORMS[kind]}"
    return f"{shown(rest.strip())} cannot be read: write | and a filter, such as | {_FORMS['date']}"


def _arguments(kind: str, text: str, faults: list[str]) -> _Arguments | None:
    """What stands between the brackets of a filter; None, and a fault, if it cannot be read."""
    found: _Arguments = []
    at = 0
    while text[at:].strip():
        each = _ARGUMENT.match(text, at)
        if each is None:
            form = f"write {_FORMS[kind]}" if kind in _FORMS else "give numbers, or texts in quotes"
            faults.append(f"{shown(kind)}({shown(text.strip())}) cannot be read: {form}")
            return None
        at = each.end()
        quoted = each["single"] if each["single"] is not None else each["double"]
        bare = _Word(each["word"]) if each["word"] else quoted
        found.append((each["key"], bare if each["number"] is None else int(each["number"])))
    return found


def _zone(value: _Given, faults: list[str]) -> str | None:
    """The zone that an argument names; None is the schedule's."""
    if value == _Word("zone"):
        return None
    if not isinstance(value, str):
        faults.append("a zone is zone, which is the schedule's, or a name in quotes such as 'Europe/Berlin'")
        return None
    try:
        zone_named(value)
    except Invalid as invalid:
        faults += [each.message.rstrip(".") for each in invalid.faults]
        return None
    return value


def _form(arguments: _Arguments, faults: list[str]) -> Form:
    keyless = [value for key, value in arguments if key is None]
    zones = [value for key, value in arguments if key == "zone"] + keyless[1:]
    wrong = any(key not in {None, "zone"} for key, _ in arguments)
    if not keyless or not isinstance(keyless[0], str) or len(zones) > 1 or wrong:
        faults.append(f"date takes a format in quotes, and perhaps a zone: write {_FORMS['date']}")
        return Form("")
    format_ = keyless[0]
    unknown = [f"%{found}" for found in DIRECTIVE.findall(format_) if not found or found not in _DIRECTIVES]
    if unknown:
        known = " ".join(f"%{each}" for each in _DIRECTIVES)
        faults.append(f"{', '.join(dict.fromkeys(unknown))} is no part of a format; known are {known}")
    elif "%" not in format_:
        faults.append(f"the format '{format_[:64]}' has no part such as %Y, %m, %d, %H, %M or %S")
    return Form(format_, _zone(zones[0], faults) if zones else None)


def _shift(kind: str, arguments: _Arguments, faults: list[str]) -> Shift:
    sign = -1 if kind == "subtract" else 1
    zone: str | None = None
    amounts: dict[str, int] = {}
    for key, value in arguments:
        if key == "zone":
            zone = _zone(value, faults)
        elif key not in _UNITS:
            hint = nearest(key or "", _UNITS) or f"name a unit: {', '.join(_UNITS)}"
            faults.append(f"{kind} cannot take {key or _spelled(value)}: {hint}; write {_FORMS[kind]}")
        elif not isinstance(value, int):
            faults.append(f"{kind} takes whole numbers, and {key} is {_spelled(value)}")
        elif key in amounts:
            faults.append(f"{kind} has {key} twice; give it once")
        elif abs(value) > SHIFT_MAX / _UNITS[key]:
            faults.append(f"{kind} moves a time by 100 years at most, and {key}={value} is more")
        else:
            amounts[key] = sign * value
    if not amounts and not faults:
        faults.append(f"{kind} says by how much: write {_FORMS[kind]}")
    return Shift(tuple(amounts.items()), zone)


def _instant(arguments: _Arguments, faults: list[str]) -> datetime | None:
    match arguments:
        case [(None, str(text))]:
            try:
                instant = datetime.fromisoformat(text)
            except ValueError:
                instant = None
            if instant is not None and instant.tzinfo is not None and EARLIEST < instant < LATEST:
                return instant
    faults.append(f"default takes one instant with its offset: write {_FORMS['default']}")
    return None


def _spelled(value: _Given) -> str:
    return value.text if isinstance(value, _Word) else repr(value)


def faults_of(text: str, parameter_names: Collection[str], *, remedy: str = "") -> Iterator[str]:
    """The faults of a template's text, a sentence each. `remedy` is another way out where a name is unknown.

    A name is one of `BUILT_IN_TEMPLATES`, or a parameter of `parameter_names`.
    """
    expression = read(text)
    known = [*BUILT_IN_TEMPLATES, *sorted(PARAMETER + name for name in parameter_names)]
    if expression.name not in known:
        hint = nearest(expression.name, known) or f"known are {', '.join(known)}"
        yield f"There is no template {{{{ {shown(expression.name)} }}}}: {hint}{remedy and ', '}{remedy}."
    for fault in expression.faults:
        yield f"The template {{{{ {shown(text)} }}}} cannot be filled in: {fault}."


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that somebody may have meant, as a hint."""
    found = get_close_matches(shown(name), known, n=1)
    return f"did you mean {found[0]}" if found else None


def shown(text: str) -> str:
    """As much of a name or an expression as a sentence repeats."""
    return text[:128]
