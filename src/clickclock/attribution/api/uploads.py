"""`GET /attribution/uploads`: the files that were written for ad networks, and what the next export would tell them.

Parse, call, render. Never writes one. Invariant: what is counted here is what the exporter decides.

>>> read({"network": ["google"]}).networks[0].value
'google'
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

from clickclock.attribution.reporting.uploads import Files, read
from clickclock.attribution.uploads.upload import kind_of, network_of

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply
    from clickclock.attribution.uploads.export import Exported, Wanted

__all__ = ["answer", "read"]


def answer(desk: "Desk", asked: Files) -> "Reply":
    """The files, newest first."""
    # Only the process that answers gets here; the service has no use for what these load.
    from clickclock.attribution.agents.upload_lister import UploadLister  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.api.query_context import reply  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.uploads.export import Wanted  # noqa: PLC0415 (see the line above)

    found = UploadLister(desk.lake, desk.exporter.size_of).files(asked, desk.clock.now())
    wanted = Wanted(desk.upload_model, asked.networks, asked.clients, others=desk.conversions)
    return reply({"status": "success", **found, "next": _next(wanted, desk.exporter.look(wanted))})


def _next(wanted: "Wanted", exported: "Exported") -> dict[str, Any]:
    """What an export would tell now, and of how many credits it tells nothing, with the reason."""
    kinds: dict[str, Counter[str]] = {to.name: Counter() for to in wanted.recipients}
    for file in exported.files:
        kinds[file.recipient].update({str(kind): count for kind, count in file.kinds.items()})
    networks = [
        {
            "network": network_of(to.name),
            "orderKind": kind_of(to.name),
            "kinds": dict(kinds[to.name]),
            "fates": {str(fate): count for fate, count in sorted(exported.fates[to.name].items()) if count},
        }
        for to in wanted.recipients
    ]
    return {"version": exported.version, "model": wanted.model, "networks": networks}
