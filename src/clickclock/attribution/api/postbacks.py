"""`GET /attribution/postbacks`: the calls to partners with what became of them, and those that are made next.

Parse, call, render. Never calls a partner. Invariant: what is counted here is what the exporter decides.

>>> read({"state": ["waiting"]}).state.value
'waiting'
"""

from typing import TYPE_CHECKING, Any

from clickclock.attribution.reporting.postbacks import Calls, read

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply
    from clickclock.attribution.uploads.postback import Partner

__all__ = ["answer", "read"]


def answer(desk: "Desk", asked: Calls) -> "Reply":
    """The postbacks, newest first. Raises `Invalid` if the partner is not known."""
    # Only the process that answers gets here; the service has no use for what these load.
    from clickclock.attribution.agents.postback_lister import PostbackLister  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.api.query_context import reply  # noqa: PLC0415 (see the line above)
    from clickclock.foundation.errors import Invalid  # noqa: PLC0415 (see the line above)

    known = [each.name for each in desk.partners]
    if asked.partner is not None and asked.partner not in known:
        raise Invalid(f"unknown partner {asked.partner}; give one of {', '.join(known) or 'none: none is configured'}.")
    postbacks, has_more = PostbackLister(desk.exports).postbacks(asked)
    partners = [
        each
        for each in desk.partners
        if asked.partner in {None, each.name} and (each.client_id is None or asked.takes(each.client_id))
    ]
    found = {"postbacks": postbacks, "hasMore": has_more, "next": _next(desk, asked, partners)}
    return reply({"status": "success", **found})


def _next(desk: "Desk", asked: Calls, partners: list["Partner"]) -> dict[str, Any]:
    """What partners are called about next, and of how many credits they are not called, with the reason."""
    from clickclock.attribution.uploads.export import Wanted  # noqa: PLC0415 (see `answer`)

    exported = desk.exporter.look(Wanted(desk.upload_model, (), asked.clients, partners=tuple(partners)))
    kinds: dict[str, dict[str, int]] = {each.name: {} for each in partners}
    for file in exported.files:
        of_partner = kinds[file.network]
        of_partner.update({str(kind): of_partner.get(kind, 0) + count for kind, count in file.kinds.items()})
    return {
        "version": exported.version,
        "partners": [
            {
                "partner": each.name,
                "model": each.model or desk.upload_model,
                "kinds": kinds[each.name],
                "fates": {str(fate): count for fate, count in sorted(exported.fates[each.name].items()) if count},
            }
            for each in partners
        ],
    }
