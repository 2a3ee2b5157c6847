"""Microsoft Teams: an Adaptive Card to a channel or a chat, by a webhook of a workflow.

Never sends Markdown: a `TextRun` shows its text as it is, where a `TextBlock` or a fact would make links and styles.
Invariants: a card mentions nobody, for a mention needs an entity and there is none; it keeps the 28 KB of a message.

The form is that of https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using.

>>> message(read("n", '{"type": "clickclock.test", "data": {"message": "**a**"}}'))["type"]
'message'
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

MESSAGE_BYTES_MAX = 28 * 1024
TITLE_MAX, TEXT_MAX, FACT_MAX = 256, 3000, 400
"""With eight facts of four bytes a character this keeps below `MESSAGE_BYTES_MAX`."""
COLOURS = {"opened": "Attention", "resolved": "Good", "other": "Accent"}


class Options(Settings):
    """The table of a channel or a chat."""

    address: AddressFile = Field(alias="url_file", description="File with the address of the workflow's webhook.")


def make(*, name: str, options: Mapping[str, Any], mail_server: MailServer | None) -> "Teams":
    """The door's `Maker`."""
    return Teams(Options.model_validate(options).address.get_secret_value())


class Teams:
    """One channel or chat."""

    def __init__(self, url: str) -> None:
        self._poster = Poster(url)

    async def send(self, notification_id: str, body: str, now: datetime) -> None:
        content = json.dumps(message(read(notification_id, body)), ensure_ascii=False)
        await self._poster.post(content, {"content-type": "application/json; charset=utf-8"}, now)

    async def close(self) -> None:
        await self._poster.close()


def message(notice: Notice) -> dict[str, Any]:
    """The body of the webhook."""
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "fallbackText": cut(notice.title, TITLE_MAX),
        "body": [
            _line(_run(cut(notice.title, TITLE_MAX), size="Large", weight="Bolder", color=COLOURS[notice.state])),
            _line(_run(cut(notice.text or "-", TEXT_MAX))),
            *(_line(_run(f"{name}: ", weight="Bolder"), _run(cut(value, FACT_MAX))) for name, value in notice.facts),
        ],
    }
    content_type = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": content_type, "contentUrl": None, "content": card}]}


def _line(*runs: dict[str, Any]) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": list(runs)}


def _run(text: str, **style: str) -> dict[str, Any]:
    return {"type": "TextRun", "text": text, **style}
