"""The mapping from command prefixes to container images: which image a command gets, and why.

Never asks a registry whether an image exists.
Invariants: a prefix matches whole words only; the longest match wins; the job's own image wins over every prefix;
two prefixes with the same words are one prefix, because it is kept in one way of writing.

>>> choose(["python3", "x.py"], [ImageMapping(prefix="python", image="python:3.13")], None).image is None
True
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from pydantic import Field, field_validator

from clickclock.foundation.errors import Fault, Invalid
from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.jobs import command as commands
from clickclock.scheduler.jobs.job import Name

IMAGE_PATTERN = r"^\S+$"
_NAMED_MAX = 3
_COMPARED_CHARS_MAX = 200
"""Similarity costs the product of two lengths, and the beginning tells enough."""


class ImageMapping(Record):
    """The image for commands that begin with certain words."""

    prefix: str = Field(
        max_length=4096,
        description="The first words of a command; split as commands are, and matched by whole words.",
        examples=["python -m etl"],
    )
    image: str = Field(
        min_length=1,
        max_length=1024,
        pattern=IMAGE_PATTERN,
        description="Container image for such commands.",
        examples=["registry.example.com/etl:1.4"],
    )
    description: str | None = Field(
        None, max_length=4096, description="What the image is for.", examples=["The ETL tools with their drivers."]
    )
    managed_by: Name | None = Field(
        None, description="The set of files that it is applied from; set by `PUT declaration`.", examples=["shop-repo"]
    )
    created_at: Instant | None = Field(
        None, description="When it was created; set by the service.", examples=["2026-11-20T10:00:00.000Z"]
    )
    updated_at: Instant | None = Field(
        None, description="When it last changed; set by the service.", examples=["2026-11-20T10:00:00.000Z"]
    )

    @field_validator("prefix")
    @classmethod
    def _one_way_of_writing(cls, value: str) -> str:
        try:
            return shlex.join(_words(value))
        except Invalid as invalid:
            raise ValueError(" ".join(fault.message for fault in invalid.faults)) from invalid

    @property
    def words(self) -> tuple[str, ...]:
        return _words(self.prefix)


class Choice(Record):
    """Which image a command gets, and why."""

    image: str | None = Field(description="The image; null if nothing names one.", examples=["python:3.13"])
    reason: str = Field(
        description="Why, in a sentence.", examples=["The command begins with `python`, the longest prefix that fits."]
    )
    prefix: str | None = Field(
        None, description="The prefix that matched; null if none decided.", examples=["python -m etl"]
    )


def spelled(prefix: str) -> str:
    """A prefix as it is kept: in one way of writing; what can be none is left as it is.

    >>> spelled("python  '-m'")
    'python -m'
    """
    try:
        return shlex.join(_words(prefix))
    except Invalid:
        return prefix


def choose(command_words: Sequence[str], mappings: Iterable[ImageMapping], own_image: str | None) -> Choice:
    """The image for a command, given its words as written (`Command.words`)."""
    if own_image:
        return Choice(image=own_image, reason="The job names its own image, which wins over every prefix.")
    words = tuple(command_words)
    matching = [mapping for mapping in mappings if words[: len(mapping.words)] == mapping.words]
    if not matching:
        program = f"`{words[0]}`" if words else "an empty command"
        return Choice(image=None, reason=f"The job names no image, and no prefix fits {program}.")
    best = max(matching, key=lambda mapping: len(mapping.words))
    others = "the longest prefix that fits" if len(matching) > 1 else "the only prefix that fits"
    return Choice(image=best.image, reason=f"The command begins with `{best.prefix}`, {others}.", prefix=best.prefix)


def closest(command_words: Sequence[str], mappings: Iterable[ImageMapping]) -> list[str]:
    """Up to `_NAMED_MAX` prefixes, most like the beginning of the command first: what to name when none fits."""
    words = tuple(command_words)

    def likeness(mapping: ImageMapping) -> tuple[int, float, str]:
        beginning = shlex.join(words[: len(mapping.words)])
        shared = next(
            (i for i, (ours, theirs) in enumerate(zip(words, mapping.words, strict=False)) if ours != theirs),
            min(len(words), len(mapping.words)),
        )
        ratio = SequenceMatcher(None, beginning[:_COMPARED_CHARS_MAX], mapping.prefix[:_COMPARED_CHARS_MAX]).ratio()
        return -shared, -ratio, mapping.prefix

    return [mapping.prefix for mapping in sorted(mappings, key=likeness)[:_NAMED_MAX]]


def none_fits(command_words: Sequence[str], mappings: Iterable[ImageMapping]) -> Invalid:
    """The refusal of a command that has to run in an image and has none: it names the closest prefixes."""
    near = " or ".join(f"`{prefix}`" for prefix in closest(command_words, mappings))
    hint = f"the closest prefixes are {near}" if near else "the mapping is empty"
    message = (
        f"{choose(command_words, (), None).reason} Its cluster runs containers: give the job an image, or map a prefix "
        f"of its command with PUT commandPrefixImageMapping; {hint}."
    )
    return Invalid(faults=[Fault("image", message)])


def _words(prefix: str) -> tuple[str, ...]:
    try:
        return commands.parse(prefix, shell=False).words
    except Invalid as invalid:  # that of a command; a prefix has no shell
        told = [replace(fault, message=fault.message.replace(commands.OR_BY_A_SHELL, "")) for fault in invalid.faults]
        raise Invalid(faults=told) from invalid
