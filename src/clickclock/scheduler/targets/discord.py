r"""Discord: an embed in a channel, by a webhook.

Never mentions anybody: `allowed_mentions` allows none. Invariants: every mark of Markdown is escaped, so that no name
becomes a style, a link, a mention or a time; each text and all of them together keep Discord's limits.

The form is that of https://docs.discord.com/developers/resources/webhook#execute-webhook.

>>> message(read("n", '{"type": "clickclock.test", "data": {"message": "@everyone *a*"}}'))["embeds"][0]["description"]
'\\@everyone \\*a\\*'
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

TITLE_MAX, TEXT_MAX, FIELD_MAX, EMBED_MAX = 256, 2000, 400, 6000
"""Discord allows 4,096 and 1,024; these keep an embed with all its fields below `EMBED_MAX`."""
COLOURS = {"opened": 0xD93F3F, "resolved": 0x2E9E5B, "other": 0x4A78C8}
_ESCAPES = {mark: f"\\{mark}" for mark in "\\*_~`|>#-[]()<@:"}


class Options(Settings):
    """The table of a channel."""

    address: AddressFile = Field(alias="url_file", description="File with the address of the webhook.")


def make(*, name: str, options: Mapping[str, Any], mail_server: MailServer | None) -> "Discord":
    """The door's `Maker`."""
    return Discord(Options.model_validate(options).address.get_secret_value())


class Discord:
    """One channel."""

    def __init__(self, url: str) -> None:
        self._poster = Poster(url)

    async def send(self, notification_id: str, body: str, now: datetime) -> None:
        content = json.dumps(message(read(notification_id, body)), ensure_ascii=False)
        await self._poster.post(content, {"content-type": "application/json"}, now)

    async def close(self) -> None:
        await self._poster.close()


def message(notice: Notice) -> dict[str, Any]:
    """The body of the webhook."""
    embed = {
        "title": cut(notice.title, TITLE_MAX, _ESCAPES),
        "description": cut(notice.text or "-", TEXT_MAX, _ESCAPES),
        "color": COLOURS[notice.state],
        "fields": [
            {"name": name, "value": cut(value, FIELD_MAX, _ESCAPES), "inline": True} for name, value in notice.facts
        ],
    }
    return {"allowed_mentions": {"parse": []}, "embeds": [embed]}
