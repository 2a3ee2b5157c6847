"""The prefix mapping: whole words, the longest wins, the job's own image wins over all."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from clickclock.scheduler.jobs.command import parse
from clickclock.scheduler.jobs.image_mapping import Choice, ImageMapping, choose, closest

PYTHON = ImageMapping(prefix="python", image="python:3.13")
ETL = ImageMapping(prefix="python -m etl", image="etl:1", description="The ETL tools.")
JAVA = ImageMapping(prefix="java -jar", image="jre:21")
ALL = [PYTHON, ETL, JAVA]


def chosen(command: str, own_image: str | None = None) -> Choice:
    return choose(parse(command, shell="|" in command).words, ALL, own_image)


@pytest.mark.parametrize(
    ("command", "image", "prefix"),
    [
        ("python x.py", "python:3.13", "python"),
        ("python", "python:3.13", "python"),
        ("python -m etl --day x", "etl:1", "python -m etl"),
        ("python -m etl", "etl:1", "python -m etl"),
        ("'python' \"-m\"   etl", "etl:1", "python -m etl"),
        ("python -m etl2", "python:3.13", "python"),
        ("python -m", "python:3.13", "python"),
        ("python3 x.py", None, None),
        ("env python", None, None),
        ("java x", None, None),
    ],
)
def test_the_longest_prefix_of_whole_words_wins(command: str, image: str | None, prefix: str | None) -> None:
    choice = chosen(command)
    assert (choice.image, choice.prefix) == (image, prefix)


def test_the_jobs_own_image_wins() -> None:
    choice = chosen("python -m etl", "mine:1")
    assert (choice.image, choice.prefix) == ("mine:1", None)
    assert choice.reason == "The job names its own image, which wins over every prefix."


def test_a_script_for_a_shell_is_matched_by_its_own_first_words() -> None:
    assert chosen("python -m etl | tee x").image == "etl:1"


def test_the_reason_is_a_sentence_about_this_command() -> None:
    assert chosen("python -m etl").reason == "The command begins with `python -m etl`, the longest prefix that fits."
    assert chosen("java -jar x").reason == "The command begins with `java -jar`, the only prefix that fits."
    assert chosen("ruby x").reason == "The job names no image, and no prefix fits `ruby`."
    assert choose([], ALL, None).reason == "The job names no image, and no prefix fits an empty command."


def test_the_closest_prefixes_are_named_best_first() -> None:
    assert closest(["python3", "x.py"], ALL) == ["python", "python -m etl", "java -jar"]
    assert closest(["java", "-jra", "x"], ALL)[0] == "java -jar"
    assert closest(["python", "-m", "elt"], [PYTHON, JAVA, ETL])[0] == "python -m etl"
    assert closest(["x"], []) == []


def test_a_prefix_is_kept_in_one_way_of_writing() -> None:
    assert ImageMapping(prefix="  'python'   \"-m\" etl ", image="x").prefix == "python -m etl"
    assert ImageMapping(prefix="'my tool' run", image="x").words == ("my tool", "run")


@given(st.lists(st.text("ab '\"\\$|{", min_size=1), min_size=1).filter(lambda words: "{{" not in "".join(words)))
def test_a_mapping_reads_back_what_it_writes_and_matches_its_own_prefix(words: list[str]) -> None:
    mapping = ImageMapping(prefix=shlex.join(words), image="x")
    assert ImageMapping.model_validate(mapping.wire()) == mapping
    assert choose([*words, "more"], [mapping], None).image == "x"


@pytest.mark.parametrize("prefix", ["", "  ", "python 'x", "python | tee", "''"])
def test_a_prefix_that_cannot_be_split_is_refused(prefix: str) -> None:
    with pytest.raises(ValidationError):
        ImageMapping(prefix=prefix, image="x")


@pytest.mark.parametrize("prefix", ["python | tee", "python\n-m"])
def test_what_a_prefix_cannot_have_is_told_without_a_field_of_jobs(prefix: str) -> None:
    with pytest.raises(ValidationError) as refused:
        ImageMapping(prefix=prefix, image="x")
    assert "only a shell" in str(refused.value)
    assert "true" not in str(refused.value)


@pytest.mark.parametrize("image", ["", "a b"])
def test_an_image_is_one_word(image: str) -> None:
    with pytest.raises(ValidationError):
        ImageMapping(prefix="python", image=image)


@pytest.mark.parametrize("record", [ImageMapping, Choice])
def test_every_field_is_described_with_an_example(record: type[ImageMapping | Choice]) -> None:
    for field in record.model_fields.values():
        assert field.description
        assert field.examples
