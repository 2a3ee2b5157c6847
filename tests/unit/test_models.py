"""Each model gives what its formula says, on worked cases, on published answers, and whatever the paths are."""

import csv
import gzip
import json
from fractions import Fraction
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clickclock.attribution.crediting.credit import split
from clickclock.attribution.models import (
    BUILT_IN,
    TRANSFORMS,
    BadOrder,
    BadPath,
    ByChannel,
    Journey,
    JourneyModel,
    Model,
    NoModel,
    PathRow,
    Share,
    TableModel,
    TimesNeeded,
    TooManyStates,
    by_channel,
    choose,
    counts,
    credit_counts,
    credit_table,
    registry,
)
from clickclock.attribution.models import chain as chain_module
from clickclock.attribution.models.chain import (
    STATES_FEW,
    STATES_INVERTED_MAX,
    STATES_MAX,
    build,
    divided,
    eliminated,
    inverted,
    iterated,
    steps,
)
from clickclock.attribution.models.last_non_direct import LastNonDirect
from clickclock.attribution.models.markov import Markov, removal_effects
from clickclock.attribution.models.shapley import Shapley, ShapleyRate
from clickclock.attribution.models.table import Paths
from clickclock.attribution.models.time_decay import TimeDecay
from clickclock.foundation.instant import DAY_MS
from tests.elsewhere import Steady

PATHDATA = Path(__file__).parents[1] / "data" / "pathdata"
GA_MAIL = [PathRow(("GA",), 2, 20, 1), PathRow(("Mail",), 1, 10), PathRow(("GA", "Mail"), 1, 10)]

OF_TABLES: list[Model] = [
    *(choose(name, {}) for name in ("first", "last", "last_non_direct", "linear", "position", "shapley")),
    ShapleyRate(),
    *(Markov(order, nulls) for order in (1, 2, 3, 4) for nulls in (True, False)),
]
PATHS = st.lists(st.sampled_from("ABCD"), min_size=1, max_size=6).map(tuple)
ROWS = st.lists(
    st.builds(PathRow, PATHS, st.integers(0, 9), st.integers(0, 900), st.integers(0, 9)), min_size=1, max_size=8
)


def weights(name: str, *channels: str) -> list[float]:
    model = choose(name, {})
    assert isinstance(model, JourneyModel)
    given = model.weights(Journey(channels))
    return [weight / sum(given) for weight in given]


@cache
def pathdata() -> tuple[tuple[PathRow, ...], dict[str, Any]]:
    with gzip.open(PATHDATA / "pathdata.csv.gz", "rt") as file:
        rows = tuple(
            PathRow(
                tuple(row["path"].split(" > ")),
                float(row["total_conversions"]),
                float(row["total_conversion_value"]),
                float(row["total_null"]),
            )
            for row in csv.DictReader(file)
        )
    return rows, json.loads((PATHDATA / "pathdata-known-answers.json").read_text())


# One journey


def test_the_single_touch_models_credit_one_touchpoint() -> None:
    assert weights("first", "a", "b", "direct") == [1, 0, 0]
    assert weights("last", "a", "b", "direct") == [0, 0, 1]
    assert weights("last_non_direct", "a", "b", "direct", "direct") == [0, 1, 0, 0]


def test_where_all_is_direct_the_last_direct_touchpoint_is_credited() -> None:
    assert weights("last_non_direct", "direct", "direct") == [0, 1]
    assert LastNonDirect(frozenset({"none"})).weights(Journey(("a", "direct", "none"))) == [0, 1, 0]


def test_linear_gives_all_the_same() -> None:
    assert weights("linear", "a", "b", "a", "c") == [0.25] * 4


@pytest.mark.parametrize(
    ("touches", "expected"),
    [(1, [1]), (2, [0.5, 0.5]), (3, [0.4, 0.2, 0.4]), (5, [0.4, 0.2 / 3, 0.2 / 3, 0.2 / 3, 0.4])],
)
def test_position_gives_the_ends_40_percent(touches: int, expected: list[float]) -> None:
    assert weights("position", *"abcde"[:touches]) == pytest.approx(expected, rel=1e-15)


