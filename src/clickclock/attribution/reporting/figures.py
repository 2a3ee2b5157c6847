"""What reports are made of: what a row may stand for, what it may tell, and how it is written.

Never computes anything. Invariant: the words are those of the interface.

>>> Dimension("ad_set"), Figure("roas")
(<Dimension.AD_SET: 'ad_set'>, <Figure.ROAS: 'roas'>)
"""

from enum import StrEnum
from typing import Final


class Dimension(StrEnum):
    """What a row may stand for."""

    CLIENT = "client"
    SELLER = "seller"
    """An order has its own, a click the click's."""
    CHANNEL = "channel"
    CAMPAIGN = "campaign"
    AD_SET = "ad_set"
    AD = "ad"
    DAY = "day"
    """The day of a click or of an order, in the account's time zone."""
    CUSTOMER = "customer"
    """Whether an order is the first of its person, or a later one."""
    KIND = "kind"
    """What the customer did: the order's kind, `purchase` where it says none."""
    REASON = "reason"
    """Why an order is credited to nothing."""
    SOURCE = "source"
    """What the click said of itself, in small letters: `utm_source`, or `source`."""
    MEDIUM = "medium"
    """`utm_medium`, in small letters."""
    KEYWORD = "keyword"
    """`utm_term`, or `keyword`."""
    PAGE = "page"
    """The landing page: its host and path."""
    DEVICE = "device"
    """The kind of device, by the user agent: a member of `Device`."""
    COUNTRY = "country"
    """Two capital letters, from the parameter `country`."""
    MODEL = "model"


class Customer(StrEnum):
    """What an order's customer is to the shop; null where nobody knows who it is."""

    NEW = "new"
    RETURNING = "returning"


class Device(StrEnum):
    """A kind of device; null where the user agent says nothing of it."""

    DESKTOP = "desktop"
    MOBILE = "mobile"
    TABLET = "tablet"
    TV = "tv"


class Figure(StrEnum):
    """What a row may tell."""

    CLICKS = "clicks"
    VIEWS = "views"
    PEOPLE = "people"
    ORDERS = "orders"
    CONVERSIONS = "conversions"
    REVENUE = "revenue"
    CREDIT = "credit"
    REFUNDS = "refunds"
    COST = "cost"
    ROAS = "roas"
    CPA = "cpa"


WITHOUT_VIEWS: Final = tuple(each for each in Figure if each is not Figure.VIEWS)
"""What a report tells where no view ever came."""
MONEY: Final = (Figure.REVENUE, Figure.CREDIT, Figure.REFUNDS, Figure.COST, Figure.CPA)
OF_AN_ORDER: Final = frozenset(
    {Dimension.CLIENT, Dimension.SELLER, Dimension.DAY, Dimension.CUSTOMER, Dimension.KIND, Dimension.REASON}
)
"""An order has these itself; all others it has by the clicks that it is credited to."""
OF_A_CLICK: Final = frozenset(
    {Dimension.SOURCE, Dimension.MEDIUM, Dimension.KEYWORD, Dimension.PAGE, Dimension.DEVICE, Dimension.COUNTRY}
)
"""These are read from the clicks themselves: no ad is known by them, and no cost has them."""


OF_MODELS: Final = (
    *(str(figure) for figure in (Figure.ORDERS, Figure.REVENUE, Figure.COST)),
    *("least", "least_model", "greatest", "greatest_model", "spread", "share", "roas_least", "roas_greatest"),
)
"""What a comparison of models tells: `spread` is the greatest credit without the least, `share` that as a part of all
credit of the currency."""


OF_HOLDOUT: Final = (
    *("orders", "orders_before", "others", "others_before"),
    *("orders_expected", "orders_effect", "orders_change", "orders_change_low", "orders_change_high"),
    *("revenue", "revenue_before", "others_revenue", "others_revenue_before", "revenue_expected", "revenue_effect"),
)
"""What a holdout tells: of the held-out countries, and of the others, then what these let expect."""


class Form(StrEnum):
    """How a report is written."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class Against(StrEnum):
    """What a report is compared with: an earlier period of as many days, or the same by other models."""

    PREVIOUS = "previous"
    """Ends the day before the first."""
    LAST_YEAR = "last_year"
    """Begins a year before."""
    MODELS = "models"
    """All models that are asked for, side by side."""
