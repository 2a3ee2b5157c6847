"""Targets that are chat rooms and pagers, against doubles that judge as the services document."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from clickclock.scheduler.insight.event import envelope
from clickclock.scheduler.targets import Target, Undelivered
from clickclock.scheduler.targets.discord import Discord
from clickclock.scheduler.targets.opsgenie import Opsgenie
from clickclock.scheduler.targets.pagerduty import PagerDuty
from clickclock.scheduler.targets.posting import RETRY_AFTER_S_MAX
from clickclock.scheduler.targets.slack import Slack
from clickclock.scheduler.targets.teams import Teams
from clickclock.scheduler.targets.webhook import Webhook
from tests import chat_services as services
from tests.receivers import Hook, Post, answer, hook
from tests.stores import NOW

KINDS = ["slack", "teams", "discord", "pagerduty", "opsgenie"]
SECRETS = (
    "slacksecretslacksecret00", "teamssecretteamssecret", "teamssignature", "discordsecretdiscordsecret",
    services.ROUTING_KEY, services.API_KEY,
)  # fmt: skip
EVIL = "<!channel> <@U1> & @everyone **b** _i_ `c` [x](https://evil.test) <at>all</at> # > | ~"
DATA = {"message": "It failed.", "kind": "failure", "application": "shop", "jobName": "export", "alarmId": "a-1",
        "openedAt": "2026-11-20T10:00:00.000Z", "groupName": "night", "triggerId": "t-1"}  # fmt: skip


def body(type_: str = "clickclock.alarm.opened", **data: Any) -> str:
    return json.dumps(envelope("n-1", type_, NOW, "shop/export", {**DATA, **data}))


def target(kind: str, base: str) -> Target:
    match kind:
        case "slack":
            return Slack(base + services.SLACK_PATH)
        case "teams":
            return Teams(base + services.TEAMS_PATH)
        case "discord":
            return Discord(base + services.DISCORD_PATH)
        case "pagerduty":
            return PagerDuty(f"{base}/v2/enqueue", services.ROUTING_KEY)
        case "opsgenie":
            return Opsgenie(base, services.API_KEY, "P2")
        case _:
            return Webhook(f"{base}/hook", bytes(32))


def judge_of(kind: str) -> Callable[[Post], bytes]:
    return {
        "slack": services.judge_slack,
        "teams": services.judge_teams,
        "discord": services.judge_discord,
        "pagerduty": services.PagerDuty().judge,
        "opsgenie": services.Opsgenie().judge,
    }[kind]


@asynccontextmanager
async def room(kind: str, judge: Callable[[Post], bytes]) -> AsyncIterator[tuple[Target, Hook]]:
    async with hook(judge=judge) as server:
        made = target(kind, server.url.removesuffix("/hook"))
        yield made, server
        await made.close()


def texts(value: Any) -> list[str]:
    """All texts in a JSON value."""
    match value:
        case str():
            return [value]
        case dict():
            return [text for each in value.values() for text in texts(each)]
        case list():
            return [text for each in value for text in texts(each)]
    return []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "sent",
    [
        body(),
        body("clickclock.alarm.resolved", resolution="The job succeeded.", resolvedAt="2026-11-20T11:00:00.000Z"),
        json.dumps(envelope("n-2", "clickclock.test", NOW, "ops", {"message": "This is a test."})),
        body(message="", groupName=None),
        body(message="x" * 100_000, jobName="j" * 128, application="a" * 128, groupName="g" * 128),
        body(message="&<😀*" * 20_000, jobName="&<😀*" * 32, application="&<😀*" * 32),
        body(message="a\ud800b", jobName="\u202egnp.\x1b[2J\r\nBcc: x"),
    ],
    ids=["opened", "resolved", "test", "empty", "long", "long and escaped", "not seen"],
)
async def test_a_service_takes_every_notification_in_its_own_form(kind: str, sent: str) -> None:
    async with room(kind, judge_of(kind)) as (made, server):
        await made.send("n-1", sent, NOW)
        (got,) = server.got
    for text in texts(json.loads(got.body)):
        assert not {"\u202e", "\x1b", "\r"} & set(text)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_wrong_with_which_job_is_told(kind: str) -> None:
    async with room(kind, judge_of(kind)) as (made, server):
        await made.send("n-1", body(), NOW)
    told = " ".join(texts(json.loads(server.got[0].body))).replace("\\", "")
    for part in ("failure: shop/export", "It failed.", "night", "t-1", "a-1", "2026-11-20T10:00:00.000Z"):
        assert part in told


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_job_is_called_can_do_nothing(kind: str) -> None:
    async with room(kind, judge_of(kind)) as (made, server):
        await made.send("n-1", body(jobName=EVIL, message=EVIL), NOW)
    sent = json.loads(server.got[0].body)
    told = texts(sent)
    match kind:
        case "slack":
            assert sent["mrkdwn"] is False
            assert not any("<" in each or "& " in each for each in told)
            assert any("&lt;!channel&gt; &lt;@U1&gt; &amp; @everyone" in each for each in told)
        case "teams":
            card = sent["attachments"][0]["content"]
            assert not {"TextBlock", "FactSet", "msteams"} & {*texts(card), *card}
        case "discord":
            assert sent["allowed_mentions"] == {"parse": []}
            shown = sent["embeds"][0]["description"]
            assert shown.startswith(r"\<!channel\> \<\@U1\> & \@everyone \*\*b\*\* \_i\_ \`c\` \[x\]\(https\://evil")
        case "opsgenie":
            assert not any({"<", ">"} & set(each) for each in told)
        case "pagerduty":  # it shows texts as they are
            assert sent["payload"]["component"] == f"shop/{EVIL}"


@pytest.mark.parametrize("kind", [*KINDS, "webhook"])
@pytest.mark.parametrize(
    ("status", "for_good"),
    [(400, True), (401, True), (403, True), (404, True), (410, True), (413, True), (422, True),
     (408, False), (425, False), (429, False), (500, False), (502, False), (503, False), (504, False)],
)  # fmt: skip
async def test_a_refusal_is_for_good_unless_another_time_may_help(kind: str, status: int, for_good: bool) -> None:
    async with room(kind, lambda _: answer(status, "no")) as (made, _):
        with pytest.raises(Undelivered) as raised:
            await made.send("n-1", body(), NOW)
    assert raised.value.for_good is (for_good if kind != "webhook" else status == 410)
    assert f"status {status}" in str(raised.value)
    mine = {"slack": 0, "teams": 1, "discord": 3, "pagerduty": 4, "opsgenie": 5}
    if kind in mine:
        echoed = answer(status, f"{'x' * 190} {SECRETS[mine[kind]]} {SECRETS[2]}")
        async with room(kind, lambda _: echoed) as (made, _):
            with pytest.raises(Undelivered) as raised:
                await made.send("n-1", body(), NOW)
        assert SECRETS[mine[kind]][:6] not in str(raised.value)


@pytest.mark.parametrize("kind", [*KINDS, "webhook"])
@pytest.mark.parametrize(
    ("header", "seconds"),
    [("30", 30.0), ("0.65", 0.65), (format_datetime(NOW + timedelta(minutes=2), usegmt=True), 120.0), ("-5", 0.0),
     ("999999999", RETRY_AFTER_S_MAX), ("soon", 0.0), ("nan", 0.0), ("inf", RETRY_AFTER_S_MAX)],
)  # fmt: skip
async def test_a_service_that_is_asked_too_often_says_when_to_come_back(kind: str, header: str, seconds: float) -> None:
    limited = answer(429, '{"message": "You are being rate limited.", "retry_after": 0.65}', **{"retry-after": header})
    async with room(kind, lambda _: limited) as (made, _):
        with pytest.raises(Undelivered) as raised:
            await made.send("n-1", body(), NOW)
    assert (raised.value.for_good, raised.value.retry_after_s) == (False, seconds)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_service_that_cannot_be_reached_says_so_without_its_secret(kind: str) -> None:
    async with hook() as server:
        base = server.url.removesuffix("/hook")
    made = target(kind, base)
    with pytest.raises(Undelivered, match="cannot be reached") as raised:
        await made.send("n-1", body(), NOW)
    await made.close()
    chain = [raised.value, raised.value.__cause__]
    assert not any(secret in repr(each) for secret in SECRETS for each in chain)


@pytest.mark.parametrize("kind", ["slack", "teams", "discord", "pagerduty", "opsgenie"])
async def test_a_wrong_key_is_told_as_the_service_says_it(kind: str) -> None:
    said = {"slack": "no_service", "teams": "DirectApiAuthorizationRequired", "discord": "Unknown Webhook",
            "pagerduty": "Event object is invalid", "opsgenie": "Could not authenticate"}[kind]  # fmt: skip
    async with hook(judge=judge_of(kind)) as server:
        base = server.url.removesuffix("/hook")
        rooms: dict[str, Target] = {
            "slack": Slack(f"{base}/services/other"),
            "teams": Teams(f"{base}/workflows/other"),
            "discord": Discord(f"{base}/api/webhooks/other"),
            "pagerduty": PagerDuty(f"{base}/v2/enqueue", "f" * 32),
            "opsgenie": Opsgenie(base, "other-key", "P3"),
        }
        made = rooms[kind]
        with pytest.raises(Undelivered, match=said) as raised:
            await made.send("n-1", body(), NOW)
        for each in rooms.values():
            await each.close()
    assert raised.value.for_good
    assert "f" * 32 not in str(raised.value)


async def test_a_pagers_incident_is_opened_once_and_resolved_by_the_same_key() -> None:
    pager = services.PagerDuty()
    async with room("pagerduty", pager.judge) as (made, server):
        for type_ in ("clickclock.alarm.opened", "clickclock.alarm.opened", "clickclock.alarm.resolved"):
            await made.send("n-1", body(type_, resolution="The job succeeded."), NOW)
    assert pager.incidents == {"clickclock/a-1": ["trigger", "trigger", "resolve"]}
    payload = json.loads(server.got[0].body)["payload"]
    assert (payload["severity"], payload["class"], payload["component"]) == ("error", "failure", "shop/export")
    assert (payload["timestamp"], payload["group"]) == ("2026-11-20T10:00:00.000Z", "night")


async def test_an_alert_of_opsgenie_is_closed_by_its_alias() -> None:
    service = services.Opsgenie()
    async with room("opsgenie", service.judge) as (made, server):
        await made.send("n-1", body(), NOW)
        await made.send("n-2", body(kind="longRun", alarmId="a-2"), NOW)
        await made.send("n-3", body("clickclock.alarm.resolved", resolution="The job succeeded."), NOW)
    assert service.alerts == {"clickclock-a-1": "closed", "clickclock-a-2": "open"}
    assert [json.loads(each.body).get("priority") for each in server.got] == ["P2", "P4", None]
