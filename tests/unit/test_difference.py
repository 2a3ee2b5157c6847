"""What is said of an order that differs between two versions."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clickclock.attribution.reporting.difference import (
    Cause,
    Circumstances,
    Comparison,
    Setting,
    Standing,
    document,
    explain,
    settings_between,
)

PLACED_AT = datetime(2026, 11, 20, tzinfo=UTC)


def row(click_id: str | None = "1", **said: Any) -> dict[str, Any]:
    usual = {"client_id": "shop", "order_id": "7", "person": 5, "placed_at": PLACED_AT, "currency": "EUR"}
    facts = {"amount_minor": 1000, "refunded_minor": 0, "status": "completed", "seller_id": None, "kind": "purchase"}
    facts |= {"reason": None if click_id else "no_click", "order_month": "2026-11"}
    names = dict.fromkeys(("click_seller_id", "campaign", "ad_set", "ad"))
    return usual | facts | names | {"click_id": click_id, "channel": "google", "click_at": PLACED_AT} | said


def causes(
    before: list[dict[str, Any]], after: list[dict[str, Any]], known: Circumstances | None = None
) -> list[tuple[Cause, str]]:
    return [(told.cause, told.what) for told in explain(before, after, known or Circumstances()).causes]


def test_an_order_that_was_not_there_is_new() -> None:
    assert causes([], [row()]) == [(Cause.NEW_ORDER, "10.00 EUR, completed")]


def test_an_order_that_is_not_there_any_more_is_gone() -> None:
    assert causes([row()], []) == [(Cause.ORDER_GONE, "10.00 EUR, completed")]


def test_everything_that_was_amended_is_told() -> None:
    refunded = row(refunded_minor=1000, status="refunded", seller_id="s")
    assert causes([row()], [refunded]) == [
        (Cause.AMENDED, "refunded 0.00 EUR, now 10.00 EUR"),
        (Cause.AMENDED, "status completed, now refunded"),
        (Cause.AMENDED, "seller none, now s"),
    ]


@pytest.mark.parametrize(
    ("came", "cause"), [(None, Cause.CLICK_ADDED), ({"3"}, Cause.CLICK_ADDED), ({"2"}, Cause.CLICK_CAME)]
)
def test_a_touchpoint_that_came_since_is_told_from_one_that_was_there(came: set[str] | None, cause: Cause) -> None:
    ((found, what),) = causes([row()], [row(), row("2")], Circumstances(came=came))
    assert (found, what) == (cause, "2 of google at 2026-11-20T00:00:00.000Z")


def test_a_touchpoint_that_is_none_any_more_is_told() -> None:
    (told,) = causes([row(), row("2")], [row()])
    assert told[0] is Cause.CLICK_LEFT_OUT
    assert [cause for cause, _ in causes([row("2")], [row(None)])] == [Cause.CLICK_LEFT_OUT]


def test_a_click_that_counts_in_one_version_alone_says_why() -> None:
    known = Circumstances(reversals={"2": "was a repeat of 1, is on another ad now"})
    why = "2 of google at 2026-11-20T00:00:00.000Z: was a repeat of 1, is on another ad now"
    assert causes([row()], [row(), row("2")], known) == [(Cause.CLICK_ADDED, why)]
    assert causes([row(), row("2")], [row()], known) == [(Cause.CLICK_LEFT_OUT, why)]


def test_a_touchpoint_of_another_channel_is_told_with_both() -> None:
    assert causes([row(channel="fb")], [row(channel="meta", campaign="c")]) == [
        (Cause.CLICK_CHANGED, "1: channel fb, now meta; campaign none, now c")
    ]


def test_an_order_whose_clock_is_not_believed_any_more_was_not_amended() -> None:
    earlier, other_program = PLACED_AT - timedelta(minutes=2), Circumstances(has_other_program=True)
    assert causes([row()], [row(placed_at=earlier)], other_program) == [
        (Cause.ORDER_CAPPED, "placed 2026-11-20T00:00:00.000Z, received 2026-11-19T23:58:00.000Z")
    ]
    assert [cause for cause, _ in causes([row()], [row(placed_at=earlier)])] == [Cause.AMENDED]


def test_people_who_were_merged_are_told_from_those_who_were_parted_or_found() -> None:
    merged = Circumstances(persons_now={5: 3})
    assert causes([row()], [row(person=3)], merged) == [(Cause.PERSON_MERGED, "5 is 3 now")]
    assert causes([row()], [row(person=8)], merged) == [(Cause.PERSON_PARTED, "5, now 8")]
    assert causes([row()], [row(person=None)]) == [
        (Cause.PERSON_PARTED, "5, now nobody: all that the order names identifies nobody")
    ]
    assert causes([row(person=None)], [row(person=0)]) == [(Cause.PERSON_FOUND, "nobody, now 0")]


def test_an_order_that_has_no_touchpoint_for_another_reason_says_both() -> None:
    found = causes([row(None)], [row(None, reason="none_eligible")], Circumstances(has_other_settings=True))
    assert found == [(Cause.REASON_CHANGED, "no_click, now none_eligible")]


@pytest.mark.parametrize(
    ("known", "cause"),
    [
        (Circumstances(), Cause.MODEL_REFITTED),
        (Circumstances(has_other_settings=True, has_other_program=True), Cause.SETTINGS_CHANGED),
        (Circumstances(has_other_program=True), Cause.PROGRAM_CHANGED),
    ],
)
def test_where_nothing_about_the_order_changed_the_rest_did(known: Circumstances, cause: Cause) -> None:
    assert [found for found, _ in causes([row()], [row()], known)] == [cause]


def test_both_standings_have_the_touchpoints_and_the_sum_of_each_model_and_channel() -> None:
    then = [row("1", last_credit=0, old_credit=4), row("2", last_credit=1000, old_credit=996)]
    then.append(row("3", channel="meta", last_credit=0, old_credit=0))
    now = [row(None, order_month="2026-12", last_credit=None, new_credit=None)]
    found = explain(then, now, Circumstances(models_before=("last", "old"), models_after=("last", "new")))
    credits_ = {"last": {"google": 1000, "meta": 0}, "old": {"google": 1000, "meta": 0}}
    assert found.before == Standing("2026-11", "EUR", 1000, 0, ("1", "2", "3"), credits_)
    assert found.after == Standing("2026-12", "EUR", 1000, 0, (), {})
    assert explain([], then, Circumstances()).before is None


def test_settings_that_differ_are_named_by_their_path_with_both_values() -> None:
    then = {"policies": {"default": {"time_zone": "UTC", "windows": [1]}, "clients": {}}}
    now = {"policies": {"default": {"time_zone": "UTC", "windows": [2]}, "clients": {"shop": {"a": 1}}}}
    assert list(settings_between(then, now)) == [
        Setting("policies.clients.shop", None, {"a": 1}),
        Setting("policies.default.windows", [1], [2]),
    ]
    assert list(settings_between(then, then)) == []


def test_as_json_amounts_are_decimals_and_causes_are_counted_once_for_each_order() -> None:
    orders = (
        explain([row(last_credit=1000)], [], Circumstances(("last",))),
        explain([row()], [row("2"), row("3")], Circumstances()),
    )
    told = document(
        Comparison(
            before=1,
            after=2,
            models_added=("first",),
            models_removed=(),
            settings=(Setting("a.b", None, 1),),
            differing=9,
            new=0,
            gone=1,
            orders=orders,
        )
    )
    assert told["causes"] == {"order_gone": 1, "click_added": 1, "click_left_out": 1}
    assert (told["from"], told["to"], told["differing"], told["new"], told["gone"]) == (1, 2, 9, 0, 1)
    assert (told["models"], told["settings"]) == (
        {"added": ["first"], "removed": []},
        [{"name": "a.b", "before": None, "after": 1}],
    )
    assert told["orders"][0] == {
        "clientId": "shop",
        "orderId": "7",
        "causes": [{"cause": "order_gone", "what": "10.00 EUR, completed"}],
        "before": {
            "month": "2026-11",
            "currency": "EUR",
            "amount": "10.00",
            "refunded": "0.00",
            "touchpoints": ["1"],
            "credits": {"last": {"google": "10.00"}},
        },
        "after": None,
    }
