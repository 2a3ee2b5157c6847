"""The faults of a request, in sentences: pydantic's findings, with what to do.

Never decides a status. Invariants: a field is named as its user wrote it, by its whole path (`[3].catchUp.policy`);
an unknown name comes with the nearest known one; one faulty field does not hide the faults of others.

>>> field_path((3, "catchUp", "policy"))
'[3].catchUp.policy'
"""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from clickclock.foundation.errors import Fault, Invalid
from clickclock.scheduler.jobs.image_mapping import IMAGE_PATTERN
from clickclock.scheduler.jobs.job import FOLDER_PATTERN, MEMORY_PATTERN, NAME_PATTERN
from clickclock.scheduler.jobs.notification import TARGET_PATTERN
from clickclock.scheduler.jobs.run_as import USER_PATTERN
from clickclock.scheduler.jobs.secret import FILE_PATTERN, SOURCE_PATTERN, VARIABLE_PATTERN
from clickclock.scheduler.jobs.trigger import KEY_PATTERN, STATES_PATTERN, State
from clickclock.scheduler.times.schedule import ID_PATTERN

WORD_PATTERN = r"^[^\x00]*$"
_NAME_SHOWN_CHARS_MAX = 64
_NAME_SENTENCE = (
    "Use up to 128 letters of ASCII, digits and ._/:@- or spaces, beginning with a letter or digit and not ending with "
    "a sign other than ._-"
)
_OF_PATTERNS = {
    NAME_PATTERN: _NAME_SENTENCE,
    STATES_PATTERN: f"Give one of {', '.join(State)}, or several with commas between",
    MEMORY_PATTERN: "Give bytes as Kubernetes writes them, such as 256Mi or 1G",
    ID_PATTERN: "Use letters, digits and ._- alone",
    KEY_PATTERN: "Give printable ASCII characters",
    USER_PATTERN: "Give a user by name or number, such as reports or 1000, and perhaps a group after a colon",
    FOLDER_PATTERN: "Give an absolute path, such as /srv/shop",
    IMAGE_PATTERN: "Give an image without spaces, such as python:3.13",
    VARIABLE_PATTERN: "Use up to 128 letters, digits and underscores, not beginning with a digit",
    SOURCE_PATTERN: "Use up to 128 letters, digits and underscores",
    FILE_PATTERN: "Give a file's name alone: up to 128 letters, digits and ._-, not beginning with . or -",
    TARGET_PATTERN: "Use up to 63 letters, digits and _-, beginning with a letter or digit",
    WORD_PATTERN: "This has a NUL character, which nothing has in its name; remove it",
}
NOT_UNICODE = "This is not valid Unicode text (it has half of a surrogate pair)."
_SENTENCES: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "missing": lambda _: "This is required; give it.",
    "string_type": lambda _: "Give text, in quotes.",
    "string_unicode": lambda _: NOT_UNICODE,
    "string_too_long": lambda c: f"This is too long; give at most {c['max_length']} characters.",
    "string_too_short": lambda c: f"This is too short; give at least {c['min_length']} characters.",
    "string_pattern_mismatch": lambda c: _OF_PATTERNS.get(c["pattern"]) or f"Give text of the form {c['pattern']}",
    "bool_type": lambda _: "Give true or false.",
    "bool_parsing": lambda _: "Give true or false.",
    "int_type": lambda _: "Give a whole number.",
    "int_parsing": lambda _: "Give a whole number.",
    "int_from_float": lambda _: "Give a whole number.",
    "int_parsing_size": lambda _: "Give a smaller whole number.",
    "float_type": lambda _: "Give a number.",
    "float_parsing": lambda _: "Give a number.",
    "finite_number": lambda _: "Give a finite number.",
    "greater_than": lambda c: f"Give a number greater than {c['gt']:.16g}.",
    "greater_than_equal": lambda c: f"Give a number of at least {c['ge']:.16g}.",
    "less_than": lambda c: f"Give a number less than {c['lt']:.16g}.",
    "less_than_equal": lambda c: f"Give a number of at most {c['le']:.16g}.",
    "enum": lambda c: f"Give one of {c['expected']}.",
    "literal_error": lambda c: f"Give one of {c['expected']}.",
    "list_type": lambda _: "Give an array.",
    "dict_type": lambda _: "Give an object.",
    "model_type": lambda _: "Give a JSON object.",
    "model_attributes_type": lambda _: "Give a JSON object.",
    "too_long": lambda c: f"There are too many entries; give at most {c['max_length']}.",
    "too_short": lambda c: f"There are too few entries; give at least {c['min_length']}.",
    "date_type": lambda _: "Give a date such as 2026-12-25.",
    "date_parsing": lambda _: "Give a date such as 2026-12-25.",
    "date_from_datetime_parsing": lambda _: "Give a date such as 2026-12-25.",
    "date_from_datetime_inexact": lambda _: "Give a date without a time, such as 2026-12-25.",
    "datetime_type": lambda _: "Give a time such as 2026-11-20T10:00:00Z.",
    "datetime_parsing": lambda _: "Give a time such as 2026-11-20T10:00:00Z.",
    "datetime_from_date_parsing": lambda _: "Give a time such as 2026-11-20T10:00:00Z.",
    "datetime_object_invalid": lambda _: "Give a time such as 2026-11-20T10:00:00Z.",
}


