"""`GET /attribution/uploads`: the files that were written for ad networks, and what the next export would tell them.

Parse, call, render. Never writes one. Invariant: what is counted here is what the exporter decides.

>>> read({"network": ["google"]}).networks[0].value
'google'
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

from clickclock.attribution.reporting.uploads import Files, read

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply
    from clickclock.attribution.uploads.export import Exported

__all__ = ["answer", "read"]


def answer(desk: "Desk", asked: Files) -> "Reply":
    """The files, newest first."""
    # Only the process that answers gets here; the service has no use for what these load.
    from clickclock.attribution.agents.upload_lister import UploadLister  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.api.query_context import reply  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.uploads.export import Wanted  # noqa: PLC0415 (see the line above)

    found = UploadLister(desk.lake, desk.exporter.size_of).files(asked, desk.clock.now())
    exported = desk.exporter.look(Wanted(desk.upload_model, asked.networks, asked.clients))
    return reply({"status": "success", **found, "next": _next(asked, desk.upload_model, exported)})


def _next(asked: Files, model: str, exported: "Exported") -> dict[str, Any]:
    """What an export would tell now, and of how many credits it tells nothing, with the reason."""
    kinds: dict[str, Counter[str]] = {network: Counter() for network in asked.networks}
    for file in exported.files:
        kinds[file.network].update({str(kind): count for kind, count in file.kinds.items()})
    networks = [
        {
            "network": network,
            "kinds": dict(kinds[network]),
            "fates": {str(fate): count for fate, count in sorted(exported.fates[network].items()) if count},
        }
        for network in asked.networks
    ]
    return {"version": exported.version, "model": model, "networks": networks}
