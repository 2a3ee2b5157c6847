"""Opsgenie: an alert that is created and closed, by the Alert API.

Never leaves an alert open that is over: an alarm's opening and its end have one `alias`, so that a second copy of
either changes nothing. Invariants: the key is in one header alone; no text has a `<` or a `>`, for a description may be
shown as HTML; each text keeps the limits of the API.

The form is that of https://docs.opsgenie.com/docs/alert-api.

>>> alert(read("n-1", '{"type": "clickclock.test", "data": {"message": "Hello."}}'), "P3")["alias"]
'clickclock-n-1'
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from pydantic import Field

from clickclock.foundation.record import Settings
from clickclock.scheduler.targets import MailServer
from clickclock.scheduler.targets.notice import Notice, cut, read
from clickclock.scheduler.targets.options import SecretFile, ServiceAddress
from clickclock.scheduler.targets.posting import Poster

URL = "https://api.opsgenie.com"
MESSAGE_MAX, DESCRIPTION_MAX, DETAILS_MAX, ALIAS_MAX, ENTITY_MAX = 130, 15_000, 8000, 512, 512
DETAIL_MAX = 900
"""So long that all facts together keep below `DETAILS_MAX`."""
SOURCE = "clickclock"
_ESCAPES = {"<": "\u2039", ">": "\u203a"}
"""They become quotation marks that look alike."""
Priority = Literal["P1", "P2", "P3", "P4", "P5"]


class Options(Settings):
    """The table of a team."""

    api_key: SecretFile = Field(alias="api_key_file", description="File with the key of an API integration.")
    priority: Priority = Field("P3", description="The priority of alerts about failed and missed jobs: P1 to P5.")
    url: ServiceAddress = Field(URL, description="The service; in the EU https://api.eu.opsgenie.com.")


def make(*, name: str, options: Mapping[str, Any], mail_server: MailServer | None) -> "Opsgenie":
    """The door's `Maker`."""
    read_ = Options.model_validate(options)
    return Opsgenie(read_.url, read_.api_key.get_secret_value(), read_.priority)


class Opsgenie:
    """One integration."""

    def __init__(self, url: str, api_key: str, priority: Priority) -> None:
        self._poster = Poster(url.rstrip("/"), secrets=[api_key])
        self._priority = priority
        self._headers = {"content-type": "application/json", "authorization": f"GenieKey {api_key}"}

    async def send(self, notification_id: str, body: str, now: datetime) -> None:
        notice = read(notification_id, body)
        if notice.state == "resolved":
            path = f"/v2/alerts/{quote(alias(notice), safe='')}/close?identifierType=alias"
            content = {"source": SOURCE, "note": cut(notice.text, DESCRIPTION_MAX, _ESCAPES)}
        else:
            path, content = "/v2/alerts", alert(notice, self._priority)
        await self._poster.post(json.dumps(content, ensure_ascii=False), self._headers, now, path=path)

    async def close(self) -> None:
        await self._poster.close()


def alias(notice: Notice) -> str:
    """The alias of an alert: the same for an alarm's opening and its end."""
    return cut(f"{SOURCE}-{notice.key}", ALIAS_MAX)


def alert(notice: Notice, priority: Priority) -> dict[str, Any]:
    """The body of the request that creates an alert."""
    less_urgent: Priority = "P4" if notice.state == "opened" and priority != "P5" else "P5"
    return {
        "message": cut(notice.title, MESSAGE_MAX, _ESCAPES),
        "alias": alias(notice),
        "description": cut(notice.text, DESCRIPTION_MAX, _ESCAPES),
        "entity": cut(notice.subject, ENTITY_MAX, _ESCAPES),
        "source": SOURCE,
        "tags": [SOURCE, notice.kind],
        "priority": priority if notice.is_urgent else less_urgent,
        "details": {name: cut(value, DETAIL_MAX, _ESCAPES) for name, value in notice.facts},
    }
