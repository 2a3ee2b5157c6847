"""Policies: whose rules, which window, and what makes two of them one."""

import pickle

import pytest
from pydantic import ValidationError

from clickclock.attribution.clicks.account import ChannelRule
from clickclock.attribution.crediting.policy import (
    InvalidTraffic,
    Policies,
    Policy,
    SellerRule,
    Window,
    channel_of_cost,
)


def test_the_first_window_that_matches_counts() -> None:
    policy = Policy(
        windows=(
            Window(channel="meta", seller_id="s", days=2),
            Window(seller_id="s", days=3),
            Window(channel="google", days=4),
        )
    )
    assert [policy.window_days(*of) for of in [("meta", "s"), ("google", "s"), ("google", "t"), ("meta", None)]] == [
        *(2, 3, 4, 7)
    ]


def test_windows_are_by_channel_where_nothing_else_is_said() -> None:
    policy = Policy()
    channels = ("google", "meta", "onsite", "newsletter")
    assert [policy.window_days(channel, None) for channel in channels] == [30, 7, 14, 30]


def test_the_longest_window_counts_those_that_are_set() -> None:
    assert Policy().window_days_max == 30
    assert Policy(windows=(Window(channel="meta", days=90),)).window_days_max == 90


@pytest.mark.parametrize("days", [0, 366, 10_000])
def test_a_window_of_no_or_too_many_days_is_refused(days: int) -> None:
    with pytest.raises(ValidationError):
        Window(days=days)


def test_an_unknown_time_zone_is_refused_by_its_name() -> None:
    with pytest.raises(ValidationError, match="there is no time zone Mars/Base"):
        Policy(time_zone="Mars/Base")


def test_a_client_without_a_policy_of_its_own_has_that_of_all() -> None:
    own, default = Policy(seller_rule=SellerRule.SAME_SELLER), Policy(invalid_traffic=InvalidTraffic.INCLUDE)
    policies = Policies(default, {"shop": own})
    assert policies.find("shop") is own
    assert policies.find("other") is default
    assert not default.excludes_invalid


def test_settings_are_the_same_whatever_order_clients_come_in() -> None:
    one, other = Policy(time_zone="Europe/Berlin"), Policy(clicks_per_person_max=7)
    assert Policies(by_client={"a": one, "b": other}).settings == Policies(by_client={"b": other, "a": one}).settings
    assert list(Policies(by_client={"b": other, "a": one}).settings["clients"]) == ["a", "b"]


def test_policies_can_be_sent_to_another_process() -> None:
    policies = Policies(by_client={"a": Policy(time_zone="Asia/Tokyo")})
    assert pickle.loads(pickle.dumps(policies)).settings == policies.settings  # noqa: S301 (made on this line)


def test_a_cost_is_of_the_channel_that_clicks_have() -> None:
    rules = (ChannelRule(channel="TV", parameter="spot"),)
    words = ("Google", "tv ", "TV", "Facebook", "Newsletter", "print")
    found = [channel_of_cost(word, rules) for word in words]
    assert found == ["google", "TV", "TV", "meta", "newsletter", "print"]
