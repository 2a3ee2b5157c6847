"""What differs between two versions is told order by order, and why."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from clickclock.attribution.agents.attributor import Settings
from clickclock.attribution.agents.attributor.target import Target
from clickclock.attribution.agents.comparer import Comparer
from clickclock.attribution.clicks import identifier
from clickclock.attribution.crediting.policy import Policies, Policy, Window
from clickclock.attribution.errors import VersionGone
from clickclock.attribution.lake import TOUCHES, Lake, credits_table
from clickclock.attribution.reporting.difference import Cause, Comparison, document
from clickclock.attribution.reporting.report import NoVersion
from clickclock.attribution.reporting.result import Result
from clickclock.cli.attribution_diff import diff
from clickclock.foundation.instant import instant_of
from clickclock.foundation.record import rfc3339
from tests.credited import DAY_MS, HOUR_MS, MODELS, START_MS, click, erase, identify, load, order, run
from tests.lakes import NOW, NOW_MS, SmallLake, credited, touch

NOVEMBER_MS = START_MS + DAY_MS


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with one version: two orders of one client, and one of another."""
    folder = tmp_path_factory.mktemp("original")
    lake = Lake(folder / "lake")
    load(
        lake,
        click(1, START_MS, cli_ubid="a"),
        click(2, START_MS, cli_ubid="b", source="meta"),
        order(3, "of a", START_MS + 5 * HOUR_MS, cli_ubid="a"),
        order(4, "of b", START_MS + 5 * HOUR_MS, cli_ubid="b"),
        order(5, "other", START_MS + 5 * HOUR_MS, cli_ubid="a", client_id="other"),
    )
    run(lake, folder)
    return folder / "lake"


@pytest.fixture
def lake(original: Path, tmp_path: Path) -> Lake:
    """A copy of it."""
    return Lake(shutil.copytree(original, tmp_path / "lake"))


def causes(found: Comparison) -> dict[str, list[str]]:
    """The causes of each order that differs."""
    return {each.order_id: [told.cause.value for told in each.causes] for each in found.orders}


def told(lake: Lake, before: int = 1, after: int = 2, client_id: str | None = None) -> dict[str, list[str]]:
    return causes(Comparer(lake).compare(before, after, client_id))


def test_a_late_click_an_amendment_and_a_new_order_are_told(lake: Lake, tmp_path: Path) -> None:
    load(
        lake,
        click(6, START_MS + HOUR_MS, cli_ubid="a", source="mail", received_ms=START_MS + DAY_MS),
        order(7, "of b", START_MS + 6 * HOUR_MS, cli_ubid="b", status="refunded"),
        order(8, "new", START_MS + 6 * HOUR_MS, cli_ubid="c"),
    )
    run(lake, tmp_path)
    assert told(lake) == {"new": ["new_order"], "of a": ["click_came"], "of b": ["amended", "amended"]}
    assert told(lake, client_id="other") == {}
    assert told(lake, 2, 2) == {}


def test_the_credit_of_each_model_is_told_before_and_after(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(6, START_MS + HOUR_MS, cli_ubid="a", source="mail", received_ms=START_MS + DAY_MS))
    run(lake, tmp_path)
    (found,) = Comparer(lake).compare(1, 2).orders
    assert found.before is not None
    assert found.after is not None
    assert found.before.credits == {model: {"google": 1000} for model in MODELS}
    assert found.after.credits["last"] == {"google": 0, "mail": 1000}
    assert found.after.credits["linear"] == {"google": 500, "mail": 500}
    assert (len(found.before.touchpoints), len(found.after.touchpoints)) == (1, 2)


def test_people_who_became_one_are_told_with_the_click_that_they_brought(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(6, START_MS + 9 * HOUR_MS, cli_ubid="a", device_id="phone"))
    load(lake, click(7, START_MS + 9 * HOUR_MS, cli_ubid="b", device_id="phone"))
    run(lake, tmp_path)
    found = {cause for each in told(lake).values() for cause in each}
    assert found >= {"person_merged", "click_added"}
    assert "person_parted" not in found


