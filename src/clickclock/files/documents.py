r"""YAML documents as values, where in the text each value stands, and values as YAML.

Never opens a file. Text stays text: of unquoted words only `true`, `false`, `null` and plain numbers are
anything else, as in JSON, so that neither `no` nor `1:30` nor a date turns into what nobody wrote.
Invariants: `documents(written([value]))` is `[value]`; every fault is reported, with line and column; aliases cannot
make a small file large.

It reads and writes libyaml's events itself: building PyYAML's nodes and resolving their tags takes up to four times
as long. Places are looked up in a second reading, which only a file with faults needs.

>>> documents("a: no\nb: 1\n---\n- 2026-12-25\n", "x.yaml")
[{'a': 'no', 'b': 1}, ['2026-12-25']]
>>> place_in("jobs:\n  - command: true\n", 0, "jobs[0].command")
(2, 5)
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from io import StringIO
from math import isinf
from typing import Any

import yaml
from yaml.cyaml import CEmitter, CParser
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from clickclock.foundation.errors import Fault, Permanent

DEPTH_MAX = 50
"""Nothing that is declared is nested so deeply, and Python's own stack ends somewhere."""
NODES_MAX = 2_000_000
"""Values in one file, each alias counted as all that it stands for: some 50 MB."""
LINE_CHARS = 110
MERGE = "<<"

_NUMBER = re.compile(r"[-+]?(?:0|[1-9]\d*)(?P<rest>\.\d*(?:[eE][-+]\d+)?)?", re.ASCII)
_NUMBER_BEGINS = frozenset("-+0123456789")
_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}
_STRING_TAG = "tag:yaml.org,2002:str"
_RESOLVER = yaml.resolver.Resolver()
_INDEX = re.compile(r"\[(\d+)\]\.?")


class Unreadable(Permanent):
    """A file cannot be read; fix the named places."""

    code = "unreadable"


def documents(text: str, name: str) -> list[Any]:
    """The documents of a text, without empty ones. Raises `Unreadable` naming every fault as `name:line:column`."""
    reader = _Reader(text)
    try:
        found = reader.documents()
    except yaml.YAMLError as error:
        reader.faults.append(_syntax_fault(error))
    if reader.faults:
        raise Unreadable(faults=[Fault(f"{name}:{line}:{column}", message) for line, column, message in reader.faults])
    return found


def place_in(text: str, number: int, path: str) -> tuple[int, int]:
    """Line and column, from 1, of the value at `path` (`jobs[3].catchUp.policy`) in a document.

    What is not there is looked for as far as it is there: a missing field is where its object begins.
    """
    nodes = (node for node in yaml.compose_all(text, Loader=yaml.CSafeLoader) if not _is_empty(node))
    for place, node in enumerate(nodes):
        if place == number:
            mark = _walk(node, path)
            return mark.line + 1, mark.column + 1
    return 1, 1


def written(values: Iterable[Any]) -> str:
    """Documents as YAML, in the order of their fields: text of several lines as such, and nothing said by reference."""
    stream = StringIO()
    emitter = CEmitter(stream, allow_unicode=True, width=LINE_CHARS)
    emitter.open()
    for number, value in enumerate(values):
        emitter.emit(DocumentStartEvent(explicit=number > 0))
        _emit(emitter.emit, value)
        emitter.emit(DocumentEndEvent(explicit=False))
    emitter.close()
    return stream.getvalue()


def _emit(emit: Callable[[Any], None], value: Any) -> None:
    if isinstance(value, str):
        emit(ScalarEvent(None, _STRING_TAG, (_is_text(value), True), value, style="|" if "\n" in value else None))
    elif isinstance(value, dict):
        emit(MappingStartEvent(None, None, True, flow_style=False))
        for name, each in value.items():
            _emit(emit, name)
            _emit(emit, each)
        emit(MappingEndEvent())
    elif isinstance(value, list):
        emit(SequenceStartEvent(None, None, True, flow_style=False))
        for each in value:
            _emit(emit, each)
        emit(SequenceEndEvent())
    else:
        emit(ScalarEvent(None, None, (True, False), _word(value)))


@lru_cache(10_000)
def _is_text(value: str) -> bool:
    """Whether every reader takes an unquoted word for text: `no` and `1:30` are something else to many."""
    return bool(_RESOLVER.resolve(yaml.ScalarNode, value, (True, False)) == _STRING_TAG)


