"""The question of a report, read from parameters: what is asked, or every reason why that cannot be.

Never looks at a result version: whether it has the models is asked of the answer.

>>> asked = read({"by": ["channel,day"], "from": ["2026-11-01"]})
>>> asked.by, asked.since.isoformat(), asked.until
((<Dimension.CHANNEL: 'channel'>, <Dimension.DAY: 'day'>), '2026-11-01', None)
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from clickclock.attribution.orders.order_fields import word_of
from clickclock.attribution.reporting.figures import Against, Dimension, Figure, Form
from clickclock.attribution.reporting.parameters import (
    Parameters,
    currency_of,
    day_of,
    flag_of,
    member_of,
    text_of,
    version_of,
)
from clickclock.attribution.reporting.report import Asked
from clickclock.foundation.errors import Fault

_OF_A_HOLDOUT: Final = frozenset({Dimension.CLIENT, Dimension.SELLER, Dimension.CUSTOMER, Dimension.KIND})
"""An order has these whatever ad it came by."""
_is_country: Final = re.compile("[A-Z]{2}").fullmatch


def read(given: Mapping[str, Sequence[str]]) -> Asked:
    """Read a question from parameters, each given any number of times. Raises `Malformed` naming every fault."""
    parameters = Parameters(given)
    asked = Asked(
        by=parameters.several("by", Dimension, "dimension", (Dimension.CHANNEL,)),
        figures=parameters.several("figures", Figure, "figure", tuple(Figure)) or tuple(Figure),
        models=parameters.names("model"),
        since=parameters.one("from", day_of),
        until=parameters.one("to", day_of),
        client_id=parameters.one("clientId", text_of),
        seller_id=parameters.one("sellerId", text_of),
        channel=parameters.one("channel", text_of),
        kind=parameters.one("kind", word_of),
        currency=parameters.one("currency", currency_of),
        version=parameters.one("version", version_of),
        form=parameters.one("format", member_of(Form)) or Form.JSON,
        compare=parameters.one("compare", member_of(Against)),
        holdout=tuple(each.upper() for each in parameters.names("holdout")),
        every_day=parameters.one("everyDay", flag_of) or False,
        raw=parameters.one("raw", flag_of) or False,
    )
    if asked.holdout and not given.get("by"):
        asked = msgspec.structs.replace(asked, by=())
    parameters.faults += [*_faults_of(asked), *(_faults_of_holdout(asked) if asked.holdout else ())]
    parameters.finish()
    return asked


def _faults_of(asked: Asked) -> Iterator[Fault]:
    """Parameters that contradict each other, or lack another one."""
    if asked.compare is Against.MODELS:
        if Dimension.MODEL in asked.by:
            yield Fault("by", "All models are in one row here; leave model out.")
        if asked.figures != tuple(Figure):
            yield Fault("figures", "A comparison of models has figures of its own; leave this out.")
    elif asked.compare is not None and (asked.since is None or asked.until is None):
        yield Fault("compare", "This needs the first and the last day; give from and to as well.")
    if asked.since and asked.until and asked.since > asked.until:
        yield Fault("from", f"This is after the last day, {asked.until}; give an earlier day.")
    if asked.raw and asked.form is not Form.CSV:
        yield Fault("raw", f"This is for CSV; {asked.form} has names as they came. Leave it out.")
    if asked.every_day and (Dimension.DAY not in asked.by or asked.since is None or asked.until is None):
        yield Fault("everyDay", "This needs day in by, and the first and the last day; give by, from and to as well.")
    if asked.every_day and asked.compare is not None:
        yield Fault("everyDay", "A comparison has no rows of nothing; leave everyDay or compare out.")


def _faults_of_holdout(asked: Asked) -> Iterator[Fault]:
    """The same of what does not go with a holdout."""
    if strange := [each for each in asked.holdout if not _is_country(each)]:
        yield Fault("holdout", f"Give countries by two letters, such as AT; not: {', '.join(strange)}.")
    if asked.since is None or asked.until is None:
        yield Fault("holdout", "This needs the first and the last day without ads; give from and to as well.")
    if others := [each for each in asked.by if each not in _OF_A_HOLDOUT]:
        kept = ", ".join(sorted(_OF_A_HOLDOUT))
        yield Fault("by", f"A holdout looks at all orders of a country: {kept}; leave {', '.join(others)} out.")
    if asked.figures != tuple(Figure):
        yield Fault("figures", "A holdout has figures of its own; leave this out.")
    if asked.models:
        yield Fault("model", "All models have the same orders; leave this out.")
    if asked.channel is not None:
        yield Fault("channel", "A holdout looks at all orders of a country; leave this out.")
    if asked.compare is Against.MODELS:
        yield Fault("compare", "All models have the same orders; give previous or last_year, or leave this out.")
    if asked.every_day:
        yield Fault("everyDay", "A holdout has no rows of days; leave this out.")
