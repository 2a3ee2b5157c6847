"""A table of names for campaigns: what each line says, and every fault of it."""

from typing import Any

import pytest

from clickclock.attribution.clicks.account import ChannelRule
from clickclock.attribution.crediting.campaign_names import NAMES_MAX, names_of
from clickclock.attribution.crediting.policy import Policies, Policy
from clickclock.foundation.errors import Invalid


def test_a_channel_is_understood_as_in_a_file_of_costs() -> None:
    rows = [("FB Ads", "1", "a"), ("facebook", "2", "b"), ("TV", "3", "c"), ("Podcast", "4", "d")]
    lines = [(place, dict(zip(("channel", "campaign", "name"), row, strict=True))) for place, row in enumerate(rows, 2)]
    found = names_of(lines, [ChannelRule(channel="TV", parameter="source")])
    assert found == {"fb ads": {"1": "a"}, "meta": {"2": "b"}, "TV": {"3": "c"}, "podcast": {"4": "d"}}


def test_a_line_without_a_channel_is_of_all_that_no_other_line_names() -> None:
    lines: list[tuple[int, dict[str, Any]]] = [(2, {"campaign": " 7 ", "name": "seven"})]
    lines.append((3, {"channel": "google", "campaign": 7.0, "name": "VII"}))
    policy = Policy(campaign_names=names_of(lines, ()))
    assert [policy.campaign_name(channel, "7") for channel in ("meta", "google")] == ["seven", "VII"]
    assert [policy.campaign_name("meta", campaign) for campaign in ("8", None)] == ["8", None]


def test_every_fault_is_named_with_its_line() -> None:
    same = {"channel": "google", "campaign": "1", "name": "one"}
    lines = [
        (2, {"campaign": "", "name": "x"}),
        (3, same),
        (4, same),
        (6, {**same, "channel": "Google", "name": "uno"}),
    ]
    with pytest.raises(Invalid) as refused:
        names_of([*lines, (7, {})], ())
    assert [(each.field, each.message) for each in refused.value.faults] == [
        ("line 2", "It has no campaign; give both in each line."),
        ("line 6", "`1` of Google is `one` in a line before, and `uno` here; keep one of them."),
        ("line 7", "It has no campaign and name; give both in each line."),
    ]


def test_more_names_than_a_result_can_keep_are_refused() -> None:
    lines = [(number, {"campaign": str(number), "name": "x"}) for number in range(NAMES_MAX + 1)]
    with pytest.raises(Invalid, match="faults"):
        names_of(lines, ())


def test_settings_without_names_are_those_of_releases_before() -> None:
    assert "campaign_names" not in str(Policies().settings)
    named = Policies(Policy(campaign_names={"meta": {"7": "seven"}}), {"shop": Policy()})
    assert named.settings["default"]["campaign_names"] == {"meta": {"7": "seven"}}
    assert "campaign_names" not in named.settings["clients"]["shop"]
    assert named.named(["shop", "any"], ["meta", "meta"], ["7", "7"]) == ["7", "seven"]
