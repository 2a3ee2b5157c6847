r"""Slack, Teams, Discord, PagerDuty and Opsgenie, as far as they take notifications: doubles that judge alike.

Never kinder than the service: a text that is too long, a form that is not theirs and a key that they do not know are
refused, with the status and the body that the service answers with. Invariant: what was taken is kept, by its key where
the service has one.

>>> judge_slack(Post({}, "{}", "/services/T/B/none"))[:17]
b'HTTP/1.1 404 So\r\n'
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.receivers import Post, answer

SLACK_PATH = "/services/T00000000/B00000000/slacksecretslacksecret00"
TEAMS_PATH = "/workflows/teamssecretteamssecret/triggers/manual/paths/invoke?sig=teamssignature"
DISCORD_PATH = "/api/webhooks/123456789012345678/discordsecretdiscordsecret"
ROUTING_KEY = "0123456789abcdef0123456789abcdef"
API_KEY = "eb243592-faa2-4ba2-a551q-1afdf565c889"
SEVERITIES = {"critical", "error", "warning", "info"}


def units(text: str) -> int:
    """How JavaScript counts."""
    return len(text.encode("utf-16-le")) // 2


def judge_slack(post: Post) -> bytes:
    """An incoming webhook."""
    if post.path != SLACK_PATH:
        return answer(404, "no_service")
    message = json.loads(post.body)
    if not message.get("text") and not message.get("blocks"):
        return answer(400, "no_text")
    for block in message.get("blocks", []):
        texts = [block["text"]] if "text" in block else []
        longest = 150 if block["type"] == "header" else 3000
        is_fine = block["type"] in {"header", "section"} and len(block.get("fields", [])) <= 10
        is_fine &= all(units(each["text"]) <= 2000 for each in block.get("fields", []))
        is_fine &= all(0 < units(each["text"]) <= longest for each in texts)
        if not is_fine or any(each["type"] != "plain_text" for each in [*texts, *block.get("fields", [])]):
            return answer(400, "invalid_blocks")
    return answer(200, "ok")


def judge_teams(post: Post) -> bytes:
    """A webhook of a workflow."""
    if post.path != TEAMS_PATH:
        return answer(401, json.dumps({"error": {"code": "DirectApiAuthorizationRequired", "message": "No."}}))
    if len(post.body.encode()) > 28 * 1024:
        return answer(413, json.dumps({"error": {"code": "RequestEntityTooLarge"}}))
    message = json.loads(post.body)
    (attachment,) = message["attachments"]
    card = attachment["content"]
    is_fine = (message["type"], card["type"]) == ("message", "AdaptiveCard")
    is_fine &= attachment["contentType"] == "application/vnd.microsoft.card.adaptive" and "version" in card
    for block in card["body"]:
        is_fine &= block["type"] == "RichTextBlock" and all(each["type"] == "TextRun" for each in block["inlines"])
    return answer(202) if is_fine else answer(400, json.dumps({"error": {"code": "InvalidRequestContent"}}))


def judge_discord(post: Post) -> bytes:
    """A webhook."""
    if post.path != DISCORD_PATH:
        return answer(404, json.dumps({"message": "Unknown Webhook", "code": 10015}))
    message = json.loads(post.body)
    (embed,) = message["embeds"]
    texts = [embed["title"], embed["description"], *(text for one in embed["fields"] for text in _texts_of(one))]
    is_fine = units(embed["title"]) <= 256 and units(embed["description"]) <= 4096 and len(embed["fields"]) <= 25
    is_fine &= all(0 < units(one["name"]) <= 256 and 0 < units(one["value"]) <= 1024 for one in embed["fields"])
    is_fine &= sum(map(units, texts)) <= 6000
    return answer(204) if is_fine else answer(400, json.dumps({"message": "Invalid Form Body", "code": 50035}))


def _texts_of(field_: dict[str, Any]) -> Iterator[str]:
    yield field_["name"]
    yield field_["value"]


@dataclass
class PagerDuty:
    """The Events API v2: incidents by their `dedup_key`."""

    incidents: dict[str, list[str]] = field(default_factory=dict)

    def judge(self, post: Post) -> bytes:
        """One event."""
        event = json.loads(post.body)
        errors = []
        if event.get("routing_key") != ROUTING_KEY:
            errors.append(f"'routing_key' {event.get('routing_key')} is unknown")
        if event.get("event_action") not in {"trigger", "acknowledge", "resolve"}:
            errors.append("'event_action' is invalid")
        payload = event.get("payload", {})
        if not 0 < units(payload.get("summary", "")) <= 1024:
            errors.append("'payload.summary' is missing or too long")
        if payload.get("severity") not in SEVERITIES or not payload.get("source"):
            errors.append("'payload.severity' or 'payload.source' is invalid")
        if not 0 < len(event.get("dedup_key", "")) <= 255 or len(post.body.encode()) > 512 * 1024:
            errors.append("'dedup_key' is invalid, or the event is too large")
        if errors or post.path != "/v2/enqueue":
            told = {"status": "invalid event", "message": "Event object is invalid", "errors": errors}
            return answer(400, json.dumps(told))
        self.incidents.setdefault(event["dedup_key"], []).append(event["event_action"])
        told = {"status": "success", "message": "Event processed", "dedup_key": event["dedup_key"]}
        return answer(202, json.dumps(told))


@dataclass
class Opsgenie:
    """The Alert API: alerts by their alias."""

    alerts: dict[str, str] = field(default_factory=dict)

    def judge(self, post: Post) -> bytes:
        """One request."""
        if post.headers.get("authorization") != f"GenieKey {API_KEY}":
            return answer(401, json.dumps({"message": "Could not authenticate", "took": 0.0, "requestId": "r"}))
        sent = json.loads(post.body)
        if found := re.fullmatch(r"/v2/alerts/([^/?]+)/close\?identifierType=alias", post.path):
            self.alerts[found[1]] = "closed"
        elif post.path == "/v2/alerts" and self._is_fine(sent):
            self.alerts[sent["alias"]] = "open"
        else:
            return answer(422, json.dumps({"message": "Request body is not processable.", "errors": {"x": "y"}}))
        return answer(202, json.dumps({"result": "Request will be processed", "took": 0.1, "requestId": "r"}))

    @staticmethod
    def _is_fine(sent: dict[str, Any]) -> bool:
        details = sum(units(name) + units(value) for name, value in sent["details"].items())
        return (
            0 < units(sent["message"]) <= 130
            and units(sent["alias"]) <= 512
            and units(sent["description"]) <= 15_000
            and units(sent["entity"]) <= 512
            and details <= 8000
            and sent["priority"] in {"P1", "P2", "P3", "P4", "P5"}
        )