def test_people_whom_a_crowded_device_parts_are_told_with_the_rule(lake: Lake, tmp_path: Path) -> None:
    guests = [
        click(40 + each, START_MS + each, cli_ubid=f"guest-{each}", device_id="tablet", atag=f"{each}")
        for each in range(3)
    ]
    bought = [order(50 + each, f"{each}'s", START_MS + HOUR_MS, cli_ubid=f"guest-{each}") for each in range(3)]
    load(lake, *guests, *bought)
    run(lake, tmp_path)
    load(lake, click(43, START_MS + 2 * HOUR_MS, cli_ubid="guest-3", device_id="tablet"))
    run(lake, tmp_path)
    found = Comparer(lake).compare(2, 3).orders
    whats = [cause.what for each in found for cause in each.causes if cause.cause is Cause.PERSON_PARTED]
    device = identifier.code("shop", "device_id", "tablet")
    why = f"; device {device} had 4 visitors at one time, too many for one person"
    assert [each.endswith(why) for each in whats] == [True] * 3


def test_a_withdrawn_identification_is_told_with_whom_it_parts_when_and_by_which_message(
    lake: Lake, tmp_path: Path
) -> None:
    load(
        lake,
        click(60, START_MS, cli_ubid="phone's"),
        click(61, START_MS, cli_ubid="laptop's", source="meta"),
        *(identify(62 + n, START_MS, customer_id="7", cli_ubid=each) for n, each in enumerate(["phone's", "laptop's"])),
        order(64, "bought", START_MS + HOUR_MS, cli_ubid="phone's"),
        order(65, "too", START_MS + HOUR_MS, cli_ubid="laptop's"),
    )
    run(lake, tmp_path)
    gone_ms = START_MS + 2 * HOUR_MS
    load(lake, identify(66, gone_ms, customer_id="7", cli_ubid="laptop's", status="withdrawn"))
    run(lake, tmp_path)
    customer, laptop = identifier.code("shop", "customer_id", "7"), identifier.code("shop", "cli_ubid", "laptop's")
    at = rfc3339(instant_of(gone_ms))
    message = f"{66:032x} of the table events, received {at}"
    why = f"; customer {customer} and cli_ubid {laptop} were parted at {at} by {message}"
    parted = {
        each.order_id: told.what
        for each in Comparer(lake).compare(2, 3).orders
        for told in each.causes
        if told.cause is Cause.PERSON_PARTED
    }
    assert parted.keys() == {"bought", "too"}
    assert all(what.endswith(why) for what in parted.values()), parted
    # And back again: who is one by it is told by which message.
    load(lake, identify(67, gone_ms + HOUR_MS, customer_id="7", cli_ubid="laptop's"))
    run(lake, tmp_path)
    merged = [
        told.what
        for each in Comparer(lake).compare(3, 4).orders
        for told in each.causes
        if told.cause is Cause.PERSON_MERGED
    ]
    assert len(merged) == 1
    assert f"; customer {customer} and cli_ubid {laptop} were identified at" in merged[0]
    assert f"{67:032x} of the table events" in merged[0]


