"""PagerDuty: an event that triggers or resolves an incident, by the Events API v2.

Never leaves an incident open that is over: an alarm's opening and its end have one `dedup_key`, so that a second copy
of either changes nothing. Invariant: the routing key is in the body alone.

The form is that of https://developer.pagerduty.com/docs/events-api-v2-overview.

>>> event(read("n-1", '{"type": "clickclock.test", "data": {"message": "Hello."}}'), "key")["dedup_key"]
'clickclock/n-1'
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import Field

from clickclock.foundation.record import Settings
from clickclock.scheduler.targets import MailServer
from clickclock.scheduler.targets.notice import Notice, cut, read
from clickclock.scheduler.targets.options import SecretFile, ServiceAddress
from clickclock.scheduler.targets.posting import Poster

URL = "https://events.pagerduty.com/v2/enqueue"
SUMMARY_MAX, DETAIL_MAX, KEY_MAX, EVENT_BYTES_MAX = 1024, 4096, 255, 512 * 1024
SOURCE = "clickclock"


class Options(Settings):
    """The table of a service of PagerDuty."""

    routing_key: SecretFile = Field(alias="routing_key_file", description="File with the integration's key.")
    url: ServiceAddress = Field(
        URL, description="Where events are sent; in the EU https://events.eu.pagerduty.com/v2/enqueue."
    )


def make(*, name: str, options: Mapping[str, Any], mail_server: MailServer | None) -> "PagerDuty":
    """The door's `Maker`."""
    read_ = Options.model_validate(options)
    return PagerDuty(read_.url, read_.routing_key.get_secret_value())


class PagerDuty:
    """One service."""

    def __init__(self, url: str, routing_key: str) -> None:
        self._routing_key = routing_key
        self._poster = Poster(url, secrets=[routing_key])

    async def send(self, notification_id: str, body: str, now: datetime) -> None:
        content = json.dumps(event(read(notification_id, body), self._routing_key), ensure_ascii=False)
        await self._poster.post(content, {"content-type": "application/json"}, now)

    async def close(self) -> None:
        await self._poster.close()


def event(notice: Notice, routing_key: str) -> dict[str, Any]:
    """The body of the request."""
    sent: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": "resolve" if notice.state == "resolved" else "trigger",
        "dedup_key": cut(f"{SOURCE}/{notice.key}", KEY_MAX),
        "client": SOURCE,
        "payload": {
            "summary": cut(f"{notice.title}: {' '.join(notice.text.split())}", SUMMARY_MAX),
            "source": SOURCE,
            "severity": "error" if notice.is_urgent else "info" if notice.state == "other" else "warning",
            "class": notice.kind,
            "custom_details": {
                "Message": cut(notice.text, DETAIL_MAX),
                **{name: cut(value, DETAIL_MAX) for name, value in notice.facts},
            },
        },
    }
    optional = {"timestamp": notice.opened_at, "component": notice.subject or None, "group": notice.group}
    sent["payload"] |= {name: value for name, value in optional.items() if value is not None}
    return sent
