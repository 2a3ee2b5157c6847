"""What networks are told: each conversion once, later changes as adjustments, and nothing that they would refuse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from clickclock.attribution.uploads.postback import rules
from clickclock.attribution.uploads.upload import (
    GOOGLE,
    META,
    Credited,
    Fate,
    Kind,
    Memory,
    Upload,
    by_client,
    decide,
    name,
    plan,
)
from clickclock.foundation.instant import DAY_MS

NOW = 1_800_000_000_000


def credit(
    value_minor: int = 990, *, click_days: float = 2, order_days: float = 1, is_free: bool = False, **changes: str
) -> Credited:
    fields = {"client_id": "c", "order_id": "A-1", "click_id": "1" * 32, "currency": "EUR"} | changes
    placed_ms, click_ms = (NOW - round(days * DAY_MS) for days in (order_days, click_days))
    return Credited(**fields, value_minor=value_minor, placed_ms=placed_ms, click_ms=click_ms, is_free=is_free)


def told(kind: Kind = Kind.CONVERSION, value_minor: int = 990, days: float = 1, **changes: str) -> Upload:
    fields = {"client_id": "c", "order_id": "A-1", "click_id": "1" * 32, "currency": "EUR", "name": "A-1"} | changes
    return Upload(kind, value_minor=value_minor, conversion_ms=NOW - round(days * DAY_MS), exported_ms=NOW, **fields)


def test_a_credit_becomes_a_conversion_with_the_time_of_its_order() -> None:
    found = credit()
    assert decide(found, None, GOOGLE, NOW) == Upload(
        Kind.CONVERSION, "c", "A-1", "1" * 32, 990, "EUR", found.placed_ms
    )


@pytest.mark.parametrize(
    ("found", "fate"),
    [
        (credit(0), Fate.NO_VALUE),
        (credit(click_days=0.99, order_days=0.5), Fate.HELD),
        (credit(click_days=1, order_days=0.5), None),
        (credit(click_days=2, order_days=-0.01), Fate.HELD),
        (credit(click_days=90, order_days=89), None),
        (credit(click_days=90.01, order_days=1), Fate.TOO_OLD),
    ],
)
def test_google_is_told_a_day_after_the_click_and_not_after_ninety(found: Credited, fate: Fate | None) -> None:
    decided = decide(found, None, GOOGLE, NOW)
    assert decided == fate if fate else isinstance(decided, Upload)


@pytest.mark.parametrize(("days", "is_told"), [(0, True), (7, True), (7.01, False)])
def test_meta_is_told_at_once_and_not_after_seven_days(days: float, is_told: bool) -> None:
    decided = decide(credit(click_days=30, order_days=days), None, META, NOW)
    assert isinstance(decided, Upload) if is_told else decided is Fate.TOO_OLD


@pytest.mark.parametrize(
    ("now_worth", "before", "kind", "value_minor"),
    [
        (credit(490), told(), Kind.RESTATE, 490),
        (credit(990, currency="USD"), told(), Kind.RESTATE, 990),
        (credit(0), told(), Kind.RETRACT, 0),
        (None, told(), Kind.RETRACT, 0),
        (credit(300), told(Kind.RESTATE, 490), Kind.RESTATE, 300),
        (credit(300), told(days=54), Kind.RESTATE, 300),
    ],
)
def test_what_changed_is_told_as_an_adjustment(
    now_worth: Credited | None, before: Upload, kind: Kind, value_minor: int
) -> None:
    decided = decide(now_worth, before, GOOGLE, NOW)
    assert isinstance(decided, Upload)
    assert (decided.kind, decided.value_minor, decided.name) == (kind, value_minor, "A-1")


@pytest.mark.parametrize(
    ("now_worth", "before", "fate"),
    [
        (credit(), told(), Fate.TOLD),
        (credit(490), told(Kind.RESTATE, 490), Fate.TOLD),
        (credit(0), told(Kind.RETRACT, 0), Fate.TOLD),
        (None, told(Kind.RETRACT, 0), Fate.TOLD),
        (credit(), told(Kind.RETRACT, 0), Fate.RETRACTED),
        (credit(490), told(days=54.01), Fate.TOO_OLD),
    ],
)
def test_what_did_not_change_or_comes_too_late_is_not_told(
    now_worth: Credited | None, before: Upload, fate: Fate
) -> None:
    assert decide(now_worth, before, GOOGLE, NOW) is fate


def test_meta_takes_no_adjustments() -> None:
    assert decide(credit(490), told(), META, NOW) is Fate.NOT_ADJUSTABLE
    assert decide(None, told(), META, NOW) is Fate.NOT_ADJUSTABLE
    assert decide(credit(), told(), META, NOW) is Fate.TOLD


def test_several_conversions_of_one_order_have_different_names_for_ever() -> None:
    first, second, third = (told(click_id=f"{n}" * 32, name="") for n in (2, 3, 1))
    memory = Memory([replace_exported(second, NOW + 5), replace_exported(first, NOW)])
    assert {each.click_id[0]: each.name for each in memory.last.values()} == {"2": "A-1", "3": "A-1#2"}
    assert [each.name for each in memory.named([third])] == ["A-1#3"]
    assert name("A-1", 0) == "A-1"


@pytest.mark.parametrize("comes_first", ["A-1", "A-1#2"])
def test_a_further_conversion_and_an_order_that_is_called_so_have_different_names_for_ever(comes_first: str) -> None:
    two = [told(click_id=f"{n}" * 32, name="") for n in (1, 2)]
    other = told(order_id="A-1#2", click_id="3" * 32, name="")
    rounds = [two, [other]] if comes_first == "A-1" else [[other], two]
    uploads: list[Upload] = []
    for number, conversions in enumerate(rounds):
        uploads += [replace_exported(each, NOW + number) for each in Memory(uploads).named(conversions)]
    names = [each.name for each in uploads]
    expected = {"A-1": ["A-1", "A-1#2", "A-1#2#2"], "A-1#2": ["A-1#2", "A-1", "A-1#3"]}
    assert names == expected[comes_first]
    assert sorted(each.name for each in Memory(reversed(uploads)).last.values()) == sorted(names)


def replace_exported(upload: Upload, exported_ms: int) -> Upload:
    return replace(upload, exported_ms=exported_ms)


def test_an_adjustment_keeps_the_name_of_its_conversion_and_one_without_is_no_news() -> None:
    conversion = told(name="")
    restated = replace_exported(told(Kind.RESTATE, 490, name=""), NOW + 1)
    assert Memory([restated, conversion]).last[conversion.key].name == "A-1"
    assert Memory([restated, conversion]).last[conversion.key].value_minor == 490
    assert Memory([restated]).last == {}


def test_a_credit_that_went_to_another_click_is_retracted_there_and_told_here() -> None:
    made = plan([credit(click_id="2" * 32)], Memory([told()]), {"A-1"}, GOOGLE, NOW)
    assert [(each.kind, each.click_id[0]) for each in made.adjustments] == [(Kind.RETRACT, "1")]
    assert [each.click_id[0] for each in made.conversions] == ["2"]


def test_what_was_told_of_orders_that_are_not_looked_at_any_more_is_left_alone() -> None:
    assert plan([], Memory([told(days=60)]), {"A-1"}, GOOGLE, NOW).adjustments == []
    made = plan([], Memory([told(days=8)]), {"A-1"}, META, NOW)
    assert (made.adjustments, made.fates) == ([], {})


def test_what_was_told_of_orders_that_are_not_kept_any_more_is_not_retracted() -> None:
    made = plan([], Memory([told()]), {"A-2"}, GOOGLE, NOW)
    assert (made.adjustments, made.fates) == ([], {})


credits_ = st.lists(
    st.builds(
        credit,
        st.integers(0, 3),
        click_days=st.sampled_from([0.5, 2, 91]),
        order_days=st.sampled_from([0.25, 0.4]),
        order_id=st.sampled_from(["A", "B", "A#2", "A#2#2"]),
        click_id=st.sampled_from(["1" * 32, "2" * 32, "3" * 32]),
    ),
    unique_by=lambda each: each.key,
)


@given(st.lists(credits_, min_size=1, max_size=6))
def test_whatever_results_follow_each_other_a_network_ends_with_what_is_so(results: list[list[Credited]]) -> None:
    """Conversions are told once under one name; after each export the same result gives nothing new."""
    uploads: list[Upload] = []
    for number, result in enumerate(results):
        memory = Memory(uploads)
        made = plan(result, memory, {"A", "B", "A#2", "A#2#2"}, GOOGLE, NOW)
        fresh = [*memory.named(made.conversions), *made.adjustments]
        uploads += [replace_exported(each, NOW + number) for each in fresh]
        again = plan(result, Memory(uploads), {"A", "B", "A#2", "A#2#2"}, GOOGLE, NOW)
        assert (again.conversions, again.adjustments) == ([], [])
    conversions = [each for each in uploads if each.kind is Kind.CONVERSION]
    assert len({each.key for each in conversions}) == len({each.name for each in conversions}) == len(conversions)
    known = {each.name: each for each in uploads}
    names = {each.key: each.name for each in conversions}
    for each in results[-1]:
        if each.key in names and known[names[each.key]].kind is not Kind.RETRACT:
            assert known[names[each.key]].value_minor == each.value_minor
    last = Memory(uploads).last
    assert {key: upload.name for key, upload in last.items()} == names


def test_credits_and_uploads_are_grouped_by_client() -> None:
    assert {client: len(found) for client, found in by_client([credit(), credit(client_id="d")]).items()} == {
        "c": 1,
        "d": 1,
    }


def test_rules_have_no_adjustments_or_an_age_for_them() -> None:
    assert decide(credit(490), told(), replace(META, adjustment_age_ms_max=DAY_MS), NOW) != Fate.NOT_ADJUSTABLE


RULES_OF_PARTNER = rules(hold_hours=12, age_days=2, with_changes=True)


def test_an_order_that_is_worth_nothing_is_told_and_taken_back_where_it_counts() -> None:
    lead = credit(0, is_free=True)
    conversion = decide(lead, None, RULES_OF_PARTNER, NOW)
    assert isinstance(conversion, Upload)
    assert (conversion.kind, conversion.value_minor) == (Kind.CONVERSION, 0)
    known = replace(conversion, exported_ms=NOW)
    assert decide(lead, known, RULES_OF_PARTNER, NOW) is Fate.TOLD
    for gone in (None, credit(0)):
        taken_back = decide(gone, known, RULES_OF_PARTNER, NOW)
        assert isinstance(taken_back, Upload)
        assert taken_back.kind is Kind.RETRACT
        assert decide(gone, taken_back, RULES_OF_PARTNER, NOW) is Fate.TOLD
        assert decide(lead, taken_back, RULES_OF_PARTNER, NOW) is Fate.RETRACTED
    worth = decide(credit(990), known, RULES_OF_PARTNER, NOW)
    assert isinstance(worth, Upload)
    assert (worth.kind, worth.value_minor) == (Kind.RESTATE, 990)


def test_a_partner_is_told_between_the_hours_and_the_days_after_an_order() -> None:
    def kind(days: float) -> object:
        decided = decide(credit(click_days=400 if days < 0 else 20, order_days=abs(days)), None, RULES_OF_PARTNER, NOW)
        return decided.kind if isinstance(decided, Upload) else decided

    found = [kind(days) for days in (0.49, 0.5, 2.5, 2.51, -1)]
    assert found == [Fate.HELD, Kind.CONVERSION, Kind.CONVERSION, Fate.TOO_OLD, Fate.TOO_OLD]
