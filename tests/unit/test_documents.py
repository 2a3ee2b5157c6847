"""Files: YAML in and out, and where in it a fault is."""

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickclock.files import Sources, Unreadable, difference, documents, place_in, written
from clickclock.foundation.errors import Fault

TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"], whitelist_characters="\n"), max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


def faults(text: str) -> list[tuple[str, str]]:
    with pytest.raises(Unreadable) as caught:
        documents(text, "f.yaml")
    return [(fault.field, fault.message) for fault in caught.value.faults]


@settings(deadline=None)
@given(st.lists(VALUES.filter(lambda value: value is not None), max_size=3))
def test_what_is_written_is_read_back_as_it_was(values: list[Any]) -> None:
    assert documents(written(values), "f") == values


@pytest.mark.parametrize("word", ["no", "on", "Yes", "1:30", "2026-12-25", "010", "1e3", "0x1F", ".5", "1_000", "-"])
def test_words_that_other_readers_turn_into_something_else_stay_text(word: str) -> None:
    assert documents(f"a: {word}" if word != "-" else 'a: "-"', "f") == [{"a": word}]


def test_plain_numbers_truth_and_null_are_what_they_are_in_json() -> None:
    text = "[1, -7, 2.50, 1.0e+3, true, FALSE, null, ~, '1', !!str 1, \"true\"]"
    assert documents(text, "f") == [[1, -7, 2.5, 1000.0, True, False, None, None, "1", "1", "true"]]


def test_empty_documents_count_for_nothing() -> None:
    assert documents("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n", "f") == [{"a": 1}, {"b": 2}]
    assert place_in("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n", 1, "b") == (7, 1)
    assert documents("", "f") == []


def test_anchors_and_merged_fields_spare_words() -> None:
    text = "base: &base {shell: true, priority: 1}\njob: {<<: *base, priority: 2}\nboth: {<<: [*base, {x: 1}]}\n"
    (found,) = documents(text, "f")
    assert found["job"] == {"shell": True, "priority": 2}
    assert found["both"] == {"shell": True, "priority": 1, "x": 1}
    assert place_in(text, 0, "job.shell") == (1, 14)


def test_every_fault_of_the_form_has_its_line_and_column() -> None:
    text = "a: 1\nb: *nowhere\na: 2\nc: !!python/none x\n? [x]\n: 1\n<<: 5\n"
    assert [place for place, _ in faults(text)] == [
        "f.yaml:2:4",
        "f.yaml:3:1",
        "f.yaml:4:4",
        "f.yaml:5:3",
        "f.yaml:7:1",
    ]


def test_a_broken_file_is_told_with_the_place_where_it_breaks() -> None:
    ((place, message),) = faults("a: [1, 2\nb: 3\n")
    assert place.startswith("f.yaml:2:")
    assert message.startswith("This is not YAML: ")


def test_aliases_cannot_make_a_small_file_large() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    ((_, message),) = faults("\n".join(lines))
    assert "stand for too much" in message


@pytest.mark.parametrize("number", ["9" * 5000, "1.0e+400", "-1.5E+999"])
def test_a_number_has_an_end(number: str) -> None:
    assert faults(f"a: 1\nb: {number}\n") == [("f.yaml:2:4", "This number is too large; give a smaller one.")]


def test_nesting_has_an_end() -> None:
    ((_, message),) = faults("[" * 60 + "]" * 60)
    assert "nested too deeply" in message


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("jobs[0].command", (3, 5)),
        ("jobs[0].labels.a.b", (4, 14)),
        ("jobs[0].schedules[1].expression", (6, 9)),
        ("jobs[0].owner", (2, 5)),
        ("jobs[7].command", (1, 1)),
        ("", (1, 1)),
    ],
)
def test_the_place_of_a_value_is_found_as_far_as_it_is_there(path: str, place: tuple[int, int]) -> None:
    text = (
        "jobs:\n  - jobName: a\n    command: b\n    labels: {a.b: c, a: d}\n    schedules:\n"
        "      - expression: x\n      - expression: y\n"
    )
    found = place_in(text, 0, path)
    assert found == ((7, 9) if "[1]" in path else place)


def test_a_folder_is_read_in_order_and_a_fault_finds_its_file(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.yaml").write_text("hidden: 1")
    (tmp_path / "a.yaml").write_text("jobs:\n- command: x\n---\njobs:\n- command: y\n")
    (tmp_path / "b" / "c.yml").write_text("groups: []\n")
    (tmp_path / "readme.txt").write_text("not: me")
    sources = Sources.read([tmp_path, tmp_path / "a.yaml"])
    assert sources.documents == [{"jobs": [{"command": "x"}]}, {"jobs": [{"command": "y"}]}, {"groups": []}]
    located = sources.located(Fault("[1].jobs[0].command", "No."))
    assert located == Fault(f"{tmp_path}/a.yaml:5:3", "command: No.")
    assert sources.located(Fault("[2]", "No.")).field == f"{tmp_path}/b/c.yml:1:1"
    assert sources.located(Fault("prune", "No.")) == Fault("prune", "No.")


def test_every_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"a: 1\nb: \xff\n")
    (tmp_path / "b.yaml").write_text("[")
    (tmp_path / "c.yaml").symlink_to("gone.yaml")
    with pytest.raises(Unreadable) as caught:
        Sources.read([tmp_path, tmp_path / "none.yaml"])
    assert [fault.field.removeprefix(f"{tmp_path}/").split(":")[0] for fault in caught.value.faults] == [
        "a.yaml",
        "b.yaml",
        "c.yaml",
        "none.yaml",
    ]


def test_standard_input_is_named_as_such_whatever_is_wrong_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for raw in (b"a: 1\nb: \xff\n", b"a: 1\nb: ]\n"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
        with pytest.raises(Unreadable) as caught:
            Sources.read([Path("-")])
        (fault,) = caught.value.faults
        assert fault.field.startswith("standard input:2:")


def test_a_difference_is_a_unified_one() -> None:
    alteration = {"kind": "job", "name": "a/b", "before": {"command": "x", "priority": 1}, "after": {"command": "x"}}
    assert difference(alteration) == "--- job a/b\n+++ job a/b\n@@ -1,2 +1 @@\n command: x\n-priority: 1\n"
    assert difference(alteration | {"before": None}).startswith("--- /dev/null\n+++ job a/b\n")