def field_path(location: Sequence[int | str]) -> str:
    """A place in a body as its user would write it."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "[key]":
            path += f".{part}" if path else part
    return path


def faults_of(error: ValidationError, model: type[BaseModel], *, whole: str = "", noun: str = "field") -> list[Fault]:
    """The faults that pydantic found; those of the value as a whole name the field `whole`."""
    return [_fault(each, model, whole, noun) for each in error.errors(include_url=False, include_input=False)]


def failing_in(error: ValidationError, whole: str) -> set[str]:
    """The fields that fail, `whole` among them if the value as a whole does."""
    return {str(each["loc"][0]) if each["loc"] else whole for each in error.errors(include_context=False)}


def hidden_faults(
    raw: Mapping[str, Any],
    failing: set[str],
    model: type[BaseModel],
    stand_ins: Mapping[str, Any],
    check: Callable[[Any], object],
    whole: str,
) -> list[Fault]:
    """Faults beyond the fields that fail by themselves.

    Checks over several fields do not run while one of them fails; here the others are looked at without it, with
    `stand_ins` for what is required. One that can be called makes its value of what is given and fails.
    `check` may raise `Invalid`.
    """
    known = {field.alias or name for name, field in model.model_fields.items()}
    rest = {name: value for name, value in stand_ins.items() if not callable(value)}
    rest |= {
        name: made(raw[name]) for name, made in stand_ins.items() if callable(made) and name in failing & raw.keys()
    }
    rest |= {name: value for name, value in raw.items() if name in known and name not in failing}
    try:
        check(model.model_validate(rest))
    except ValidationError as error:
        found = [
            fault for fault in faults_of(error, model, whole=whole) if fault.field.partition(".")[0] not in failing
        ]
        more = failing_in(error, whole) - failing
        return found + (hidden_faults(raw, failing | more, model, stand_ins, check, whole) if more else [])
    except Invalid as invalid:
        return [fault for fault in invalid.faults if fault.field.partition(".")[0] not in failing]
    return []


def unknown_name(name: str, known: Sequence[str], noun: str) -> str:
    """What to say of a name that nobody knows."""
    nearest = get_close_matches(name[:_NAME_SHOWN_CHARS_MAX], known, n=1)
    return f"There is no such {noun}; " + (
        f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(known)}." if known else "leave it out."
    )


def wire_names(model: type[BaseModel]) -> list[str]:
    """The names of a model's fields as its users write them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _fault(found: Any, model: type[BaseModel], whole: str, noun: str) -> Fault:
    location: tuple[int | str, ...] = found["loc"]
    kind, context = found["type"], found.get("ctx", {})
    if kind == "extra_forbidden":
        sentence = unknown_name(str(location[-1]), _names_at(model, location[:-1]), noun)
    elif kind in _SENTENCES:
        sentence = _SENTENCES[kind](context)
    else:
        text = found["msg"].removeprefix("Value error, ")
        sentence = text[:1].upper() + text[1:]
    if not sentence.endswith((".", "?")):
        sentence += "."
    path = field_path(location)
    of_whole = not location or (len(location) == 1 and isinstance(location[0], int))
    if kind in {"value_error", "assertion_error"} and of_whole:
        path = f"{path}.{whole}" if path and whole else path or whole
    return Fault(path, sentence)


def _names_at(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    """The names that are known at a place within `model`."""
    for part in location:
        if isinstance(part, int):
            continue
        field = next((field for name, field in model.model_fields.items() if part in {name, field.alias}), None)
        inner = None if field is None else _model_in(field.annotation)
        if inner is None:
            return []
        model = inner
    return wire_names(model)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := _model_in(each)) is not None), None)
