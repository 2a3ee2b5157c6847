"""Mail: an alarm as a message that people read, by SMTP.

Never sends in the clear what it was told to encrypt. Invariants: what a job's fields hold cannot become a header or
another recipient; the `Message-ID` is the notification's, so that a second copy can be known as one.

>>> letter("1", '{"type": "clickclock.test", "data": {"message": "Hello."}}', "a@b.test", ["c@d.test"])["Subject"]
'[clickclock] test'
"""

import asyncio
import json
import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Literal

from clickclock.scheduler.targets import Undelivered

ANSWER_S = 10.0
SUBJECTS = {"clickclock.alarm.opened": "", "clickclock.alarm.resolved": "resolved: "}
LINES = (
    *(("Job", "application", "jobName"), ("Kind", "kind"), ("Group", "groupName"), ("Trigger", "triggerId")),
    *(("Since", "openedAt"), ("Over", "resolvedAt"), ("How", "resolution"), ("Alarm", "alarmId")),
)


@dataclass(frozen=True, slots=True)
class Server:
    """Where mail is handed in."""

    host: str
    port: int
    security: Literal["starttls", "tls", "none"]
    username: str | None
    password: str | None
    ca_file: Path | None


class Mail:
    """Some recipients."""

    def __init__(self, server: Server, sender: str, recipients: Sequence[str]) -> None:
        self._server = server
        self._sender = sender
        self._recipients = recipients

    async def send(self, notification_id: str, body: str, now: datetime) -> None:
        message = letter(notification_id, body, self._sender, self._recipients)
        message["Date"] = now
        try:
            await asyncio.to_thread(self._hand_in, message)
        except (smtplib.SMTPException, OSError) as error:
            raise Undelivered(f"The mail server did not take it: {_words(error)}.") from error

    def _hand_in(self, message: EmailMessage) -> None:
        server = self._server
        context = ssl.create_default_context(cafile=server.ca_file)
        if server.security == "tls":
            smtp: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=ANSWER_S, context=context)
        else:
            smtp = smtplib.SMTP(server.host, server.port, timeout=ANSWER_S)
        with smtp:
            if server.security == "starttls":
                smtp.starttls(context=context)
            if server.username is not None and server.password is not None:
                smtp.login(server.username, server.password)
            if refused := smtp.send_message(message):
                raise smtplib.SMTPRecipientsRefused(refused)

    async def close(self) -> None:
        """Every message has a connection of its own."""


def letter(notification_id: str, body: str, sender: str, recipients: Sequence[str]) -> EmailMessage:
    """The message for a CloudEvent."""
    event: dict[str, Any] = json.loads(body)
    data = event["data"]
    message = EmailMessage()
    message["Subject"] = f"[clickclock] {_subject(event['type'], data)}"
    message["From"] = sender
    message["To"] = ", ".join(recipients)
    message["Message-ID"] = f"<{notification_id}@clickclock>"
    message["Auto-Submitted"] = "auto-generated"
    lines = [data.get("resolution") or data["message"], ""]
    for title, *names in LINES:
        if found := [str(data[name]) for name in names if data.get(name) is not None]:
            lines.append(f"{title + ':':<9}{'/'.join(found)}")
    message.set_content("\n".join(lines) + "\n")
    return message


def _subject(type_: str, data: dict[str, Any]) -> str:
    if type_ not in SUBJECTS:
        return type_.rpartition(".")[2]
    text = f"{SUBJECTS[type_]}{data['kind']}: {data['application']}/{data['jobName']}"
    return " ".join(text.split())  # a line's end would begin another header


def _words(error: Exception) -> str:
    match error:
        case smtplib.SMTPRecipientsRefused():
            return ", ".join(f"{who}: {why}" for who, why in error.recipients.items())[:300]
        case smtplib.SMTPResponseException():
            said = error.smtp_error.decode("utf-8", "replace") if isinstance(error.smtp_error, bytes) else ""
            return f"{error.smtp_code} {said}"[:300].strip()
        case _:
            return (str(error) or type(error).__name__)[:300].rstrip(".")
