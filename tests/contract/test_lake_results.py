"""What runs write keeps its promises in a folder and in an object store."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from msgspec.structs import replace

from clickclock.attribution.engines import CREDITED
from clickclock.attribution.engines.duckdb import DuckDB
from clickclock.attribution.errors import RunOvertaken, VersionGone
from clickclock.attribution.lake import (
    ADS,
    COSTS,
    CREDITS,
    DERIVED,
    RESULTS,
    TOUCHES,
    UNCONVERTED,
    Lake,
    Stored,
    Table,
    credits_table,
)
from clickclock.attribution.reporting.result import Kind, Result

NOW_MS = 1_700_000_000_000
"""In the past: what was replaced then may be deleted now."""
LAST = credits_table(["last"])


def _credits(month: str, orders: list[str], models: tuple[str, ...] = ("last",)) -> pa.Table:
    rows = [
        {"client_id": "c", "order_id": order, "order_month": month, "touches": 1, "place": 1}
        | {f"{model}_credit": 100 for model in models}
        for order in orders
    ]
    return pa.Table.from_pylist(rows, credits_table(models).whole)


def _unconverted(months: dict[str, str]) -> pa.Table:
    rows = [{"client_id": "c", "person": 7, "path": path, "month": month} for month, path in months.items()]
    return pa.Table.from_pylist(rows, UNCONVERTED.whole)


def _write(lake: Lake, table: Table, rows: pa.Table, number: int, instead_of: Collection[str] | None = None) -> int:
    ledger = lake.ledger(table)
    parts = ledger.parts(f"part-{number}", NOW_MS)
    parts.write(rows)
    return ledger.commit(parts.close(), NOW_MS, instead_of=instead_of, notes={"result": number})


def _orders(lake: Lake, version: int | None = None, where: pc.Expression | None = None) -> list[str]:
    batches = lake.scan(CREDITS, where, ["order_id"], version)
    return sorted(order for batch in batches for order in batch["order_id"].to_pylist())


def test_partitions_are_replaced_at_once_and_the_others_stay(lake: Lake) -> None:
    _write(lake, LAST, pa.concat_tables([_credits("2026-01", ["a", "b"]), _credits("2026-02", ["c"])]), 1)
    version = _write(lake, LAST, _credits("2026-01", ["b", "d"]), 2, instead_of=["2026-01"])
    assert _orders(lake) == _orders(lake, version) == ["b", "c", "d"]
    assert _orders(lake, version - 1) == ["a", "b", "c"]
    assert _orders(lake, version, pc.field("order_month") == "2026-01") == ["b", "d"]
    assert _write(lake, LAST, _credits("2026-03", ["e"]), 3) == version + 1
    assert _orders(lake) == ["e"]


@pytest.mark.parametrize("months", [[1, 1, 0], [1, 0, 1], [0], []], ids=["apart", "mixed", "one", "none"])
def test_texts_can_come_as_dictionaries_in_any_order_and_settled_files_are_committed(
    lake: Lake, months: list[int]
) -> None:
    names, paths = ["2026-01", "2026-02", "2026-03"], ["meta", "mail > meta", "google"]
    rows = {
        "client_id": pa.DictionaryArray.from_arrays(pa.array([1] * len(months), pa.int32()), ["b", "c"]),
        "person": pa.array(range(len(months)), pa.int64()),
        "path": pa.array(paths[: len(months)], pa.string()),
        "month": pa.DictionaryArray.from_arrays(pa.array(months, pa.int32()), names),
    }
    ledger = lake.ledger(UNCONVERTED)
    parts = ledger.parts("part-1", NOW_MS)
    parts.write(pa.table(rows))
    parts.settle()
    parts.write(_unconverted({"2026-02": "a"}))
    parts.write(pa.table(rows))
    ledger.commit(parts.close(), NOW_MS, instead_of=None, notes={"result": 1})
    found = pa.Table.from_batches(lake.scan(UNCONVERTED.name), UNCONVERTED.whole).to_pylist()
    once = [("c", number, paths[number], names[month]) for number, month in enumerate(months)]
    assert sorted(tuple(row.values()) for row in found) == sorted([*once, *once, ("c", 7, "a", "2026-02")])


def test_a_partition_can_be_replaced_by_nothing(lake: Lake) -> None:
    _write(lake, LAST, pa.concat_tables([_credits("2026-01", ["a"]), _credits("2026-02", ["c"])]), 1)
    _write(lake, LAST, _credits("2026-01", []), 2, instead_of=["2026-01"])
    assert _orders(lake) == ["c"]


def test_of_two_runs_that_write_at_once_the_second_is_refused(lake: Lake) -> None:
    ledgers = [lake.ledger(LAST) for _ in range(2)]
    for number, ledger in enumerate(ledgers):
        parts = ledger.parts(f"part-{number}", NOW_MS)
        parts.write(_credits("2026-01", [f"{number}"]))
        if number == 0:
            ledger.commit(parts.close(), NOW_MS, instead_of=["2026-01"], notes={"result": 1})
        else:
            with pytest.raises(RunOvertaken, match="credits"):
                ledger.commit(parts.close(), NOW_MS, instead_of=["2026-01"], notes={"result": 1})
    assert _orders(lake) == ["0"]


def test_what_a_later_run_retracts_does_not_count_any_more_and_what_it_writes_does(lake: Lake) -> None:
    rows = pa.concat_tables([_credits("2026-01", ["a", "b"]), _credits("2026-02", ["a"])])
    before = _revise(lake, 1, rows)
    retracted = pa.table({"client_id": ["c", "d"], "order_id": ["a", "b"], "order_month": ["2026-01"] * 2})
    after = _revise(lake, 2, _credits("2026-03", ["a"]), retracted)
    again = _revise(lake, 3, _credits("2026-01", ["a"]))
    months = [
        sorted(
            (order, month)
            for batch in lake.scan(CREDITS, None, ["order_id", "order_month"], version)
            for order, month in zip(batch["order_id"].to_pylist(), batch["order_month"].to_pylist(), strict=True)
        )
        for version in (before, after, again)
    ]
    assert months == [
        [("a", "2026-01"), ("a", "2026-02"), ("b", "2026-01")],
        [("a", "2026-02"), ("a", "2026-03"), ("b", "2026-01")],
        [("a", "2026-01"), ("a", "2026-02"), ("a", "2026-03"), ("b", "2026-01")],
    ]
    assert _orders(lake, after, pc.field("order_id") == "a") == ["a", "a"]
    assert next(lake.scan(CREDITS)).schema.names == LAST.whole.names


def test_rows_of_a_few_keys_are_those_that_count_among_all(lake: Lake, tmp_path: Path) -> None:
    engine = DuckDB(memory_mb=100, threads=1, temp_dir=tmp_path, storage_options=lake.storage_options)
    first = _revise(lake, 1, pa.concat_tables([_credits("2026-01", list("abcd")), _credits("2026-02", ["a"])]))
    retracted = pa.table({"client_id": ["c", "c", "d"], "order_id": ["a", "b", "c"], "order_month": ["2026-01"] * 3})
    second = _revise(lake, 2, _credits("2026-01", ["a"]), retracted)
    wanted = {"2026-01": pa.array(["a", "b", "c"]), "2026-02": pa.array(["b"]), "2026-03": pa.array(["a"])}
    for version, runs, counts in ((first, {"a": 1, "b": 1, "c": 1}, [4, 1]), (second, {"a": 2, "c": 1}, [3, 1])):
        (january, february) = lake.standing(LAST, version, wanted, engine.credited)
        assert [(each.partition, each.every) for each in (january, february)] == [
            ("2026-01", counts[0]),
            ("2026-02", counts[1]),
        ]
        assert {row["order_id"]: row["run"] for row in january.rows.to_pylist()} == runs
        assert (february.rows.num_rows, january.rows.schema, february.rows.schema) == (0, CREDITED, CREDITED)
    assert list(lake.standing(LAST, None, wanted, engine.credited)) == []
    with pytest.raises(VersionGone):
        list(lake.standing(LAST, 99, wanted, engine.credited))


def _revise(lake: Lake, number: int, rows: pa.Table, retracted: pa.Table | None = None) -> int:
    ledger = lake.ledger(LAST)
    parts = ledger.parts(f"part-{number}", NOW_MS, number)
    parts.write(rows)
    if retracted is not None:
        parts.retract(retracted)
    return ledger.commit(parts.close(), NOW_MS, notes={"result": number})


def test_files_that_were_merged_since_are_not_taken_apart_again(lake: Lake) -> None:
    for number in range(8):
        version = _revise(lake, number, _credits("2026-01", [f"{number}"]))
    assert lake.tidy_derived(history_hours=1).merged == 8
    merged = lake.uris(CREDITS)
    lake.ledger(LAST).restore(version)
    assert lake.uris(CREDITS) == merged


def test_who_would_replace_files_that_were_merged_meanwhile_is_refused(lake: Lake) -> None:
    for number in range(8):
        _revise(lake, number, _credits("2026-01", [f"{number}"]))
    ledger = lake.ledger(LAST)
    assert lake.tidy_derived(history_hours=1).merged == 8
    parts = ledger.parts("part-late", NOW_MS, 9)
    parts.write(_credits("2026-01", ["late"]))
    with pytest.raises(RunOvertaken):
        ledger.commit(parts.close(), NOW_MS, instead_of=["2026-01"], notes={"result": 9})
    assert _orders(lake) == [f"{number}" for number in range(8)]


def test_a_table_without_a_key_gets_further_columns_and_keeps_its_rows(lake: Lake) -> None:
    older = dataclasses.replace(COSTS, rows=pa.schema([field for field in COSTS.rows if field.name != "currency"]))
    cost = {"client_id": "c", "amount_minor": 7, "day": date(2026, 1, 1)}
    _write(lake, older, pa.Table.from_pylist([cost], older.whole), 1, instead_of=[])
    _write(lake, COSTS, pa.Table.from_pylist([{**cost, "currency": "EUR"}], COSTS.whole), 2, instead_of=[])
    _write(lake, COSTS, pa.Table.from_pylist([], COSTS.whole), 3, instead_of=[])
    found = pa.Table.from_batches(lake.scan(COSTS.name, columns=["amount_minor", "currency"]))
    assert sorted(found.to_pylist(), key=str) == [
        {"amount_minor": 7, "currency": "EUR"},
        {"amount_minor": 7, "currency": None},
    ]


def test_an_older_release_keeps_the_rows_of_a_later_one_and_its_columns(lake: Lake) -> None:
    later = dataclasses.replace(COSTS, rows=pa.schema([*COSTS.rows, ("campaign_type", pa.string())]))
    older = dataclasses.replace(COSTS, rows=pa.schema([field for field in COSTS.rows if field.name != "currency"]))
    cost = {"client_id": "c", "amount_minor": 7, "day": date(2026, 1, 1)}
    told = {**cost, "currency": "EUR", "campaign_type": "brand"}
    for number, table in enumerate((later, older, COSTS, later), 1):
        _write(lake, table, pa.Table.from_pylist([told], table.whole), number, instead_of=[])
    found = pa.Table.from_batches(lake.scan(COSTS.name, columns=["currency", "campaign_type"])).to_pylist()
    kept = Counter(tuple(row.values()) for row in found)
    assert kept == {("EUR", "brand"): 2, ("EUR", None): 1, (None, None): 1}


def test_what_a_run_wrote_that_died_is_undone(lake: Lake) -> None:
    published = _write(lake, LAST, pa.concat_tables([_credits("2026-01", ["a"]), _credits("2026-02", ["b"])]), 1)
    _write(lake, LAST, _credits("2026-01", ["never published"]), 2, instead_of=["2026-01"])
    ledger = lake.ledger(LAST)
    ledger.restore(published)
    assert _orders(lake) == ["a", "b"]
    restored = ledger.version
    ledger.restore(published)
    assert ledger.version == restored


def test_a_filter_finds_rows_by_columns_of_which_the_log_tells_nothing(lake: Lake) -> None:
    _write(lake, LAST, pa.concat_tables([_credits("2026-01", ["a", "b"]), _credits("2026-02", ["c"])]), 1)
    assert _orders(lake, where=pc.field("place") == 1) == ["a", "b", "c"]
    assert _orders(lake, where=pc.field("place").is_null() | (pc.field("last_credit") > 100)) == []
    assert _orders(lake, where=pc.field("channel").is_null() & (pc.field("order_id") > "a")) == ["b", "c"]


def test_other_models_are_other_columns_and_old_versions_keep_theirs(lake: Lake) -> None:
    before = _write(lake, LAST, _credits("2026-01", ["a"]), 1)
    models = ("first", "linear")
    after = _write(lake, credits_table(models), _credits("2026-01", ["a"], models), 2)
    assert next(lake.scan(CREDITS, version=after)).schema.names == credits_table(models).whole.names
    assert [row["last_credit"] for batch in lake.scan(CREDITS, version=before) for row in batch.to_pylist()] == [100]
    lake.ledger(LAST).restore(before)
    assert next(lake.scan(CREDITS)).schema.names == LAST.whole.names


def test_a_note_is_there_with_its_rows(lake: Lake) -> None:
    assert lake.ledger(TOUCHES).noted("clicks") is None
    marks = {"is_bot": False, "is_prefetch": False}
    rows = [{"id": "1", "received_us": 1, "time_ms": 1, "ad": -5, **marks, "received_day": date(2026, 1, 1)}]
    for number in (1, 2):
        ledger = lake.ledger(TOUCHES)
        parts = ledger.parts(f"part-{number}", NOW_MS)
        parts.write(pa.Table.from_pylist(rows, TOUCHES.whole))
        ledger.commit(parts.close(), NOW_MS, notes={"clicks": number, "fingerprint": 2**62 - number})
        assert (ledger.noted("clicks"), ledger.noted("fingerprint")) == (number, 2**62 - number)
    assert sum(batch.num_rows for batch in lake.scan("touches")) == 2


def test_what_changed_since_a_version_is_told_by_the_log(lake: Lake) -> None:
    january, february = _unconverted({"2026-01": "a"}), _unconverted({"2026-02": "b"})
    first = _write(lake, UNCONVERTED, pa.concat_tables([january, february]), 1)
    assert len(lake.changes("unconverted", None).added) == 2
    assert not lake.changes("unconverted", first)
    _write(lake, UNCONVERTED, _unconverted({"2026-02": "c"}), 2, instead_of=["2026-02"])
    _write(lake, UNCONVERTED, _unconverted({"2026-03": "d"}), 3, instead_of=[])
    changes = lake.changes("unconverted", first)
    assert [(each.partition, each.is_there) for each in changes.added] == [("2026-02", True), ("2026-03", True)]
    assert [(each.partition, each.is_there) for each in changes.removed] == [("2026-02", False)]
    assert _paths_rows(lake, changes.added) == ["c", "d"]
    assert _paths_rows(lake, changes.removed) == ["b"]


def _paths_rows(lake: Lake, files: tuple[Stored, ...]) -> list[str]:
    return sorted(lake.rows("unconverted", files, pa.schema([("path", pa.string())]))["path"].to_pylist())


def test_files_that_were_merged_changed_nothing(lake: Lake) -> None:
    for number in range(10):
        version = _write(lake, UNCONVERTED, _unconverted({"2026-01": f"{number}"}), number, instead_of=[])
    tidied = lake.tidy_derived(history_hours=1)
    assert (tidied.merged, tidied.into) == (10, 1)
    assert not lake.changes("unconverted", version)
    since = lake.changes("unconverted", version - 2)
    assert [each.is_there for each in since.added] == [False, False]
    assert _paths_rows(lake, since.added) == ["8", "9"]


def test_what_is_gone_is_said_to_be_gone(lake: Lake) -> None:
    first = _write(lake, UNCONVERTED, _unconverted({"2026-01": "a"}), 1)
    second = _write(lake, UNCONVERTED, _unconverted({"2026-01": "b"}), 2)
    changes = lake.changes("unconverted", first)
    lake.tidy_derived(history_hours=0)
    with pytest.raises(VersionGone):
        list(lake.scan("unconverted", version=first))
    with pytest.raises(VersionGone):
        _paths_rows(lake, changes.removed)
    with pytest.raises(VersionGone):
        lake.ledger(UNCONVERTED).restore(first)
    with pytest.raises(VersionGone):
        lake.table("unconverted", second + 10)
    with pytest.raises(VersionGone):
        lake.changes("unconverted", second + 10)
    assert [batch["path"].to_pylist() for batch in lake.scan("unconverted", version=second)] == [["b"]]


def test_changes_that_the_log_forgot_are_gone(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in range(3):
        version = _write(lake, UNCONVERTED, _unconverted({"2026-01": "a"}), number)
    delta = lake.table("unconverted")
    assert delta is not None
    delta.create_checkpoint()
    (tmp_path / "unconverted" / "_delta_log" / f"{version - 1:020}.json").unlink()
    with pytest.raises(VersionGone, match="does not know any more"):
        lake.changes("unconverted", version - 2)


def test_a_version_is_seen_when_it_is_published(lake: Lake) -> None:
    assert lake.results() == []
    created_at = datetime(2026, 5, 17, 12, tzinfo=UTC)
    first = Result(version=1, created_at=created_at, credits_version=3, why="It is the first run.", seconds=1.5)
    second = Result(version=2, created_at=created_at, kind=Kind.INCREMENTAL, settings='{"models": {}}')
    for result in (first, second):
        lake.publish(result, NOW_MS)
    assert lake.results() == [first, second]


def test_versions_that_a_later_release_published_are_read_and_followed(lake: Lake) -> None:
    later = dataclasses.replace(RESULTS, rows=pa.schema([*RESULTS.rows, ("weather_version", pa.int64())]))
    first = Result(version=1, created_at=datetime(2026, 5, 17, 12, tzinfo=UTC), settings="{}")
    row = msgspec.structs.asdict(first) | {"weather_version": 7}
    _write(lake, later, pa.Table.from_pylist([row], later.whole), 1, instead_of=())
    assert lake.results() == [first]
    second = replace(first, version=2)
    lake.publish(second, NOW_MS)
    assert lake.results() == [first, second]


@pytest.mark.parametrize("version", [1, 3])
def test_a_run_that_began_before_another_published_is_refused(lake: Lake, version: int) -> None:
    lake.publish(Result(version=1), NOW_MS)
    with pytest.raises(RunOvertaken, match="version 1"):
        lake.publish(Result(version=version), NOW_MS)
    assert [result.version for result in lake.results()] == [1]


def test_of_two_that_publish_at_the_same_moment_one_is_refused(lake: Lake) -> None:
    ledgers = [lake.ledger(RESULTS) for _ in range(2)]
    rows = pa.Table.from_pylist([{"version": 1, "kind": "full"}], RESULTS.whole)

    def publish(number: int) -> None:
        parts = ledgers[number].parts(f"part-{number}", NOW_MS)
        parts.write(rows)
        ledgers[number].commit(parts.close(), NOW_MS, notes={"version": 1})

    publish(0)
    with pytest.raises(RunOvertaken):
        publish(1)
    assert [batch.num_rows for batch in lake.scan("results")] == [1]


def test_rows_are_appended_by_the_day_that_they_are_of(lake: Lake) -> None:
    rows: list[dict[str, Any]] = [
        {"client_id": "c", "channel": "google", "amount_minor": 100 * day, "day": date(2026, 5, day)} for day in (1, 2)
    ]
    for _ in range(2):
        lake.append(COSTS, pa.Table.from_pylist(rows, COSTS.whole), NOW_MS)
    where = pc.field("day") == pa.scalar(date(2026, 5, 2))
    found = [row for batch in lake.scan("costs", where) for row in batch.to_pylist()]
    assert [(row["day"], row["amount_minor"]) for row in found] == [(date(2026, 5, 2), 200)] * 2


@pytest.mark.parametrize("table", [*DERIVED, LAST], ids=lambda table: table.name)
def test_every_table_can_be_written_merged_and_read(tmp_path: Path, table: Table) -> None:
    lake, rows = Lake(tmp_path), pa.Table.from_pylist([_example(table)] * 3, table.whole)
    for _ in range(8):
        lake.append(table, rows, NOW_MS)
    assert lake.tidy_derived(history_hours=0).deleted == 8
    (uri,) = lake.uris(table.name)
    metadata = pa.parquet.read_metadata(uri)
    assert {metadata.row_group(0).column(at).compression for at in range(metadata.num_columns)} == {"ZSTD"}
    found = pa.Table.from_batches(lake.scan(table.name)).select(table.whole.names).cast(table.whole)
    assert found.to_pylist() == rows.to_pylist() * 8


_EXAMPLES: dict[Callable[[pa.DataType], bool], object] = {
    pa.types.is_string: "2026-05",
    pa.types.is_timestamp: datetime(2026, 5, 17, tzinfo=UTC),
    pa.types.is_date: date(2026, 5, 17),
    pa.types.is_boolean: True,
    pa.types.is_integer: 7,
    pa.types.is_floating: 0.25,
    pa.types.is_list: ["2026-05"],
}


def _example(table: Table) -> dict[str, object]:
    return {
        field.name: next(value for matches, value in _EXAMPLES.items() if matches(field.type)) for field in table.whole
    }


def test_rows_of_many_partitions_become_one_file_for_each(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    ledger = lake.ledger(LAST)
    parts = ledger.parts("part", NOW_MS)
    for number in range(20):
        parts.write(_credits(f"2026-{number % 4 + 1:02}", [f"{number}"]))
    assert parts.rows == 20
    ledger.commit(parts.close(), NOW_MS, notes={})
    assert len(lake.uris(CREDITS)) == 4
    assert len(_orders(lake)) == 20


def test_files_are_where_they_are_said_to_be_whatever_the_folder_is_called(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "a größer lake")
    lake.append(ADS, pa.Table.from_pylist([_example(ADS)], ADS.whole), NOW_MS)
    (file,) = lake.uris(ADS.name)
    assert pa.parquet.read_metadata(file).num_rows == 1


def test_a_table_that_nobody_wrote_has_no_rows_and_no_changes(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert list(lake.scan(ADS.name)) == lake.uris(ADS.name) == []
    assert not lake.changes(ADS.name, None)
    with pytest.raises(VersionGone):
        lake.changes(ADS.name, 0)