def test_time_decay_halves_with_each_week() -> None:
    journey = Journey(("a", "b", "c"), (0, 7 * DAY_MS, 14 * DAY_MS), 14 * DAY_MS)
    assert TimeDecay().weights(journey) == [0.25, 0.5, 1]


def test_the_time_from_the_last_touch_to_the_order_leaves_time_decay_as_it_is() -> None:
    times_ms = (0, 3 * DAY_MS)
    soon, late = (TimeDecay().weights(Journey(("a", "b"), times_ms, day * DAY_MS)) for day in (3, 30_000))
    assert soon == late


def test_a_half_life_can_be_chosen_and_none_is_refused() -> None:
    assert TimeDecay(DAY_MS).weights(Journey(("a", "b"), (0, DAY_MS))) == [0.5, 1]
    with pytest.raises(ValueError, match="half-life of 0 ms"):
        TimeDecay(0)


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("time_decay", {"half_life_ms": float("nan")}, "half-life of nan ms is none"),
        ("time_decay", {"half_life_ms": float("inf")}, "half-life of inf ms is none"),
        ("time_decay", {"half_life_ms": "7 d"}, "half-life of 7 d ms is none"),
        ("time_decay", {"half_life_ms": True}, "half-life of True ms is none"),
        ("last_non_direct", {"direct": "direct"}, "direct is 'direct'; give a list of channels"),
        ("last_non_direct", {"direct": 7}, "direct is 7; give a list of channels"),
        ("last_non_direct", {"direct": ["direct", 7]}, r"direct is \['direct', 7\]; give a list of channels"),
        ("markov", {"with_nulls": "no"}, "with_nulls is 'no'; give true or false"),
    ],
)
def test_a_setting_that_would_give_wrong_numbers_is_refused(name: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        choose(name, settings)


def test_time_decay_on_paths_without_times_is_refused() -> None:
    with pytest.raises(TimesNeeded, match="no times here"):
        credit_table(TimeDecay(), GA_MAIL)


def test_shapley_gives_channels_the_same_and_splits_a_channel_over_its_touches() -> None:
    assert weights("shapley", "a", "b", "a") == [0.25, 0.5, 0.25]


def test_by_channel_weighs_a_journey_by_what_its_channels_are_worth() -> None:
    learnt = by_channel(Markov(), GA_MAIL)
    assert learnt.weights(Journey(("GA", "Mail", "GA"))) == pytest.approx([1.2, 1.6, 1.2], rel=1e-14)


def test_by_channel_splits_a_journey_of_worthless_channels_equally() -> None:
    assert ByChannel({"a": -1.0}).weights(Journey(("a", "b", "a"))) == [0.5, 1, 0.5]


def test_a_journey_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Journey(())
    with pytest.raises(ValueError, match="one for each"):
        Journey(("a",), (1, 2))
    with pytest.raises(ValueError, match="time order"):
        Journey(("a", "b"), (2, 1))


@given(st.lists(st.sampled_from(["a", "b", "direct"]), min_size=1, max_size=20), st.integers(0, 10**9), st.data())
def test_the_credits_of_every_model_sum_to_the_amount(channels: list[str], amount: int, data: st.DataObject) -> None:
    days = st.lists(st.integers(0, 40_000 * DAY_MS), min_size=len(channels), max_size=len(channels))
    journey = Journey(tuple(channels), tuple(sorted(data.draw(days))))
    for name in BUILT_IN:
        model = choose(name, {})
        if not isinstance(model, JourneyModel):
            model = by_channel(model, GA_MAIL)
        assert sum(split(amount, model.weights(journey))) == amount


# Tables of paths


@pytest.mark.parametrize(
    ("name", "key"),
    [("first", "first"), ("last", "last"), ("linear", "linear_touch"), ("markov", "markov_order1_with_null")],
)
def test_pathdata_gets_the_known_answers(name: str, key: str) -> None:
    rows, answers = pathdata()
    expected = answers[key].get("channels", answers[key])
    credit = credit_table(choose(name, {}), rows)
    assert credit.keys() == expected.keys()
    for channel, share in credit.items():
        assert share.conversions == pytest.approx(expected[channel]["conv"], rel=1e-6)
        assert share.value == pytest.approx(expected[channel]["value"], rel=1e-6)


def test_pathdata_gets_the_known_removal_effects() -> None:
    rows, answers = pathdata()
    known = answers["markov_order1_with_null"]
    effects = removal_effects(rows)
    assert effects.probability == pytest.approx(known["p_conv"], rel=1e-6)
    for channel, numbers in known["channels"].items():
        assert effects.conversions[channel] == pytest.approx(numbers["re_conv"], rel=1e-6)
        assert effects.value[channel] == pytest.approx(numbers["re_value"], rel=1e-6)


def test_the_small_chain_has_its_worked_answer() -> None:
    effects = removal_effects(GA_MAIL)
    assert effects.probability == pytest.approx(0.8, rel=1e-14)
    assert effects.conversions == pytest.approx({"GA": 0.75, "Mail": 0.5}, rel=1e-14)
    credit = Markov().credit(GA_MAIL)
    assert credit["GA"] == pytest.approx((2.4, 24), rel=1e-14)
    assert credit["Mail"] == pytest.approx((1.6, 16), rel=1e-14)


def test_three_channels_get_what_the_first_article_on_markov_attribution_computes() -> None:
    # S. Bryl on analyzecore.com (2016), "Marketing Multi-Channel Attribution model with R", part 1, Markov chains.
    # The packages markovattribution (npm) and markov_model_attribution (PyPI) publish the same numbers.
    rows = [PathRow(("C1", "C2", "C3"), 1, 1000), PathRow(("C1",), 0, 0, 1), PathRow(("C2", "C3"), 0, 0, 1)]
    effects = removal_effects(rows)
    assert effects.probability == pytest.approx(1 / 3, rel=1e-14)
    assert effects.conversions == pytest.approx({"C1": 0.5, "C2": 1, "C3": 1}, rel=1e-14)
    expected = {"C1": (0.2, 200), "C2": (0.4, 400), "C3": (0.4, 400)}
    assert Markov().credit(rows) == {channel: pytest.approx(each, rel=1e-14) for channel, each in expected.items()}


def test_repeated_channels_get_what_another_package_comes_near_to_by_simulation() -> None:
    # The README of pychattr (PyPI): A 1.991106 and B 1.008894, by ten thousand simulated paths.
    credit = Markov().credit([PathRow(tuple(path)) for path in ("ABABBA", "ABBAA", "AA")])
    assert [share.conversions for share in credit.values()] == pytest.approx([2, 1], rel=1e-14)
    assert [share.conversions for share in credit.values()] == pytest.approx([1.991106, 1.008894], rel=0.01)


def test_the_set_game_of_three_channels_has_its_published_values() -> None:
    # "Data-Driven Marketing Attribution", towardsdatascience.com (2020), and its notebook in tomgorb/misc: the parts of
    # 100 conversions by the sets of channels that they had; F 0.455, O 0.205, L 0.34.
    sets = {"F": 20, "O": 10, "L": 17, "FO": 17, "FL": 30, "OL": 0, "FOL": 6}
    credit = credit_table(Shapley(), [PathRow(tuple(channels), count) for channels, count in sets.items()])
    found = {channel: share.conversions for channel, share in credit.items()}
    assert found == pytest.approx({"F": 45.5, "O": 20.5, "L": 34}, rel=1e-14)


def test_the_set_game_splits_a_path_over_its_distinct_channels() -> None:
    credit = credit_table(Shapley(), [PathRow(("A",), 4), PathRow(("A", "B", "A"), 6)])
    assert {channel: share.conversions for channel, share in credit.items()} == {"A": 7, "B": 3}


def test_a_channel_that_lowers_the_conversion_rate_gets_a_negative_part() -> None:
    # A alone converts at 1/2, with B at 1/4: of the pair, A is worth 3/8 and B -1/8; times 8 paths.
    credit = ShapleyRate().credit([PathRow(("A",), 1, 0, 1), PathRow(("B", "A"), 2, 0, 6)])
    assert credit["A"].conversions == pytest.approx(1 + 3)
    assert credit["B"].conversions == pytest.approx(-1)


def test_the_conversion_rate_game_on_pathdata_is_that_of_marketing_attribution_models() -> None:
    # Version 2.1.1, told to look at all channels of a path.
    known = {"alpha": 7487.101, "beta": 1973.83, "delta": -2.546, "epsilon": 440.623, "eta": 3594.718, "gamma": 124.941}
    known |= {"iota": 3377.557, "kappa": 159.527, "lambda": 1022.493, "mi": 2.191, "theta": 1598.107, "zeta": 6.457}
    credit = ShapleyRate().credit(pathdata()[0])
    assert {channel: share.conversions for channel, share in credit.items()} == pytest.approx(known, abs=5e-4)


def test_a_table_without_conversions_credits_nothing() -> None:
    for model in OF_TABLES:
        assert credit_table(model, [PathRow(("A", "B"), 0, 0, 5)]) == {"A": (0, 0), "B": (0, 0)}
        assert credit_table(model, []) == {}


@pytest.mark.parametrize(
    "row", [PathRow(()), PathRow(("A",), -1), PathRow(("A",), 1, float("nan")), PathRow(("A",), 1, 1, float("inf"))]
)
def test_a_row_that_is_no_path_is_refused_by_its_number(row: PathRow) -> None:
    for model in OF_TABLES:
        with pytest.raises(BadPath, match="Row 2 has"):
            credit_table(model, [PathRow(("A",)), row])


def test_an_empty_channel_is_refused_by_its_row() -> None:
    for model in OF_TABLES:
        with pytest.raises(BadPath, match="Row 2 has an empty channel"):
            credit_table(model, [PathRow(("A",)), PathRow(("A", ""))])


@pytest.mark.parametrize("order", [0, 5, -1, 1.5, 2.0])
def test_an_order_that_no_chain_has_is_refused(order: Any) -> None:
    with pytest.raises(BadOrder, match="from 1 to 4"):
        Markov(order)


def test_a_chain_with_too_many_states_is_refused_before_it_takes_the_memory() -> None:
    rows = [PathRow((f"channel {number}",)) for number in range(STATES_MAX)]
    with pytest.raises(TooManyStates, match="500,001 states"):
        Markov().credit(rows)


def test_channels_that_lead_to_nothing_are_no_states_and_cost_next_to_nothing() -> None:
    # Anybody can send clicks that say a new channel each.
    rows = [*GA_MAIL, *(PathRow((f"channel {number}",), 0, 0, 1) for number in range(100_000))]
    chain = build(steps(Paths.of(rows), 1), 1)
    assert (chain.size, sorted(chain.members)) == (3, ["GA", "Mail"])
    alone = [*GA_MAIL, PathRow(("channel 0",), 0, 0, 100_000)]
    for model in (Markov(), ShapleyRate()):
        shares = model.credit(rows)
        assert len(shares) == 100_002
        assert shares["channel 7"] == Share(0, 0)
        assert_same({name: shares[name] for name in ("GA", "Mail", "channel 0")}, model.credit(alone))


@pytest.mark.parametrize("count", [STATES_FEW, STATES_INVERTED_MAX + 1])
def test_channels_of_one_path_alone_share_what_a_single_one_in_their_place_gets(count: int) -> None:
    rows = [*GA_MAIL, PathRow(("GA", "Mail", "Mail"), 3, 0, 90)]
    many = removal_effects([*rows, PathRow(tuple(f"channel {number}" for number in range(count)), 2)])
    one = removal_effects([*rows, PathRow(("channel 0",), 2)])
    assert many.probability == pytest.approx(one.probability, rel=1e-12)
    alike = dict.fromkeys((f"channel {number}" for number in range(count)), one.conversions["channel 0"])
    assert many.conversions == pytest.approx(one.conversions | alike, rel=1e-12)


def test_a_channel_for_each_of_many_orders_is_worth_its_order() -> None:
    # As where a mailing has a source of its own for each address.
    shares = Markov().credit([PathRow((f"channel {number}", "channel 0"), 1, 20) for number in range(1, 100_001)])
    assert shares["channel 0"] == pytest.approx((50_000, 1_000_000), rel=1e-12)
    assert shares["channel 77"] == pytest.approx((0.5, 10), rel=1e-12)


def test_the_conversion_rate_game_of_ever_new_channels_is_played_one_set_at_a_time() -> None:
    rows = [PathRow((f"channel {number}", "mail"), 1, 20, 1) for number in range(100_000)]
    shares = ShapleyRate().credit([*rows, PathRow(("mail",), 1, 20, 3)])
    # Of each pair, which converts at 1/2, mail has 3/8, as it converts at 1/4 alone.
    assert shares["channel 77"] == pytest.approx((0.25, 5), rel=1e-12)
    assert shares["mail"] == pytest.approx((75_001, 1_500_020), rel=1e-12)


def test_a_chain_that_ends_too_slowly_says_so() -> None:
    there_and_back = PathRow(("GA", "Mail") * 100, 1)
    chain = build(steps(Paths.of([there_and_back, PathRow(("once",), 1)]), 1), 1)
    with pytest.raises(TooManyStates, match="end too slowly"):
        divided(chain, steps_max=1000)
    (whole, _), lost = divided(chain)
    assert whole == pytest.approx(1, rel=1e-12)
    assert lost["once"] == pytest.approx((0.5, 0), rel=1e-12)


def test_channels_are_iterated_some_at_a_time_with_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = build(steps(Paths.of([row for row in pathdata()[0] if row.conversions + row.nulls]), 1), 1)
    at_once = iterated(chain)
    monkeypatch.setattr(chain_module, "CELLS_MAX", 10 * chain.size)
    whole, lost = iterated(chain)
    assert whole == pytest.approx(at_once[0], rel=1e-12)
    assert lost.keys() == at_once[1].keys() == chain.members.keys()
    for channel, found in lost.items():
        assert found == pytest.approx(at_once[1][channel], rel=1e-12)


# Whatever the paths are


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for channel, share in one.items():
        assert share == pytest.approx(other[channel], rel=1e-11, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_means_nothing(rows: list[PathRow], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    for model in OF_TABLES:
        assert_same(credit_table(model, rows), credit_table(model, shuffled))


@settings(max_examples=40, deadline=None)
@given(ROWS, PATHS, st.lists(st.integers(0, 9), min_size=6, max_size=6))
def test_a_row_in_two_parts_is_the_same_row(rows: list[PathRow], path: tuple[str, ...], parts: list[int]) -> None:
    whole = PathRow(path, parts[0] + parts[3], parts[1] + parts[4], parts[2] + parts[5])
    for model in OF_TABLES:
        apart = [PathRow(path, *parts[:3]), *rows, PathRow(path, *parts[3:])]
        assert_same(credit_table(model, [*rows, whole]), credit_table(model, apart))


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_channels_that_could_change_places_get_the_same(rows: list[PathRow]) -> None:
    places = {"A": "B", "B": "A"}
    swapped = [row._replace(path=tuple(places.get(channel, channel) for channel in row.path)) for row in rows]
    for model in OF_TABLES:
        credit = credit_table(model, [*rows, *swapped])
        if "A" in credit:
            assert credit["A"] == pytest.approx(credit["B"], rel=1e-11, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_the_shares_sum_to_the_totals(rows: list[PathRow]) -> None:
    worthy = [row if row.conversions else row._replace(value=0) for row in rows]
    for model in OF_TABLES:
        credit = credit_table(model, worthy).values()
        assert sum(share.conversions for share in credit) == pytest.approx(sum(row.conversions for row in worthy))
        assert sum(share.value for share in credit) == pytest.approx(sum(row.value for row in worthy))


def counted(model: TableModel, rows: list[PathRow]) -> dict[tuple[tuple[str, ...], str], float]:
    """How often each part of paths was part of a conversion, and how often not."""
    found = list(counts(model, Paths.of(rows)))
    assert len({row.path for row in found}) == len(found)
    return {(row.path, name): getattr(row, name) for row in found for name in ("conversions", "nulls")}


OF_COUNTS: list[TableModel] = [
    Steady(),
    ShapleyRate(),
    *(Markov(order, nulls) for order in (1, 2, 3, 4) for nulls in (True, False)),
]


@settings(max_examples=40, deadline=None)
@given(ROWS, ROWS)
def test_the_counts_of_two_tables_are_those_of_both_added_up(rows: list[PathRow], others: list[PathRow]) -> None:
    for model in OF_COUNTS:
        both, one, other = (counted(model, each) for each in ([*rows, *others], rows, others))
        assert both == {part: one.get(part, 0) + other.get(part, 0) for part in one.keys() | other.keys()}


@settings(max_examples=40, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_what_was_counted_teaches_what_the_paths_teach_to_the_last_bit(rows: list[PathRow], random: Any) -> None:
    for model in OF_COUNTS:
        parts = counts(model, Paths.of(rows))
        shuffled = list(range(len(parts)))
        random.shuffle(shuffled)
        assert credit_counts(model, parts.only(np.array(shuffled))) == credit_counts(model, parts)
        merged = Paths.of(rows).merged()
        assert credit_counts(model, counts(model, merged)) == model.credit(merged)


def exact_conversion(rows: list[PathRow], order: int, removed: str | None, *, nulls: bool) -> Fraction:
    """P(conversion) without a channel, by Gauss's elimination in fractions: no part of the product has a hand in it."""
    counts: dict[tuple[str, ...], dict[Any, Fraction]] = {}
    for row in rows:
        weight = Fraction(row.conversions) + (Fraction(row.nulls) if nulls else 0)
        if not weight:
            continue
        states = [row.path[max(0, place - order) : place] for place in range(len(row.path) + 1)]
        for here, there in zip(states, [*states[1:], None], strict=True):
            moves = counts.setdefault(here, {})
            moves[there] = moves.get(there, Fraction(0)) + (weight if there is not None else Fraction(row.conversions))
            moves["all"] = moves.get("all", Fraction(0)) + weight
    places = {state: place for place, state in enumerate(counts)}
    size = len(places)
    lines = [[Fraction(int(at == place)) for at in range(size)] + [Fraction(0)] for place in range(size)]
    for here, moves in counts.items():
        for there, count in moves.items():
            if there is None:
                lines[places[here]][size] += count / moves["all"]
            elif there != "all" and there[-1] != removed:
                lines[places[here]][places[there]] -= count / moves["all"]
    for place in range(size):
        pivot = next(at for at in range(place, size) if lines[at][place])
        lines[place], lines[pivot] = lines[pivot], lines[place]
        for at in range(size):
            if at != place and lines[at][place]:
                factor = lines[at][place] / lines[place][place]
                lines[at] = [mine - factor * other for mine, other in zip(lines[at], lines[place], strict=True)]
    return lines[places[()]][size] / lines[places[()]][places[()]]


# What passes through `e` is a millionth of a millionth of what moves.
RARELY_PASSED = [
    PathRow(("c", "c", "d"), 5, nulls=1_000_000),
    PathRow(("b", "a"), 1, nulls=3),
    PathRow(("a",), 5, nulls=3),
    PathRow(("a", "d", "e", "d", "c", "a", "a"), 1),
]


@settings(max_examples=25, deadline=None)
@given(ROWS.filter(lambda rows: any(row.conversions for row in rows)), st.integers(1, 4), st.booleans())
@example(rows=RARELY_PASSED, order=1, nulls=True)
@example(rows=RARELY_PASSED, order=2, nulls=True)
def test_markov_is_within_a_trillionth_of_the_exact_answer(rows: list[PathRow], order: int, nulls: bool) -> None:
    whole = exact_conversion(rows, order, None, nulls=nulls)
    channels = {channel for row in rows for channel in row.path}
    exact = {channel: 1 - exact_conversion(rows, order, channel, nulls=nulls) / whole for channel in channels}
    effects = removal_effects(rows, order, with_nulls=nulls)
    assert effects.probability == pytest.approx(float(whole), rel=1e-12)
    assert effects.conversions == pytest.approx({c: float(effect) for c, effect in exact.items()}, rel=1e-12, abs=0)
    total = sum(row.conversions for row in rows)
    for channel, share in Markov(order, nulls).credit(rows).items():
        expected = float(total * exact[channel] / sum(exact.values()))
        assert share.conversions == pytest.approx(expected, rel=1e-12, abs=0)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.integers(1, 4))
def test_a_large_chain_is_solved_as_a_small_one(rows: list[PathRow], order: int) -> None:
    counted = [row for row in rows if row.conversions + row.nulls]
    if counted:
        chain = build(steps(Paths.of(counted), order), order)
        (small, small_lost), (large, large_lost) = eliminated(chain), iterated(chain)
        slow, slow_lost = inverted(chain)
        parts, parts_lost = divided(chain)
        assert large == pytest.approx(small, rel=1e-12) == slow
        assert parts == pytest.approx(small, rel=1e-12)
        assert parts_lost.keys() == large_lost.keys()
        for channel, lost in large_lost.items():
            assert lost == pytest.approx(small_lost[channel], rel=1e-12, abs=0)
            assert lost == pytest.approx(slow_lost[channel], rel=1e-12, abs=1e-13)
            assert lost == pytest.approx(parts_lost[channel], rel=1e-12, abs=0)


def test_pathdata_has_the_same_answer_by_both_ways() -> None:
    chain = build(steps(Paths.of([row for row in pathdata()[0] if row.conversions + row.nulls]), 2), 2)
    (small, small_lost), (large, large_lost) = inverted(chain), iterated(chain)
    assert large == pytest.approx(small, rel=1e-12)
    for channel, lost in large_lost.items():
        assert lost == pytest.approx(small_lost[channel], rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_the_conversion_rate_game_is_the_mean_over_all_orders_of_arrival(rows: list[PathRow]) -> None:
    converted: dict[frozenset[str], int] = {}
    paths: dict[frozenset[str], int] = {}
    for row in rows:
        members = frozenset(row.path)
        converted[members] = converted.get(members, 0) + int(row.conversions)
        paths[members] = paths.get(members, 0) + int(row.conversions + row.nulls)

    def rate(members: frozenset[str]) -> Fraction:
        return Fraction(converted[members], paths[members]) if paths.get(members) else Fraction(0)

    expected = {channel: Fraction(0) for row in rows for channel in row.path}
    for members, count in paths.items():
        if not converted[members]:
            continue
        arrivals = list(permutations(sorted(members)))
        for arrival in arrivals:
            for place, channel in enumerate(arrival):
                gain = rate(frozenset(arrival[: place + 1])) - rate(frozenset(arrival[:place]))
                expected[channel] += count * gain / len(arrivals)
    for channel, share in ShapleyRate().credit(rows).items():
        assert share.conversions == pytest.approx(float(expected[channel]), rel=1e-11, abs=1e-11)


# Transforms and names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("unique", "D A B B C D C C"),
        ("exposure", "D A B C D C"),
        ("first", "D A B C"),
        ("frequency", "D(2) A(1) B(2) C(3)"),
    ],
)
def test_a_transform_keeps_what_its_name_says(name: str, expected: str) -> None:
    assert TRANSFORMS[name](tuple("DABBCDCC")) == tuple(expected.split())


def test_a_third_party_adds_a_model_and_replaces_none() -> None:
    models = registry({"mine": Shapley})
    assert choose("mine", {}, models) == Shapley()
    with pytest.raises(NoModel, match="first is built in"):
        registry({"first": Shapley})


def test_a_model_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(NoModel, match="no model magic; there are first, last, "):
        choose("magic", {})


def test_a_setting_that_a_model_has_not_is_refused() -> None:
    with pytest.raises(NoModel, match="The model first has no setting order; it has none"):
        choose("first", {"order": 2})
    assert choose("markov", {"order": 2, "with_nulls": False}) == Markov(2, with_nulls=False)
