"""An ad: all that a click says of which one it was on, and what tells two clicks apart.

Never compares what says who clicked, when, or from which page. Invariants: two clicks are on one ad only if nothing
tells them apart; what is absent equals only what is absent. Engines compute the same of millions of clicks as one
number, and tests hold the two equal.

>>> newsletter = {"utm_source": "Newsletter", "utm_campaign": "n1", "session": "7"}
>>> told_apart(says("newsletter", newsletter), says("meta", {"utm_source": "fb", "utm_campaign": "n1"}))
['channel', 'utm_source']
>>> told_apart(says("newsletter", newsletter), says("newsletter", newsletter | {"session": "8"}))
[]
"""

import re
from collections.abc import Mapping
from typing import Final

from clickclock.attribution.clicks.absent import is_absent
from clickclock.attribution.clicks.account import small_letters

CHANNEL: Final = "channel"
SOURCES: Final = ("utm_source", "source")
"""Parameters that name what a click comes from; the first that is there counts. Compared in small letters."""
COLUMNS: Final = (
    *("seller_id", "asvt", "atag", *SOURCES, "utm_medium", "utm_campaign", "utm_content", "utm_term", "gad_source"),
    *("fb_account_id", "fb_campaign_id", "fb_adset_id", "fb_ad_id"),
)
"""Parameters with a column of their own that say which ad it is."""
PREFIXES: Final = (
    *("utm_", "fb_", "gad_", "hsa_", "mtm_", "pk_", "piwik_", "matomo_", "tt_", "tw_", "li_", "aff_", "promo"),
)
"""Any parameter whose name begins so says which ad it is."""
WITHIN: Final = "[Cc]ampaign|[Aa]d_?[Gg]roup|[Aa]d_?[Ss]et|[Cc]reative"
"""So does any parameter in whose name this pattern finds something, to Python, RE2 and Java alike."""
NAMES: Final = (
    *("ad", "ad_id", "adid", "adId", "ad_name", "keyword", "placement", "placement_id", "site_source_name", "pid", "c"),
    *("af_c_id", "af_ad", "af_ad_id", "af_channel", "af_siteid", "af_keywords", "mc_cid", "s_kwcid", "ef_id", "cm_mmc"),
    *("et_cid", "dm_i", "pcrid", "pgrid", "ptaid", "subid", "sub_id", "affid"),
    *("sub1", "sub2", "sub3", "sub4", "sub5", "matchtype", "network", "targetid", "target_id"),
    *("_kx", "ref", "coupon", "voucher", "partner", "partner_id", "affiliate", "affiliate_id"),
)
"""So do these: what ad networks, AppsFlyer, Adjust, Branch, mailing and affiliate programs call ads and partners."""
ONCE: Final = ("gclid", "uclid")
"""Click ids that count once; where one is, it alone says which ad it is. The first that is there counts."""
CLICK_ID_COLUMNS: Final = ("gbraid", "wbraid")
CLICK_IDS: Final = (
    *("fbclid", "msclkid", "ttclid", "twclid", "li_fat_id", "ScCid", "sccid", "epik", "dclid", "yclid", "rdt_cid"),
    *("qclid", "tblci", "dicbo", "obclid", "ob_click_id", "irclickid", "awc", "clickid", "click_id", "af_click_id"),
    *("cjevent", "ranSiteID", "sscid", "vmcid", "tduid"),
)
"""Click ids of other networks. Two of one ad differ, and are two clicks."""


def says(channel: str, parameters: Mapping[str, str | None]) -> dict[str, str]:
    """What a click of this channel says of its ad, by parameter, as it is compared."""
    said = {CHANNEL: channel}
    for name, value in parameters.items():
        if value is not None and _is_of_ad(name) and not is_absent(name, value):
            said[name] = small_letters(value) if name in SOURCES else value
    return said


def told_apart(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """By which parameters two clicks are on two ads, sorted; none if they are on one. Both are what `says` gives."""
    once, again = (next(((name, said[name]) for name in ONCE if name in said), None) for said in (one, other))
    if once is not None and once == again:
        return []
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _is_of_ad(name: str) -> bool:
    return name in _KNOWN or name.startswith(PREFIXES) or _is_within(name) is not None


_is_within: Final = re.compile(WITHIN).search
_KNOWN: Final = frozenset((*COLUMNS, *NAMES, *ONCE, *CLICK_ID_COLUMNS, *CLICK_IDS))
