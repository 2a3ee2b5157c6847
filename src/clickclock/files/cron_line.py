"""One line of a crontab: what cron would refuse in its times, and whether its command needs a shell.

Never reads a whole crontab (`crontab.py`). Invariant: what is not refused means the same to Debian's cron and to a
schedule.

>>> expression_fault("0 24 * * *")
'The hour is 24; give 0-23.'
"""

import re

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    ("day of week", 0, 7, {name: number for number, name in enumerate(_WEEKDAYS)}),
)
_NICKNAMES = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_PART = re.compile(r"(?P<first>\*|\w{1,64})(?:-(?P<last>\w{1,64}))?(?:/(?P<step>\w{1,64}))?", re.ASCII)

_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./ \t=-]+")
_BUILT_INS = re.compile(
    r"[.:]|alias|break|case|cd|command|continue|eval|exec|exit|export|for|hash|if|local|read|readonly|return|set|shift|"
    r"source|time|times|trap|type|ulimit|umask|unset|until|wait|while"
)


def expression_fault(expression: str) -> str | None:
    """What cron would say against five fields or a nickname; None if nothing."""
    if expression.startswith("@"):
        known = ", ".join(sorted(_NICKNAMES))
        return None if expression in _NICKNAMES else f"cron knows no {expression}; use one of {known}, or five fields."
    for text, (title, low, high, names) in zip(expression.split(), _FIELDS, strict=True):
        for part in text.split(","):
            if fault := _part_fault(part, title, low, high, names):
                return fault
    return None


def kept(expression: str) -> tuple[str, list[str]]:
    """The expression with no step longer than its field, at the same times as cron's; and a note for each that was.

    >>> kept("*/90 * * * *")[0]
    '*/60 * * * *'
    """
    if expression.startswith("@"):
        return expression, []
    fields, notes = [], []
    for text, (title, low, high, names) in zip(expression.split(), _FIELDS, strict=True):
        parts = []
        for part in text.split(","):
            found = _PART.fullmatch(part)
            assert found is not None  # else cron refuses it
            bounds, _, step = part.partition("/")
            words = [word for word in bounds.lower().split("-") if word != "*"]
            values = [int(word) if word.isdecimal() else names[word] for word in words]
            first, last = (values[0], values[-1]) if values else (low, 6 if title == "day of week" else high)
            longest = last - first + 1
            if step and int(step) > longest:
                notes.append(
                    f"The step of the {title} {part} is longer than its {longest} values: cron runs it at {first} "
                    f"alone, and so does the schedule. If every {int(step)} of them are meant, use an interval."
                )
                part = f"{bounds}/{longest}"  # noqa: PLW2901 (the same part, as it is kept)
            parts.append(part)
        fields.append(",".join(parts))
    return " ".join(fields), notes


def _part_fault(part: str, title: str, low: int, high: int, names: dict[str, int]) -> str | None:
    allowed = f"{low}-{high}" + (" or a name such as " + next(iter(names)) if names else "")
    found = _PART.fullmatch(part)
    if found is None or (found["first"] == "*" and found["last"]):
        return f"The {title} is {part or 'empty'}; give *, {allowed}, a range such as 1-5, or several with commas."
    if found["step"] is not None:
        if not found["step"].isdecimal() or int(found["step"]) == 0:
            return f"The step of the {title} is {found['step']}; give a number of at least 1."
        if found["first"] != "*" and found["last"] is None:
            return f"The {title} is {part}, of which cron takes no step; give {found['first']}-{high}/{found['step']}."
    values = []
    for word in filter(None, (found["first"].replace("*", ""), found["last"])):
        value = int(word) if word.isdecimal() else names.get(word.lower())
        if value is None or not low <= value <= high:
            return f"The {title} is {word}; give {allowed}."
        values.append(value)
    if values != sorted(values):
        return f"The {title} is {part}, which ends before it begins; turn it round, or give two ranges."
    return None


def needs_shell(script: str) -> bool:
    """Whether a shell makes more of it than words."""
    words = script.split()
    return not words or not _PLAIN.fullmatch(script) or "=" in words[0] or _BUILT_INS.fullmatch(words[0]) is not None
