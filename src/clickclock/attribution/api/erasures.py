"""`GET /attribution/erasures`: the receipts of what was erased, and the erasure that is under way.

Parse, call, render. Never shows an identifier: a receipt has none, and an erasure under way shows only its kind.

>>> read({"kind": ["retention"]}).kinds[0].value
'retention'
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from clickclock.attribution.clicks.whose import Whose
from clickclock.attribution.erasing.erasure import Erasure
from clickclock.attribution.erasing.receipt import Kind
from clickclock.attribution.reporting.parameters import Parameters, number_of, text_of

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply

LIMIT: Final = 100
LIMIT_MAX: Final = 1000


class Receipts(Whose, frozen=True, kw_only=True):
    """Which receipts."""

    kinds: tuple[Kind, ...] = tuple(Kind)
    limit: int = LIMIT


def read(given: Mapping[str, Sequence[str]]) -> Receipts:
    """The question in the parameters. Raises `Malformed` naming every fault."""
    parameters = Parameters(given)
    asked = Receipts(
        kinds=parameters.several("kind", Kind, "kind", tuple(Kind)),
        client_id=parameters.one("clientId", text_of),
        limit=parameters.one("limit", number_of(1, LIMIT_MAX)) or LIMIT,
    )
    parameters.finish()
    return asked


def answer(desk: "Desk", asked: Receipts) -> "Reply":
    """The receipts, newest first."""
    # Only the process that answers gets here; the service has no use for what these load.
    from clickclock.attribution.api.query_context import reply  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.lake import kept_receipts  # noqa: PLC0415 (see the line above)

    fitting = [each for each in kept_receipts(desk.lake) if each.kind in asked.kinds and asked.takes(each.client_id)]
    newest = sorted(fitting, key=lambda each: (each.created_at, each.id), reverse=True)
    under_way = desk.docket.read()
    is_theirs = under_way is not None and asked.takes(under_way.client_id)
    told = {
        "receipts": [{**each.wire, "total": each.total} for each in newest[: asked.limit]],
        "hasMore": len(newest) > asked.limit,
        "underWay": _under_way(under_way) if under_way is not None and is_theirs else None,
    }
    return reply({"status": "success", **told})


def _under_way(erasure: Erasure) -> dict[str, Any]:
    return {
        "id": erasure.id,
        "clientId": erasure.client_id,
        "asked": erasure.asked.kind,
        "withPerson": erasure.with_person,
        "reason": erasure.reason,
        "rows": erasure.rows,
    }