def test_a_click_that_another_program_takes_for_one_on_another_ad_is_told_with_the_one_it_repeated(
    tmp_path: Path,
) -> None:
    small = SmallLake(tmp_path)
    first, second = touch("t-1", "2026-11-02T10:00", 1, cli_ubid=1), touch("t-2", "2026-11-02T10:20", 2, cli_ubid=1)

    def version(code: str, credit: tuple[int, ...], *touches: dict[str, Any]) -> None:
        table = pa.Table.from_pylist(list(touches), TOUCHES.whole)
        told = [(ad, 500, 0.5, 500, 0.5) for ad in credit]
        made = Target(small.lake, NOW_MS, 0).replace(
            credits_table(["last", "linear"]),
            pa.Table.from_pylist(
                [row | {"click_at": NOW} for row in credited("A", 1000, "EUR", told)],
                credits_table(["last", "linear"]).whole,
            ),
        )
        touched = Target(small.lake, NOW_MS, 0).replace(TOUCHES, table)
        settings = json.dumps({"policies": Policies().settings, "models": {"last": {}, "linear": {}}})
        number = len(small.lake.results()) + 1
        result = Result(
            version=number,
            created_at=NOW,
            settings=settings,
            code_version=code,
            credits_version=made,
            touches_version=touched,
        )
        small.lake.publish(result, NOW_MS)

    version("1", (1,), first, second | {"ad_key": 1})
    version("2", (1, 2), first, second)
    ((cause,),) = (each.causes for each in Comparer(small.lake).compare(1, 2).orders)
    assert cause.cause is Cause.CLICK_ADDED
    assert cause.what.endswith(": was a repeat of t-1, is on another ad now")
    ((cause,),) = (each.causes for each in Comparer(small.lake).compare(2, 1).orders)
    assert cause.cause is Cause.CLICK_LEFT_OUT
    assert cause.what.endswith(": is a repeat of t-1")


def test_other_rules_are_told_by_name_with_both_values(lake: Lake, tmp_path: Path) -> None:
    rules = Policies(Policy(windows=(Window(channel="google", days=1),), order_after_click_ms_min=5 * HOUR_MS + 1))
    run(lake, tmp_path, Settings(rules, {name: {} for name in MODELS}))
    found = Comparer(lake).compare(1, 2)
    settings = {each.name: (each.before, each.after) for each in found.settings}
    assert settings["policies.default.order_after_click_ms_min"] == (1000, 5 * HOUR_MS + 1)
    assert settings.keys() >= {"policies.default.windows"}
    assert causes(found) == {"of a": ["click_left_out"], "of b": ["click_left_out"]}


def test_models_that_only_one_version_has_are_named_and_make_no_order_differ(lake: Lake, tmp_path: Path) -> None:
    run(lake, tmp_path, Settings(Policies(), {"last": {}, "linear": {}, "first": {}}))
    found = Comparer(lake).compare(1, 2)
    assert (found.models_added, found.models_removed) == (("first",), ("markov", "shapley_rate"))
    assert (found.settings, found.differing, found.orders) == ((), 0, ())


def test_an_order_that_moved_to_another_month_is_one_changed_order(lake: Lake, tmp_path: Path) -> None:
    load(lake, order(6, "late", NOVEMBER_MS, cli_ubid="a"))
    run(lake, tmp_path)
    load(lake, order(7, "late", START_MS + 6 * HOUR_MS, cli_ubid="a"))
    run(lake, tmp_path)
    found = Comparer(lake).compare(2, 3)
    (late,) = (each for each in found.orders if each.order_id == "late")
    assert (found.new, found.gone) == (0, 0)
    assert [each.cause.value for each in late.causes] == ["amended"]
    assert late.before is not None
    assert late.after is not None
    assert (late.before.month, late.after.month) == ("2026-11", "2026-10")


def test_a_time_zone_that_moves_orders_to_another_month_changes_them(lake: Lake, tmp_path: Path) -> None:
    load(lake, order(6, "at night", START_MS + 13 * HOUR_MS, cli_ubid="a"))
    run(lake, tmp_path)
    run(lake, tmp_path, Settings(Policies(Policy(time_zone="Asia/Tokyo")), {name: {} for name in MODELS}))
    found = Comparer(lake).compare(2, 3)
    assert causes(found)["at night"] == ["settings_changed"]
    assert (found.new, found.gone) == (0, 0)


