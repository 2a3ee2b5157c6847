r"""A script for `sh`: where its templates stand, and how a reference to a variable is one word there.

Never runs or expands anything, and never judges a script: what is not closed is for `sh` to refuse.
Invariants: a template is found in every context but a comment; one in a place that cannot be quoted for every `sh`
alike, or that a shell does not expand, is a fault with its line and column, never a guess.

>>> [(each.text, each.reference("X")) for each in find("echo {{ a }} \"{{ b }}\" '{{ c }}'").templates]
[('a', '"${X}"'), ('b', '${X}'), ('c', '\'"${X}"\'')]
"""

import re
from dataclasses import dataclass, field

import msgspec

TEMPLATE = r"(?P<template>\{\{(?P<text>[^{}]*)\}\})|(?P<unclosed>\{\{)"
_EXPANSION = r"(?P<open>\$\(\(|\$\(|\$\{)|(?P<tick>`)"
_DELIMITER = re.compile(r"(?:\\(?s:.)|'[^']*'|\"(?:\\(?s:.)|[^\"\\])*\"|[^\s;&|<>()'\"\\`])+")
_KEYWORDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{"})

# One pattern for each kind of place. None looks further than the next sign.
_PLAIN = re.compile(
    TEMPLATE
    + r"|(?P<here_string><<<)|(?P<here><<(?P<tabs>-?)[ \t]*)|(?P<newline>\n)|(?P<blank>[ \t\r]+)|(?P<escape>\\(?s:.))"
    + r"|(?P<open>\$\(\(|\$\(|\$\{|\$?['\"]|\()|(?P<tick>`)|(?P<close>\))|(?P<operator>[;&|<>])|(?P<comment>#[^\n]*)"
    + r"|(?P<word>(?:[a-z]+|[!{])(?=[\s;&|()<>]|\Z))|(?P<other>\$.|(?s:.))"
)
_PATTERNS = {
    '"': re.compile(TEMPLATE + rf"|(?P<escape>\\[\"\\$`\n])|(?P<close>\")|{_EXPANSION}"),
    "'": re.compile(TEMPLATE + r"|(?P<close>')|(?P<tick>`)"),
    "<<": re.compile(TEMPLATE + rf"|(?P<escape>\\[\\$`\n])|{_EXPANSION}"),
    "#": re.compile(TEMPLATE + rf"|{_EXPANSION}|(?P<nested>\()|(?P<close>\))"),
    "{": re.compile(TEMPLATE + rf"|(?P<escape>\\(?s:.))|{_EXPANSION}|(?P<quote>\$?['\"])|(?P<close>\}})"),
    '"{': re.compile(TEMPLATE + rf"|(?P<escape>\\(?s:.))|{_EXPANSION}|(?P<murky>['\"])|(?P<close>\}})"),
}
_UNQUOTED = frozenset({"", "(", "$(", "`", "case"})
_BARE = frozenset({'"', "<<", "#", '"{'})


class Found(msgspec.Struct, frozen=True):
    """A template, from `start` to `end`; `text` is what its braces hold, `inside` says in what it stands."""

    text: str
    start: int
    end: int
    inside: str

    def reference(self, variable: str) -> str:
        """The variable with its value, as one word at this place."""
        if self.inside == "'":
            return f"'\"${{{variable}}}\"'"
        return f"${{{variable}}}" if self.inside in _BARE else f'"${{{variable}}}"'


@dataclass(slots=True)
class Script:
    """The templates and faults of a script. `unclosed` is the place, from 1, of a template that has no end."""

    templates: list[Found] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    unclosed: int | None = None


@dataclass(slots=True)
class _Frame:
    """One construct that is open, and where the scanner is in it: whether a word, and a command, begin here."""

    kind: str
    begins_word: bool = True
    begins_command: bool = True
    documents: list[tuple[str, bool, bool]] = field(default_factory=list)
    """Here-documents that come after this line: delimiter, whether tabs are stripped, whether it is quoted."""


def find(text: str) -> Script:
    """The templates of a script, and what is wrong with where they stand."""
    script = Script()
    _Scanner(text, 0, len(text), "", script).run()
    return script


class _Scanner:
    def __init__(self, text: str, start: int, end: int, kind: str, script: Script) -> None:
        self._text, self._at, self._end, self._script = text, start, end, script
        self._frames = [_Frame(kind)]
        self._doubt: str | None = None

    def run(self) -> str | None:
        """Scan to the end, or to a template that has none; why what follows is in doubt, if it is."""
        while self._at < self._end and self._script.unclosed is None:
            top = self._frames[-1]
            if top.kind in _UNQUOTED:
                found = _PLAIN.match(self._text, self._at, self._end)
            else:
                found = _PATTERNS[top.kind].search(self._text, self._at, self._end)
            if found is None:
                break
            self._at = found.end()
            self._take(top, found, found.lastgroup or "")
        return self._doubt

    def _take(self, top: _Frame, found: re.Match[str], what: str) -> None:
        if found["template"]:
            self._template(found, top.kind)
            top.begins_word = top.begins_command = False
        elif found["unclosed"]:
            self._script.unclosed = found.start() + 1
        elif what == "tick":
            self._tick(top)
        elif what in {"open", "quote"}:
            self._open(top, found[0])
        elif what == "nested":
            self._frames.append(_Frame("#"))
        elif what == "close":
            self._close(top)
        elif what == "murky":
            self._doubt_from(found.start(), "a quote inside of ${…} inside of double quotes")
        elif what == "escape" and found[0][1] in '"\\$`' and any(each.kind == "`" for each in self._frames):
            self._doubt_from(found.start(), "a backslash inside of back-quotes; write $(…) instead of them")
        if top.kind in _UNQUOTED and top is self._frames[-1]:
            self._move(top, found, what)

    def _move(self, top: _Frame, found: re.Match[str], what: str) -> None:
        """Where the scanner is in an unquoted place after this."""
        match what:
            case "newline":
                top.begins_word = top.begins_command = True
                self._documents(top)
            case "operator":
                top.begins_word, top.begins_command = True, top.begins_command or found[0] in ";&|"
            case "here" | "tabs":
                self._here(top, strip=found["tabs"] == "-")
            case "comment" if not top.begins_word:
                self._at = found.start() + 1
            case "comment" if (end := self._text.find("`", found.start(), found.end())) >= 0 and self._is_ticked():
                self._at = end
            case "blank" | "here_string":
                top.begins_word = True
            case "escape" if found[0] == "\\\n":
                pass
            case "word" if top.begins_word:
                self._word(top, found[0])
            case "escape" | "word" | "other":
                top.begins_word = top.begins_command = False

    def _word(self, top: _Frame, word: str) -> None:
        if word == "case" and top.begins_command:
            self._frames.append(_Frame("case", begins_word=False, begins_command=False))
        elif word == "esac" and top.begins_command and top.kind == "case":
            self._pop()
            self._frames[-1].begins_word = self._frames[-1].begins_command = False
        else:
            top.begins_command = (top.begins_command and word in _KEYWORDS) or (word == "in" and top.kind == "case")
            top.begins_word = False

    def _open(self, top: _Frame, sign: str) -> None:
        top.begins_word = top.begins_command = False
        if sign == "$((" and not self._is_arithmetic():
            self._frames += [_Frame("$("), _Frame("(")]
        elif sign == "$((":
            self._frames += [_Frame("#"), _Frame("#")]
        elif sign == "${":
            self._frames.append(_Frame("{" if top.kind in _UNQUOTED or top.kind == "{" else '"{'))
        elif sign == "$'":
            self._dollar_quote()
        else:
            self._frames.append(_Frame(sign.removeprefix("$") if sign != "$(" else sign))

    def _dollar_quote(self) -> None:
        """`$'…'`: some shells read escapes in it, others do not know it."""
        end = self._text.find("'", self._at, self._end)
        end = self._end if end < 0 else end
        for each in re.finditer(TEMPLATE, self._text[self._at : end]):
            self._refuse(self._at + each.start(), "stands in $'…', which not every sh knows", 'use "…" around it')
        if self._text[end - 1] == "\\":
            self._doubt_from(end - 1, "an escaped quote in $'…', which not every sh knows")
        self._at = min(end + 1, self._end)

    def _close(self, top: _Frame) -> None:
        if top.kind == "case" or (top.kind in _UNQUOTED and len(self._frames) == 1):
            top.begins_word = top.begins_command = True  # the end of a pattern
        elif top.kind != "`":
            self._pop()
            self._frames[-1].begins_word = self._frames[-1].begins_command = top.kind == "("

    def _pop(self) -> None:
        gone = self._frames.pop()
        self._frames[-1].documents += gone.documents

    def _is_ticked(self) -> bool:
        return any(each.kind == "`" for each in self._frames)

    def _tick(self, top: _Frame) -> None:
        """A shell looks for the second back-quote before it looks at quotes."""
        if self._is_ticked():
            while self._frames[-1].kind != "`":
                self._pop()
            self._pop()
        elif top.kind != "'":
            top.begins_word = top.begins_command = False
            self._frames.append(_Frame("`"))

    def _is_arithmetic(self) -> bool:
        """Whether `$((` is closed by `))`, and not by two that stand apart, as those of a subshell."""
        depth, at = 2, self._at
        while depth > 1 and (found := re.compile(r"[()]").search(self._text, at, self._end)):
            depth += 1 if found[0] == "(" else -1
            at = found.end()
        return depth > 1 or self._text[at : at + 1] == ")"

    def _here(self, top: _Frame, *, strip: bool) -> None:
        top.begins_word = False
        if (found := _DELIMITER.match(self._text, self._at, self._end)) is None:
            return
        if (each := re.search(TEMPLATE, found[0])) is not None:
            self._refuse(self._at + each.start(), "is the delimiter of a here-document", "write a fixed word")
        self._at = found.end()
        word = re.sub(r"\\(.)|['\"]", lambda each: each[1] or "", found[0])
        top.documents.append((word, strip, word != found[0]))

    def _documents(self, top: _Frame) -> None:
        """The bodies of the here-documents that the last line announced."""
        documents, top.documents = top.documents, []
        for delimiter, strip, is_quoted in documents:
            start, joined = self._at, False
            while self._at < self._end:
                line_at = self._at
                newline = self._text.find("\n", line_at, self._end)
                self._at = self._end if newline < 0 else newline + 1
                line = self._text[line_at : self._at].removesuffix("\n")
                if not joined and (line.lstrip("\t") if strip else line) == delimiter:
                    break
                joined = not is_quoted and (len(line) - len(line.rstrip("\\"))) % 2 == 1
            else:
                line_at = self._end
            if is_quoted:
                for each in re.finditer(TEMPLATE, self._text[start:line_at]):
                    why = f"stands in a here-document whose delimiter {delimiter} is quoted, where nothing is filled in"
                    self._refuse(start + each.start(), why, f"write <<{delimiter}, and \\$ for a plain dollar sign")
            else:
                inner = _Scanner(self._text, start, line_at, "<<", self._script)
                inner._doubt = self._doubt
                self._doubt = inner.run()

    def _template(self, found: re.Match[str], kind: str) -> None:
        if self._doubt is not None:
            self._refuse(
                found.start(), f"comes after {self._doubt}", "take that away, or put the value into a variable"
            )
        self._script.templates.append(Found(found["text"].strip(), found.start(), found.end(), kind))

    def _doubt_from(self, position: int, what: str) -> None:
        self._doubt = self._doubt or f"{what} ({self._place(position)})"

    def _refuse(self, position: int, why: str, remedy: str) -> None:
        self._script.faults.append(f"The template at {self._place(position)} {why}: {remedy}.")

    def _place(self, position: int) -> str:
        line = self._text.count("\n", 0, position) + 1
        return f"line {line}, column {position - self._text.rfind(chr(10), 0, position)}"
