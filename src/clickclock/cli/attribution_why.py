"""The changes since the result version before, in sentences: `attribution report --why` prints them below its table.

Never compares anything: `GET /attribution/diff` does. Invariant: each cause that an order can have has its sentence.

>>> list(sentences({"differing": 2, "orders": [1, 2], "causes": {"new_order": 2}, "models": {}, "settings": []}, 3))
['Since version 3, 2 orders differ:', '- 2 orders are new.']
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from clickclock.cli.answering import answered
from clickclock.cli.rendering import Payload, counted, plain

if TYPE_CHECKING:
    from pathlib import Path

    from clickclock.client import Client
    from clickclock.foundation.config import Config

SENTENCES: Final[Mapping[str, tuple[str, str]]] = {
    "new_order": ("is new", "are new"),
    "order_gone": ("is gone: erased, or too old", "are gone: erased, or too old"),
    "amended": (
        "was refunded, cancelled or corrected by the shop",
        "were refunded, cancelled or corrected by the shop",
    ),
    "person_merged": ("has a person who turned out to be another one, too", "have persons who are one with another"),
    "person_parted": ("is not that person's any more", "are not those persons' any more"),
    "person_found": ("was nobody's, and is somebody's", "were nobody's, and are somebody's"),
    "click_came": ("has a touchpoint that came later", "have a touchpoint that came later"),
    "click_added": ("has a touchpoint that was none before", "have a touchpoint that was none before"),
    "click_left_out": ("lost a touchpoint", "lost a touchpoint"),
    "click_changed": (
        "has a touchpoint of another channel, time or campaign",
        "have a touchpoint of another channel, time or campaign",
    ),
    "order_capped": ("counts from its receipt, for its clock was ahead", "count from receipt, for clocks were ahead"),
    "reason_changed": ("is credited to nothing for another reason", "are credited to nothing for another reason"),
    "settings_changed": ("is credited by other settings", "are credited by other settings"),
    "program_changed": ("is credited by another program", "are credited by another program"),
    "model_refitted": ("has other shares by a model that learnt more", "have other shares by a model that learnt more"),
}
"""By cause, the end of a sentence about one order and about several."""
FIRST: Final = "This is the first result version: there is none to compare it with."


def why(
    version: int, client_id: str | None, limit: int, config: "Path | None", options: dict[str, Any]
) -> Iterator[str]:
    """What changed since the version before this one, a sentence a line."""
    if version == 1:
        yield FIRST
        return
    before = version - 1

    def read(loaded: "Config") -> Payload:
        # Here and not at the top, so that a report without `--why` does not wait for it.
        from clickclock.app.comparing import compare  # noqa: PLC0415 (see the line above)

        return compare(loaded, before, version, client_id, limit)

    def ask(client: "Client") -> Payload:
        told: Payload = client.difference(before, version, client_id, limit)["diff"]
        return told

    yield from sentences(answered(ask, read, config, options), before)


def sentences(difference: Payload, before: int) -> Iterator[str]:
    """The difference to an earlier version, for people."""
    if not difference["differing"]:
        yield f"Since version {before}, no order differs."
        return
    yield f"Since version {before}, {counted(difference['differing'], 'order differs', 'orders differ')}:"
    for verb, names in difference["models"].items():
        if names:
            yield f"- models {verb}: {', '.join(names)}."
    for each in difference["settings"]:
        then, now = (plain(each[part]) or "none" for part in ("before", "after"))
        yield f"- the setting {each['name']} is {now}, and was {then}."
    for cause, count in difference["causes"].items():
        one, several = SENTENCES[cause]
        yield f"- {counted(count, f'order {one}', f'orders {several}')}."
    if untold := difference["differing"] - len(difference["orders"]):
        yield f"Causes are counted in {len(difference['orders']):,} of them; {untold:,} more differ."
