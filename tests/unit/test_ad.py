"""Which ad a click was on: what tells two apart, and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.clicks.ad import CLICK_ID_COLUMNS, CLICK_IDS, COLUMNS, NAMES, ONCE, says, told_apart

CAMPAIGNS = (
    *(
        "campaign",
        "campaignid",
        "campaignId",
        "CampaignId",
        "adgroup_id",
        "adGroupId",
        "ad_set",
        "adset_name",
        "creative",
    ),
)
OTHERS = ("utm_id", "utm_source_platform", "fb_placement", "hsa_cam", "tt_adid", "aff_sub2", "promo_code")
SAYING = (*COLUMNS, *CLICK_ID_COLUMNS, *CLICK_IDS, *NAMES, *OTHERS, *CAMPAIGNS)
SILENT = ("cli_ubid", "device_id", "event_time", "session", "page", "device_model", "lang", "Utm_source")
VALUES = st.sampled_from(["a", "b", "n1", "Mail"])
CLICKS = st.dictionaries(st.sampled_from([*SAYING, *ONCE, *SILENT]), VALUES, max_size=4)


@pytest.mark.parametrize("name", SAYING)
def test_each_parameter_that_says_which_ad_it_was_tells_two_clicks_apart(name: str) -> None:
    one, other, nothing = (says("mail", {"session": "1", **said}) for said in ({name: "x"}, {name: "y"}, {}))
    assert told_apart(one, other) == told_apart(one, nothing) == told_apart(nothing, one) == [name]
    assert told_apart(one, says("mail", {"session": "2", name: "x"})) == []


@pytest.mark.parametrize("nothing", ["", "null", "undefined"])
def test_what_is_absent_equals_only_what_is_absent(nothing: str) -> None:
    absent, silent, said = (says("mail", each) for each in ({"utm_campaign": nothing}, {}, {"utm_campaign": "0"}))
    assert (told_apart(absent, silent), told_apart(absent, said)) == ([], ["utm_campaign"])


def test_sources_are_compared_in_small_letters_and_campaigns_as_they_are() -> None:
    one, other = (
        {"utm_source": source, "utm_campaign": campaign} for source, campaign in (("FB", "Sale"), ("fb", "sale"))
    )
    assert told_apart(says("meta", one), says("meta", other)) == ["utm_campaign"]


def test_a_click_id_that_counts_once_is_the_ad_whatever_else_is_said() -> None:
    one, other = ({"gclid": "g", "utm_campaign": campaign} for campaign in ("a", "b"))
    assert told_apart(says("google", one), says("google", other)) == []
    assert told_apart(says("google", one), says("google", one | {"gclid": "h"})) == ["gclid"]
    assert told_apart(says("google", one), says("google", {"uclid": "g", "utm_campaign": "a"})) == ["gclid", "uclid"]


@given(CLICKS, CLICKS, CLICKS)
def test_to_be_on_one_ad_is_an_equality(one: dict[str, str], other: dict[str, str], third: dict[str, str]) -> None:
    a, b, c = (says("mail", each) for each in (one, other, third))
    assert told_apart(a, a) == []
    assert told_apart(a, b) == told_apart(b, a)
    if not told_apart(a, b) and not told_apart(b, c):
        assert not told_apart(a, c)


@given(CLICKS, st.dictionaries(st.sampled_from(SILENT), VALUES))
def test_what_says_nothing_of_the_ad_tells_no_clicks_apart(said: dict[str, str], silent: dict[str, str]) -> None:
    assert told_apart(says("mail", said), says("mail", said | silent)) == []
