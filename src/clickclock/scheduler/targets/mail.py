"""Mail: an alarm as a message that people read, by SMTP.

Never sends mail in the clear that it has to encrypt. Invariants: what a job's fields hold cannot become a header or
another recipient; the `Message-ID` is the notification's, so that a second copy can be known as one.

>>> letter("1", '{"type": "clickclock.test", "data": {"message": "Hello."}}', "a@b.test", ["c@d.test"])["Subject"]
'[clickclock] test'
"""

import asyncio
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.message import EmailMessage
from typing import Any

from pydantic import Field, field_validator

from clickclock.foundation.record import Settings
from clickclock.scheduler.targets import MailServer, Undelivered
from clickclock.scheduler.targets.notice import read
from clickclock.scheduler.targets.options import MailAddress

ANSWER_S = 10.0


class Options(Settings):
    """The table of some recipients."""

    email: tuple[MailAddress, ...] = Field(description="To whom.")

    @field_validator("email")
    @classmethod
    def _is_somebody(cls, email: tuple[str, ...]) -> tuple[str, ...]:
        if not email:
            raise ValueError("give an address, or several")
        return email


def make(*, name: str, options: Mapping[str, Any], mail_server: MailServer | None) -> "Mail":
    """The door's `Maker`."""
    recipients = Options.model_validate(options).email
    if mail_server is None:
        raise ValueError("mail needs a server; give [smtp]")
    return Mail(mail_server, recipients)


class Mail:
    """Some recipients."""

    def __init__(self, server: MailServer, recipients: Sequence[str]) -> None:
        self._server = server
        self._recipients = recipients

    async def send(self, notification_id: str, body: str, now: datetime) -> None:
        message = letter(notification_id, body, self._server.sender, self._recipients)
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
    notice = read(notification_id, body)
    message = EmailMessage()
    message["Subject"] = f"[clickclock] {notice.title}"
    message["From"] = sender
    message["To"] = ", ".join(recipients)
    message["Message-ID"] = f"<{notification_id}@clickclock>"
    message["Auto-Submitted"] = "auto-generated"
    lines = [notice.text, "", *(f"{name + ':':<9}{value}" for name, value in notice.facts)]
    message.set_content("\n".join(lines) + "\n")
    return message


def _words(error: Exception) -> str:
    match error:
        case smtplib.SMTPRecipientsRefused():
            return ", ".join(f"{who}: {why}" for who, why in error.recipients.items())[:300]
        case smtplib.SMTPResponseException():
            said = error.smtp_error.decode("utf-8", "replace") if isinstance(error.smtp_error, bytes) else ""
            return f"{error.smtp_code} {said}"[:300].strip()
        case _:
            return (str(error) or type(error).__name__)[:300].rstrip(".")
