"""Lists postbacks with what became of each, from their files and logs.

Never writes a file and never calls a partner. Invariant: each postback of a file is listed once, with its last attempt.

>>> PostbackLister(Path("no/such/folder")).postbacks(Calls())
([], False)
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clickclock.attribution.files.call_log import CallLog
from clickclock.attribution.files.export_files import POSTBACKS, ExportFiles, Written
from clickclock.attribution.reporting.postbacks import Calls, State
from clickclock.attribution.uploads.postback import Postback, read
from clickclock.foundation.instant import instant_of
from clickclock.foundation.record import rfc3339


class PostbackLister:
    """Over one folder of exports."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def postbacks(self, asked: Calls) -> tuple[list[dict[str, Any]], bool]:
        """The newest as JSON, and whether there are older ones."""
        found: list[dict[str, Any]] = []
        for file in self._newest(asked.partner):
            log = CallLog(self._folder, file.name)
            if asked.state is State.WAITING and log.is_done:
                continue
            for each in reversed(read(ExportFiles(self._folder).read(file.name))):
                if not _fits(each, log, asked):
                    continue
                if len(found) == asked.limit:
                    return found, True
                found.append(_json(each, file.network, log))
        return found, False

    def _newest(self, partner: str | None) -> Iterator[Written]:
        files = [
            file
            for file in ExportFiles(self._folder).written()
            if file.what == POSTBACKS and partner in {None, file.network}
        ]
        yield from sorted(files, key=_number, reverse=True)


def _number(file: Written) -> str:
    """The export's number and what follows it, behind the partner and the client."""
    return file.name.removeprefix(f"{file.network}-{file.client}-")


def _fits(postback: Postback, log: CallLog, asked: Calls) -> bool:
    return (
        asked.takes(postback.client_id)
        and asked.order_id in {None, postback.order_id}
        and asked.state in {None, log.state(postback.id)}
    )


def _json(postback: Postback, partner: str, log: CallLog) -> dict[str, Any]:
    last = log.last(postback.id)
    return {
        "id": postback.id,
        "partner": partner,
        "kind": postback.kind,
        "clientId": postback.client_id,
        "orderId": postback.order_id,
        "clickId": postback.click_id,
        "credit": postback.credit,
        "currency": postback.currency,
        "model": postback.model,
        "orderedAt": rfc3339(instant_of(postback.ordered_ms)),
        "writtenAt": rfc3339(instant_of(postback.exported_ms)),
        "state": log.state(postback.id),
        "attempts": log.attempts(postback.id),
        "attemptedAt": None if last is None else rfc3339(instant_of(last.at_ms)),
        "why": None if last is None or not last.why else last.why,
    }
