"""Ads and policies as columns: what a click on an ad is worth asking, looked up for millions of clicks at once.

Never decides what becomes of a click. Invariant: what a column says of an ad or a client is what its `Policy` says.

>>> shop, seller = np.array([0, 0]), np.array([-1, 0])
>>> seen = np.array([False, False])
>>> ads = Ads(np.array([7, 9]), shop, np.array([0, 1]), seller, seen, ["shop"], ["google", "meta"], ["s"])
>>> terms = terms_of(ads, Policies())
>>> (terms.window_ms[ads.find(np.array([9, 7, 9]))] // DAY_MS).tolist()
[7, 30, 7]
"""

from collections.abc import Sequence
from typing import TypeAlias
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.crediting.columns.codes import places
from clickclock.attribution.crediting.policy import Policies, SellerRule
from clickclock.foundation.instant import DAY_MS

Numbers: TypeAlias = NDArray[np.int64]
Places: TypeAlias = NDArray[np.intp]
Indexes: TypeAlias = NDArray[np.integer]
"""Of clients, channels or sellers, in the lists that name them."""


class Ads(msgspec.Struct, frozen=True, eq=False):
    """What the codes of ads stand for."""

    ad: Numbers
    """Sorted, and all different."""
    client: Indexes
    channel: Indexes
    seller: Indexes
    """Code of the seller of the click; -1 for none."""
    is_view: NDArray[np.bool_]
    """Whether it was only seen: it has a code of its own then."""
    clients: Sequence[str]
    """Those of ads and of orders."""
    channels: Sequence[str]
    sellers: Sequence[str]
    """Those of clicks and of orders."""

    def find(self, codes: Numbers) -> Places:
        """The place of each code. Raises `ValueError` for a code that no ad has."""
        found = places(self.ad, codes)
        if np.any(found < 0):
            raise ValueError("A click is on an ad that is not in the table of ads; derive clicks and ads anew.")
        return found


class Orders(msgspec.Struct, frozen=True, eq=False):
    """Facts about all orders."""

    client: Indexes
    """In `Ads.clients`."""
    month: Indexes
    """As `months` numbers it, in the account's time zone."""
    seller_starts: Numbers
    """Where the sellers that each order names begin in `sellers`, and at last where they all end."""
    sellers: Indexes
    """In `Ads.sellers`."""


class Terms(msgspec.Struct, frozen=True, eq=False):
    """What the policies say: of each ad, or of each client."""

    ads: Ads
    window_ms: Numbers
    """By ad: how long before an order a click on it may have been, or its view; 0 where no view counts."""
    window_ms_max: Numbers
    """By client: the longest window."""
    order_after_click_ms_min: Numbers
    """By client: 0 where a click just before the order is not left out."""
    clicks_per_person_max: Numbers
    """By client, and so all that follow."""
    excludes_invalid: NDArray[np.bool_]
    is_same_seller: NDArray[np.bool_]
    """Whether an order that names sellers is credited to their clicks alone."""
    zone: Indexes
    """In `zones`."""
    zones: Sequence[ZoneInfo]


def terms_of(ads: Ads, policies: Policies) -> Terms:
    """The terms of these ads and their clients."""
    by_client = [policies.find(client_id) for client_id in ads.clients]
    zones = sorted({policy.time_zone for policy in by_client})
    # Three small numbers are compared much faster as one.
    kind = (ads.client.astype(np.int64) * len(ads.channels) + ads.channel) * (len(ads.sellers) + 1) + ads.seller
    kind = 2 * kind + ads.is_view
    _, first, place = np.unique(kind, return_index=True, return_inverse=True)
    distinct = (column[first].tolist() for column in (ads.client, ads.channel, ads.seller, ads.is_view))
    window_ms = [
        by_client[client].window_ms(ads.channels[channel], None if seller < 0 else ads.sellers[seller], is_view=is_view)
        for client, channel, seller, is_view in zip(*distinct, strict=True)
    ]
    return Terms(
        ads=ads,
        window_ms=np.array(window_ms, np.int64)[place],
        window_ms_max=np.array([policy.window_days_max * DAY_MS for policy in by_client], np.int64),
        order_after_click_ms_min=np.array(
            [policy.order_after_click_ms_min * policy.excludes_invalid for policy in by_client], np.int64
        ),
        clicks_per_person_max=np.array([policy.clicks_per_person_max for policy in by_client], np.int64),
        excludes_invalid=np.array([policy.excludes_invalid for policy in by_client], np.bool_),
        is_same_seller=np.array([policy.seller_rule is SellerRule.SAME_SELLER for policy in by_client], np.bool_),
        zone=np.array([zones.index(policy.time_zone) for policy in by_client], np.int64),
        zones=[ZoneInfo(zone) for zone in zones],
    )