def _word(value: int | float | None) -> str:
    """A number (its fraction always with a point), truth, or nothing, as they are in JSON."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    word = repr(value)
    return word.replace("e", ".0e") if isinstance(value, float) and "." not in word else word


class _Reader:
    """One reading of one text."""

    def __init__(self, text: str) -> None:
        self._next = CParser(text).get_event
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._nodes = 0
        self.faults: list[tuple[int, int, str]] = []

    def documents(self) -> list[Any]:
        found = []
        while (event := self._next()) is not None:
            if type(event) is DocumentStartEvent:
                self._anchors = {}
                value = self._value(self._next(), 0)
                if value is not None:
                    found.append(value)
        return found

    def _value(self, event: Any, depth: int) -> Any:
        kind = type(event)
        self._nodes += 1
        if kind is ScalarEvent:
            if event.tag is None and event.implicit[0]:
                try:
                    value = _plain(event.value)
                except ValueError:
                    value = None
                    self._fault(event, "This number is too large; give a smaller one.")
            else:
                value = event.value
                if event.tag not in {None, "!", _STRING_TAG}:
                    self._fault(event, f"The tag {event.tag} means nothing here; leave it out.")
            if event.anchor:
                self._anchors[event.anchor] = value, 1
            return value
        if kind is AliasEvent:
            return self._alias(event)
        if depth == DEPTH_MAX:
            raise yaml.MarkedYAMLError(problem="this is nested too deeply", problem_mark=event.start_mark)
        before = self._nodes
        anchor = event.anchor
        collected = self._mapping(depth + 1) if kind is MappingStartEvent else self._sequence(depth + 1)
        if anchor:
            self._anchors[anchor] = collected, self._nodes - before
        return collected

    def _mapping(self, depth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        merged: list[Any] = []
        while type(event := self._next()) is not MappingEndEvent:
            if type(event) is not ScalarEvent:
                self._fault(event, "A name has to be a plain word; put it in quotes.")
                self._value(event, depth)
                self._value(self._next(), depth)
                continue
            name = event.value
            if name == MERGE and event.implicit[0]:
                merged.append((event, self._value(self._next(), depth)))
                continue
            if name in fields:
                self._fault(event, f"{name} is given twice; give it once.")
            fields[name] = self._value(self._next(), depth)
        return fields if not merged else self._merged(merged, fields)

    def _merged(self, merged: list[Any], own: dict[str, Any]) -> dict[str, Any]:
        """`<<: *base`: the fields of others under one's own."""
        fields: dict[str, Any] = {}
        for event, value in merged:
            for base in reversed(value) if isinstance(value, list) else [value]:
                if isinstance(base, dict):
                    fields |= base
                else:
                    self._fault(event, "What is merged has to be an object, such as <<: *base.")
        return fields | own

    def _sequence(self, depth: int) -> list[Any]:
        items = []
        while type(event := self._next()) is not SequenceEndEvent:
            items.append(self._value(event, depth))
        return items

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            self._fault(event, f"There is no &{event.anchor} before this.")
            return None
        value, nodes = self._anchors[event.anchor]
        self._nodes += nodes
        if self._nodes > NODES_MAX:
            raise yaml.MarkedYAMLError(problem="the aliases stand for too much", problem_mark=event.start_mark)
        return value

    def _fault(self, event: Any, message: str) -> None:
        mark = event.start_mark
        self.faults.append((mark.line + 1, mark.column + 1, message))


def _plain(text: str) -> Any:
    """What an unquoted word is. Raises `ValueError` for a number of thousands of digits, or one beyond all floats."""
    if text in _WORDS:
        return _WORDS[text]
    number = _NUMBER.fullmatch(text) if text[0] in _NUMBER_BEGINS else None
    if number is None:
        return text
    if not number["rest"]:
        return int(text)
    value = float(text)
    if isinf(value):
        raise ValueError(text)
    return value


def _syntax_fault(error: yaml.YAMLError) -> tuple[int, int, str]:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    context = getattr(error, "context", None)
    sentence = f"This is not YAML: {problem}{f', {context}' if context else ''}."
    return (1, 1, sentence) if mark is None else (mark.line + 1, mark.column + 1, sentence)


def _is_empty(node: yaml.Node | None) -> bool:
    return node is None or (isinstance(node, yaml.ScalarNode) and node.value in _WORDS and _WORDS[node.value] is None)


def _walk(node: yaml.Node, path: str) -> Any:
    """The mark of the value at `path` under `node`."""
    mark = node.start_mark
    while path:
        if isinstance(node, yaml.SequenceNode) and (index := _INDEX.match(path)):
            if int(index[1]) >= len(node.value):
                break
            node, path = node.value[int(index[1])], path[index.end() :]
            mark = node.start_mark
        elif isinstance(node, yaml.MappingNode) and (pair := _field(node, path)):
            mark, node = pair[0].start_mark, pair[1]
            path = path[len(pair[0].value) :].removeprefix(".")
        else:
            break
    return mark


def _field(node: yaml.MappingNode, path: str) -> tuple[Any, Any] | None:
    """The longest name in an object with which `path` begins; a name may itself have dots."""
    fitting: list[tuple[Any, Any]] = [
        pair for pair in node.value if re.match(rf"{re.escape(str(pair[0].value))}(?:[.\[]|\Z)", path)
    ]
    if fitting:
        return max(fitting, key=lambda pair: len(pair[0].value))
    bases = [base for name, value in node.value if name.value == MERGE for base in _bases(value)]
    return next((found for base in bases if (found := _field(base, path))), None)


def _bases(node: yaml.Node) -> list[yaml.MappingNode]:
    several = node.value if isinstance(node, yaml.SequenceNode) else [node]
    return [each for each in several if isinstance(each, yaml.MappingNode)]
