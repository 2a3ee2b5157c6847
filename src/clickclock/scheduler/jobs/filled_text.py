"""Texts with templates that are no commands: the values of a job's variables, and its folder.

Never judges braces around anything that is not ours: they may be meant for the program itself.

>>> from datetime import datetime
>>> run = Values("t", 1, datetime.fromisoformat("2026-11-20T10:00Z"), {"a": "b"})
>>> fill_text("{{ parameters.a }}/{{ nominalTime | date('%j') }}/{{ x }}", "a", run)
'b/324/{{ x }}'
"""

import re
from collections.abc import Collection

from clickclock.foundation.errors import Fault
from clickclock.scheduler.jobs.template import BUILT_IN_TEMPLATES, PARAMETER, faults_of, nearest, read
from clickclock.scheduler.jobs.template_values import Values, evaluate, parameters_in, refuse_missing

FAULTS_MAX = 10
"""Faults of one field that are reported. Nobody fixes more at once, and each hint costs a search for a near name."""
_BRACES = re.compile(r"\{\{([^{}]*)\}\}")


def fill_text(text: str, declared: Collection[str], values: Values) -> str:
    """A text with its templates filled in; braces around anything else stay, and so does a template with a fault.

    Raises `Invalid` where the run lacks a parameter that the job has `declared`, or a time of its schedule.
    """
    if "{{" not in text:
        return text
    refuse_missing(parameters_in(_templates_in(text)) & set(declared) - values.parameters.keys())
    plain = values.plain

    def filled(found: re.Match[str]) -> str:
        template = found[1].strip()
        if template in plain:
            return plain[template]
        is_ours = read(template).name in BUILT_IN_TEMPLATES and not read(template).faults
        return evaluate(template, values) if is_ours else found[0]

    return _BRACES.sub(filled, text)


def text_faults(field: str, text: str, parameter_names: Collection[str]) -> list[Fault]:
    """A fault for each template of a text that is misspelled, is a parameter not declared, or has a filter amiss.

    Other names in braces may be meant for the program itself.
    """
    known = [*BUILT_IN_TEMPLATES, *(PARAMETER + name for name in parameter_names)]
    faults: list[str] = []
    for template in dict.fromkeys(_templates_in(text)):
        name = read(template).name
        is_meant = name in known or nearest(name, known) is not None
        if is_meant or name.startswith(PARAMETER):
            remedy = "" if is_meant else "or declare it in parameters"
            faults += faults_of(template, parameter_names, remedy=remedy)
    return [Fault(field, sentence) for sentence in faults[:FAULTS_MAX]]


def asks_schedule(text: str) -> bool:
    """Whether a template of a text depends on the schedule of the run."""
    return "{{" in text and any(read(template).asks_schedule for template in _templates_in(text))


def _templates_in(text: str) -> list[str]:
    return [found.strip() for found in _BRACES.findall(text)]
