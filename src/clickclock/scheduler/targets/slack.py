"""Slack: a message to a channel by an incoming webhook, in Block Kit.

Never sends markup. Invariants: every text is `plain_text`, and `&`, `<` and `>` are escaped in it, so that no name
becomes a mention (`<!channel>`), a link or a style; each text keeps Slack's limits.

The form is that of https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks, and the limits are those
of https://docs.slack.dev/reference/block-kit/blocks.

>>> message(read("n", '{"type": "clickclock.test", "data": {"message": "a < b"}}'))["text"]
'test: a &lt; b'
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import Field

from clickclock.foundation.record import Settings
from clickclock.scheduler.targets import MailServer
from clickclock.scheduler.targets.notice import Notice, cut, read
from clickclock.scheduler.targets.options import AddressFile
from clickclock.scheduler.targets.posting import Poster

HEADER_MAX, TEXT_MAX, FIELD_MAX, FALLBACK_MAX = 150, 3000, 2000, 4000
MARKS = {"opened": "🔴", "resolved": "🟢", "other": "🔵"}
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class Options(Settings):
    """The table of a channel."""

    address: AddressFile = Field(alias="url_file", description="File with the address of the incoming webhook.")


def make(*, name: str, options: Mapping[str, Any], mail_server: MailServer | None) -> "Slack":
    """The door's `Maker`."""
    return Slack(Options.model_validate(options).address.get_secret_value())


class Slack:
    """One channel."""

    def __init__(self, url: str) -> None:
        self._poster = Poster(url)

    async def send(self, notification_id: str, body: str, now: datetime) -> None:
        content = json.dumps(message(read(notification_id, body)), ensure_ascii=False)
        await self._poster.post(content, {"content-type": "application/json; charset=utf-8"}, now)

    async def close(self) -> None:
        await self._poster.close()


def message(notice: Notice) -> dict[str, Any]:
    """The body of the webhook; `text` is what a phone shows of it."""
    return {
        "text": cut(f"{notice.title}: {notice.text}", FALLBACK_MAX, _ESCAPES),
        "mrkdwn": False,
        "unfurl_links": False,
        "unfurl_media": False,
        "blocks": [
            {"type": "header", "text": _plain(f"{MARKS[notice.state]} {notice.title}", HEADER_MAX)},
            {"type": "section", "text": _plain(notice.text or "-", TEXT_MAX)},
            *(
                [{"type": "section", "fields": [_plain(f"{name}\n{value}", FIELD_MAX) for name, value in notice.facts]}]
                if notice.facts
                else []
            ),
        ],
    }


def _plain(text: str, units_max: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": cut(text, units_max, _ESCAPES), "emoji": False}
