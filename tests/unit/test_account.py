"""Accounts: who may send clicks, and what makes a click one of a channel."""

from typing import Any

import pytest
from pydantic import ValidationError

from clickclock.attribution.clicks.account import GOOGLE, Account, Accounts, ChannelRule, Profile


def account(**fields: Any) -> Account:
    return Account.model_validate({"client_id": "acme", **fields})


def channel(of: Account, **parameters: str) -> str | None:
    rule = of.channel_rule(parameters)
    return None if rule is None else rule.channel


def test_with_no_account_anybody_is_accepted_by_the_default_profile() -> None:
    for profile in Profile:
        accounts = Accounts(default_profile=profile)
        assert accounts.find("anybody") is accounts.default
        assert accounts.default.profile is profile


def test_with_accounts_only_theirs_are_accepted() -> None:
    acme, other = account(), account(client_id="other", profile="observed")
    accounts = Accounts([acme, other])
    assert (accounts.find("acme"), accounts.find("other"), accounts.find("stranger")) == (acme, other, None)
    assert accounts.find("*") is None


def test_one_client_id_has_one_account() -> None:
    with pytest.raises(ValueError, match="acme is there twice"):
        Accounts([account(), account(profile="observed")])


@pytest.mark.parametrize(
    "parameters",
    [
        {"source": "google"},
        {"utm_source": "google"},
        {"utm_source": "Google"},
        {"gad_source": "1"},
        {"gbraid": "0AAAA"},
        {"wbraid": "x"},
        {"utm_source": "facebook", "gad_source": "5"},
    ],
)
def test_what_makes_a_click_googles(parameters: dict[str, str]) -> None:
    assert channel(account(), **parameters) == GOOGLE


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"utm_source": "facebook"},
        {"utm_source": "google.com"},
        {"utm_medium": "google"},
        {"gad_source": ""},
        {"gbraid": "undefined"},
        {"wbraid": "null"},
        {"gclid": "x"},
    ],
)
def test_what_does_not(parameters: dict[str, str]) -> None:
    assert channel(account(), **parameters) is None


def test_an_account_may_have_rules_of_its_own_and_the_first_that_matches_counts() -> None:
    own = account(
        channel_rules=[
            {"channel": "meta", "parameter": "fb_ad_id"},
            {"channel": GOOGLE, "parameter": "network", "values": ["G", "adwords"]},
        ]
    )
    assert channel(own, utm_source="google") is None
    assert channel(own, network="g") == GOOGLE
    assert channel(own, network="AdWords", fb_ad_id="7") == "meta"


def test_an_account_without_rules_has_no_google_clicks() -> None:
    assert channel(account(channel_rules=[]), utm_source="google", gbraid="x") is None


def test_asking_for_a_channel_does_not_change_what_an_account_equals() -> None:
    asked = account()
    channel(asked, source="google")
    assert asked == account()
    assert asked.wire() == account().wire()


@pytest.mark.parametrize(
    "fields", [{"client_id": ""}, {"profile": "lenient"}, {"secret": "x"}, {"channel_rules": [{}]}]
)
def test_what_an_account_refuses(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        account(**fields)


def test_a_rule_names_a_parameter() -> None:
    with pytest.raises(ValidationError):
        ChannelRule(channel="google", parameter="")


@pytest.mark.parametrize("profile", Profile)
def test_organic_search_asks_for_a_gclid_by_the_interface_alone(profile: Profile) -> None:
    account = Account(client_id="c", profile=profile)
    rule = account.channel_rule({"utm_source": " Google ", "utm_medium": "organic"})
    assert rule is not None
    assert rule.channel == ("google" if profile is Profile.STRICT else "organic")
