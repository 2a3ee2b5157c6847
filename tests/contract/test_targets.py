"""Targets against real servers: a webhook is signed and believes 2xx alone; mail is encrypted, and nobody's header."""

import base64
import hmac
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from clickclock.foundation.ids import new_id
from clickclock.foundation.webhook_signature import secret_of, signature
from clickclock.scheduler.insight.event import envelope
from clickclock.scheduler.targets import MailServer, Undelivered
from clickclock.scheduler.targets.mail import Mail, letter
from clickclock.scheduler.targets.posting import TOLD_CHARACTERS_MAX
from clickclock.scheduler.targets.webhook import Webhook
from tests.receivers import Letterbox, answer, hook, letterbox
from tests.stores import NOW

KEY = bytes(range(32))
DATA = {"message": "It failed.", "kind": "failure", "application": "shop", "jobName": "export", "alarmId": "a-1"}
BODY = json.dumps(envelope("n-1", "clickclock.alarm.opened", NOW, "shop/export", DATA))
CERTIFICATES = Path(__file__).parents[1] / "data/mail"


@pytest.fixture
async def closed() -> AsyncIterator[list[Webhook]]:
    """Webhooks that are closed in the end."""
    made: list[Webhook] = []
    yield made
    for each in made:
        await each.close()


async def test_a_webhook_is_signed_so_that_the_receiver_can_check_it(closed: list[Webhook]) -> None:
    async with hook() as receiver:
        closed.append(Webhook(receiver.url, KEY))
        await closed[0].send("n-1", BODY, NOW)
        (got,) = receiver.got
    told = f"n-1.{int(NOW.timestamp())}.{got.body}".encode()
    assert got.body == BODY
    assert got.headers["webhook-id"] == "n-1"
    assert got.headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    expected = base64.b64encode(hmac.digest(KEY, told, "sha256")).decode()
    assert got.headers["webhook-signature"] == f"v1,{expected}"
    assert got.headers["content-type"] == "application/cloudevents+json; charset=utf-8"


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The example of its specification's libraries."""
    key = secret_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    body = '{"test": 2432232314}'
    told = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert told == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_not base64!", "whsec_" + "A" * 100])
def test_a_secret_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="it"):
        secret_of(text)


@pytest.mark.parametrize(
    ("answered", "sentence", "for_good"),
    [
        (answer(500, "out of\n memory"), "The server answered with status 500: out of memory.", False),
        (answer(400), "The server answered with status 400.", False),
        (answer(410), "The server answered with status 410.", True),
        (answer(500, "x" * 100_000), f"The server answered with status 500: {'x' * TOLD_CHARACTERS_MAX}.", False),
        (answer(500, "\x1b[31mred"), "The server answered with status 500.", False),
        (b"nonsense\r\n\r\n", "The server cannot be reached: ", False),
        (b"", "The server cannot be reached: ", False),
    ],
)
async def test_only_2xx_means_that_it_arrived(
    closed: list[Webhook], answered: bytes, sentence: str, for_good: bool
) -> None:
    async with hook(answered) as receiver:
        closed.append(Webhook(receiver.url, KEY))
        with pytest.raises(Undelivered) as raised:
            await closed[0].send("n-1", BODY, NOW)
    assert str(raised.value).startswith(sentence)
    assert raised.value.for_good is for_good


async def test_a_redirect_is_not_followed(closed: list[Webhook]) -> None:
    async with hook() as elsewhere, hook(answer(307, location=elsewhere.url)) as receiver:
        closed.append(Webhook(receiver.url, KEY))
        with pytest.raises(Undelivered, match="redirect, which is not followed"):
            await closed[0].send("n-1", BODY, NOW)
        assert elsewhere.got == []


async def test_a_webhook_to_nowhere_says_so(closed: list[Webhook]) -> None:
    async with hook() as receiver:
        url = receiver.url
    closed.append(Webhook(url, KEY))
    with pytest.raises(Undelivered, match="cannot be reached"):
        await closed[0].send("n-1", BODY, NOW)


@pytest.fixture
def box() -> Iterator[Letterbox]:
    """A mail server that wants nothing."""
    with letterbox() as served:
        yield served


def server(port: int, **fields: object) -> MailServer:
    plain = {
        "host": "127.0.0.1",
        "security": "none",
        "username": None,
        "password": None,
        "ca_file": None,
        "sender": "clock@example.com",
    }
    return MailServer(**{**plain, "port": port, **fields})  # type: ignore[arg-type] # as each is


async def test_mail_says_what_is_wrong_of_which_job(box: Letterbox) -> None:
    await Mail(server(box.port), ["ops@example.com", "ada@example.com"]).send("n-1", BODY, NOW)
    (envelope_,) = box.envelopes
    assert isinstance(envelope_.content, bytes)
    text = envelope_.content.decode()
    assert envelope_.rcpt_tos == ["ops@example.com", "ada@example.com"]
    assert "Subject: [clickclock] failure: shop/export\r\n" in text
    assert "Message-ID: <n-1@clickclock>\r\n" in text
    assert "Auto-Submitted: auto-generated\r\n" in text
    assert "It failed.\r\n\r\nJob:     shop/export\r\nKind:    failure\r\n" in text


async def test_mail_is_encrypted_before_the_password_is_told() -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(CERTIFICATES / "server.pem")
    with letterbox(tls) as box:
        access = {"security": "starttls", "username": "clock", "ca_file": CERTIFICATES / "ca.pem"}
        await Mail(server(box.port, **access, password="secret"), ["c@d.test"]).send("n-1", BODY, NOW)
        assert (box.was_encrypted, box.logins) == ([True], [(b"clock", b"secret")])
        wrong = Mail(server(box.port, **access, password="wrong"), ["c@d.test"])
        with pytest.raises(Undelivered, match="535"):
            await wrong.send("n-2", BODY, NOW)
        unknown = Mail(server(box.port, security="starttls"), ["c@d.test"])
        with pytest.raises(Undelivered, match="certificate"):
            await unknown.send("n-3", BODY, NOW)
        assert len(box.envelopes) == 1


async def test_mail_that_shall_be_encrypted_is_not_sent_where_it_cannot_be(box: Letterbox) -> None:
    with pytest.raises(Undelivered, match="STARTTLS"):
        await Mail(server(box.port, security="starttls"), ["c@d.test"]).send("n-1", BODY, NOW)
    assert box.envelopes == []


async def test_what_the_mail_server_says_against_it_is_told() -> None:
    with letterbox(refuses="452 The disk is full") as box:
        with pytest.raises(Undelivered, match="452 The disk is full"):
            await Mail(server(box.port), ["c@d.test"]).send("n-1", BODY, NOW)
        port = box.port
    with pytest.raises(Undelivered, match="refused"):
        await Mail(server(port), ["c@d.test"]).send("n-1", BODY, NOW)


def test_what_a_job_is_called_cannot_become_a_header() -> None:
    evil = {**DATA, "jobName": "x\r\nBcc: evil@example.com", "message": "a\r\nBcc: evil@example.com"}
    body = json.dumps(envelope(new_id(), "clickclock.alarm.resolved", NOW, "s", evil))
    message = letter("n-1", body, "a@b.test", ["c@d.test"])
    assert message["Bcc"] is None
    assert message["Subject"] == "[clickclock] resolved: failure: shop/x Bcc: evil@example.com"
    assert message["To"] == "c@d.test"