def test_all_orders_are_counted_and_the_first_are_told(lake: Lake, tmp_path: Path) -> None:
    load(lake, *(order(30 + number, f"n{number}", NOVEMBER_MS, cli_ubid="c") for number in range(9)))
    load(lake, order(50, "of b", START_MS + 6 * HOUR_MS, cli_ubid="b", status="refunded"))
    erase(lake, "orders", [f"{3:032x}"])
    run(lake, tmp_path)
    found = Comparer(lake).compare(1, 2, limit=3)
    assert list(causes(found)) == ["n0", "n1", "n2"]
    assert (found.differing, found.new, found.gone) == (11, 9, 1)
    assert document(found)["causes"] == {"new_order": 3}
    assert list(causes(Comparer(lake).compare(1, 2))) == [*(f"n{number}" for number in range(9)), "of a", "of b"]


def test_a_model_that_only_learnt_is_told_so(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(10, START_MS + HOUR_MS, cli_ubid="a", source="meta"))
    run(lake, tmp_path)
    assert told(lake)["of a"] == ["click_came"]
    load(lake, click(30, START_MS, cli_ubid="z", source="meta"))
    run(lake, tmp_path)
    assert told(lake, 2, 3) == {"of a": ["model_refitted"]}


def test_an_erased_order_is_gone(lake: Lake, tmp_path: Path) -> None:
    erase(lake, "orders", [f"{3:032x}"])
    run(lake, tmp_path)
    assert told(lake)["of a"] == ["order_gone"]


def test_a_version_that_is_not_there_is_refused(lake: Lake) -> None:
    with pytest.raises(NoVersion):
        Comparer(lake).compare(1, 9)


def test_a_version_whose_files_are_gone_is_said_to_be_gone(lake: Lake, tmp_path: Path) -> None:
    run(lake, tmp_path, full=True)
    lake.tidy_derived(history_hours=0)
    for file in (tmp_path / "lake" / "credits").rglob("*.parquet"):
        if str(file) not in lake.uris("credits"):
            file.unlink()
    with pytest.raises(VersionGone):
        Comparer(lake).compare(1, 2)


def test_whether_a_click_came_since_is_not_said_where_nobody_knows_any_more(lake: Lake, tmp_path: Path) -> None:
    load(lake, click(6, START_MS + HOUR_MS, cli_ubid="a", source="mail"))
    run(lake, tmp_path)
    for file in lake.addresses("touches", lake.changes("touches", lake.results()[0].touches_version).added):
        Path(file).unlink()
    assert told(lake)["of a"] == ["click_added"]


def test_the_command_line_tells_the_same(lake: Lake, tmp_path: Path) -> None:
    load(lake, *(order(30 + number, f"n{number}", START_MS + 6 * HOUR_MS, cli_ubid="c") for number in range(3)))
    load(lake, click(6, START_MS + HOUR_MS, cli_ubid="a", source="mail"))
    run(lake, tmp_path, Settings(Policies(Policy(clicks_per_person_max=7)), {"last": {}, "first": {}}))

    def output(*words: str) -> str:
        result = CliRunner().invoke(diff, ["1", "2", *words, "--data-dir", str(tmp_path)])
        assert result.exit_code == 0, result.output
        return result.output

    payload: dict[str, Any] = json.loads(output("--json"))
    assert payload == document(Comparer(lake).compare(1, 2))
    assert payload["causes"] == {"new_order": 3, "click_came": 1}
    text = output()
    assert text.startswith("models added: first\nmodels removed: linear, markov, shapley_rate\nsetting policies.")
    assert "4 orders differ; new: 3, gone: 0\n3 × new order\n" in text
    assert "  last: google 10.00 → google 0.00, mail 10.00\n" in text
    assert "  first: nothing → google 10.00, mail 0.00\n" in text
    assert output("--limit", "2").count("10.00 EUR, completed") == 2
    assert "… and 2 more" in output("--limit", "2")
    assert "0 orders differ" in output("--client-id", "nobody")
