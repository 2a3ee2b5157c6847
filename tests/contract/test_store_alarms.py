"""Alarms in the store: opened once, resolved, told, acknowledged, silenced; and the outbox."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from clickclock.scheduler.errors import (
    AlarmIsResolved,
    AlarmNotFound,
    ApplicationNotFound,
    NotificationIsSent,
    NotificationNotFound,
    SilenceNotFound,
)
from clickclock.scheduler.insight.alarm import Acknowledgement, AlarmKind, SilenceRequest
from clickclock.scheduler.jobs.notification import ApplicationDefaults, Delivery, Notifications
from clickclock.scheduler.store import Parcel, Store
from tests.stores import NOW, add_job, add_schedule, at, claim, ended, finish, group, heartbeat, job, plan, queue, start

TOLD = {"targets": ["ops"]}


async def run(store: Store, code: int = 0, when: float = 1, job_name: str = "export") -> str:
    """The job runs and ends; the trigger's id. What ended is noted."""
    name = await start(store, job_name, at(when))
    await finish(store, name, ended(at(when), code=code))
    await store.statistics.count_all()
    return name.rpartition("-")[0]


async def alarms(store: Store, **filters: Any) -> list[tuple[str, int, bool]]:
    """Kind, count, and whether it is open; the oldest first."""
    found = await store.alarms.find(filters, None, 100)
    return [(each.kind, each.count, each.resolved_at is None) for each in reversed(found)]


async def told(store: Store) -> list[str]:
    """What is in the outbox, the oldest first."""
    found = await store.outbox.find({}, None, 100)
    return [f"{each.target}: {each.type.removeprefix('clickclock.alarm.')}" for each in reversed(found)]


async def test_a_failure_opens_one_alarm_which_counts_and_a_success_resolves_it(store: Store) -> None:
    await add_job(store, notifications=TOLD)
    await run(store, code=1, when=1)
    last = await run(store, code=2, when=2)
    (alarm,) = await store.alarms.find({}, None, 10)
    assert (alarm.kind, alarm.count, alarm.trigger_id) == (AlarmKind.FAILURE, 2, last)
    assert (alarm.opened_at, alarm.updated_at, alarm.notified_at) == (at(1), at(2), at(1))
    assert alarm.message == "The command ended with exit code 2."
    await run(store, when=3)
    await run(store, when=4)
    (alarm,) = await store.alarms.find({}, None, 10)
    assert (alarm.resolved_at, alarm.resolution) == (at(3), "The job succeeded.")
    assert await told(store) == ["ops: opened", "ops: resolved"]
    await run(store, code=1, when=5)
    assert await alarms(store) == [("failure", 2, False), ("failure", 1, True)]


async def test_a_failure_that_is_tried_again_is_no_alarm_yet(store: Store) -> None:
    await add_job(store, max_retries=1, retry_backoff={"initialSeconds": 0})
    await run(store, code=1)
    assert await alarms(store) == []


async def test_an_alarm_opens_and_is_over_within_one_batch_of_endings(store: Store) -> None:
    await add_job(store, notifications=TOLD)
    for second, code in enumerate((1, 0, 1), start=1):
        name = await start(store, now=at(second))
        await finish(store, name, ended(at(second), code=code))
    await store.statistics.count_all()
    assert await alarms(store) == [("failure", 1, False), ("failure", 1, True)]
    assert await told(store) == ["ops: opened", "ops: resolved", "ops: opened"]


async def test_who_is_told_comes_from_the_job_its_group_or_its_application(store: Store) -> None:
    await store.groups.create(group(defaults={"notifications": {"targets": ["of-group", "of-group"]}}), NOW)
    await store.alarms.put_defaults(
        ApplicationDefaults(application="shop", notifications=Notifications(targets=["of-application"])), NOW
    )
    await add_job(store, "own", group_name="exports", notifications={"targets": ["of-job"]})
    await add_job(store, "grouped", group_name="exports")
    await add_job(store, "plain")
    await add_job(store, "quiet", notifications={"targets": []})
    for name in ("own", "grouped", "plain", "quiet"):
        await run(store, code=1, job_name=name)
    assert await told(store) == ["of-job: opened", "of-group: opened", "of-application: opened"]


async def test_only_what_is_wanted_is_told(store: Store) -> None:
    await add_job(store, "a", notifications={**TOLD, "on": ["recovery"]})
    await add_job(store, "b", notifications={**TOLD, "on": ["failure"]})
    for name in ("a", "b"):
        await run(store, code=1, when=1, job_name=name)
        await run(store, when=2, job_name=name)
    assert await told(store) == ["ops: opened"]


async def test_a_skip_is_an_alarm_where_somebody_wants_it(store: Store) -> None:
    for name, on in (("export", ["skip"]), ("other", ["failure"])):
        await add_job(store, name, notifications={**TOLD, "on": on})
        await add_schedule(store, name, job_name=name)
    for minute in (1, 2, 3):
        await plan(store, at(60 * minute))
    await store.statistics.count_all()
    assert await alarms(store) == [("skip", 2, True)]
    assert await told(store) == ["ops: opened"]


async def test_what_a_schedule_leaves_out_on_purpose_is_no_alarm_for_it_or_what_runs_after_it(store: Store) -> None:
    told_of_skips: dict[str, Any] = {"notifications": {**TOLD, "on": ["skip"]}}
    await add_job(store, **told_of_skips)
    await add_job(store, "other", **told_of_skips)
    await store.jobs.create([job("below", depends_on=["export"], **told_of_skips)], NOW)
    await store.jobs.create([job("lowest", depends_on=["below", "other"], **told_of_skips)], NOW)
    await add_schedule(store, "s", exclude_dates=[NOW.date()])
    await add_schedule(store, "o", job_name="other", exclude_dates=[NOW.date()])
    await plan(store, at(60))
    for _ in range(3):
        await store.chains.follow(at(61), 10)
    await store.statistics.count_all()
    skips = [each.job_name for each in await store.triggers.find({"state": "skipped"}, None, 10)]
    assert sorted(skips) == ["below", "export", "lowest", "other"]
    assert await alarms(store) == []


async def test_what_is_skipped_because_an_upstream_failed_is_an_alarm(store: Store) -> None:
    await add_job(store)
    await store.jobs.create([job("below", depends_on=["export"], notifications={**TOLD, "on": ["skip"]})], NOW)
    await add_schedule(store)
    await plan(store, at(60))
    (launch,) = (await claim(store, at(60))).launches
    await finish(store, launch.name, ended(at(61), code=1))
    await store.chains.follow(at(62), 10)
    await store.statistics.count_all()
    assert await alarms(store, job_name="below") == [("skip", 1, True)]


async def test_a_job_that_never_ran_is_missed_and_its_first_success_resolves_that(store: Store) -> None:
    await add_job(store, expected_within_seconds=60, notifications=TOLD)
    await store.alarms.look(at(59))
    assert await alarms(store) == []
    await store.alarms.look(at(60))
    await store.alarms.look(at(65))
    (alarm,) = await store.alarms.find({}, None, 10)
    assert (alarm.kind, alarm.count, alarm.opened_at) == (AlarmKind.MISSED, 1, at(60))
    assert alarm.message == "It has not succeeded within 1 min, and never has. It has no schedule."
    await run(store, when=70)
    await store.alarms.look(at(129))
    assert await alarms(store) == [("missed", 1, False)]
    assert await told(store) == ["ops: opened", "ops: resolved"]
    await store.alarms.look(at(130))
    assert await alarms(store) == [("missed", 1, False), ("missed", 1, True)]


async def test_a_job_that_only_fails_is_missed_too(store: Store) -> None:
    await add_job(store, expected_within_seconds=60)
    await run(store, code=1, when=59)
    await store.alarms.look(at(60))
    assert await alarms(store) == [("failure", 1, True), ("missed", 1, True)]


async def test_a_missed_run_names_the_pause_that_somebody_made(store: Store) -> None:
    await store.groups.create(group(), NOW)
    await add_job(store, expected_within_seconds=60)
    await add_schedule(store, schedule_name="nightly", paused=True)
    await add_job(store, "grouped", expected_within_seconds=60, group_name="exports")
    await store.groups.put(group(paused=True), NOW)
    await store.alarms.look(at(60))
    messages = {each.job_name: each.message for each in await store.alarms.find({}, None, 10)}
    assert messages["export"].endswith("Its schedule nightly is paused.")
    assert messages["grouped"].endswith("Its group exports is paused.")


async def test_a_missed_run_is_over_when_the_job_is_expected_later(store: Store) -> None:
    await add_job(store, expected_within_seconds=60, notifications=TOLD)
    await store.alarms.look(at(60))
    await store.jobs.put(job(expected_within_seconds=600, notifications=TOLD), at(61))
    await store.alarms.look(at(65))
    (alarm,) = await store.alarms.find({}, None, 10)
    assert (alarm.resolved_at, alarm.resolution) == (at(65), "The job is expected later now.")
    await store.alarms.look(at(600))
    assert await alarms(store, is_open=True) == [("missed", 1, True)]


async def test_a_job_that_is_disabled_is_not_expected_and_counts_anew_when_it_is_enabled(store: Store) -> None:
    await add_job(store, expected_within_seconds=60)
    await store.alarms.look(at(60))
    await store.jobs.put(job(expected_within_seconds=60, enabled=False), at(61))
    await store.alarms.look(at(62))
    assert await alarms(store) == [("missed", 1, False)]
    await store.jobs.put(job(expected_within_seconds=60), at(1000))
    await store.alarms.look(at(1059))
    assert await alarms(store, is_open=True) == []
    await store.alarms.look(at(1060))
    assert await alarms(store, is_open=True) == [("missed", 1, True)]


async def test_the_alarms_of_a_deleted_job_are_over(store: Store) -> None:
    await add_job(store)
    await run(store, code=1)
    await store.jobs.delete("shop", "export", at(2), force=False)
    await store.alarms.look(at(3))
    assert await alarms(store) == [("failure", 1, False)]


async def test_an_attempt_that_runs_too_long_is_an_alarm_until_it_ends(store: Store) -> None:
    await add_job(store, notifications={**TOLD, "longRunSeconds": 10})
    name = await start(store)
    await store.alarms.look(at(10))
    assert await alarms(store) == []
    await store.alarms.look(at(11))
    await store.alarms.look(at(20))
    (alarm,) = await store.alarms.find({}, None, 10)
    assert (alarm.kind, alarm.count, alarm.trigger_id) == (AlarmKind.LONG_RUN, 1, name.rpartition("-")[0])
    await finish(store, name, ended(at(21)))
    await store.alarms.look(at(22))
    assert await alarms(store) == [("longRun", 1, False)]
    assert await told(store) == ["ops: opened", "ops: resolved"]


async def test_two_replicas_that_notice_the_same_open_it_once(store: Store, second: Store) -> None:
    await add_job(store, expected_within_seconds=60, notifications={**TOLD, "longRunSeconds": 10})
    await start(store)
    await asyncio.gather(*(each.alarms.look(at(60)) for each in (store, second) * 4))
    assert sorted(await alarms(store)) == [("longRun", 1, True), ("missed", 1, True)]
    assert await told(store) == ["ops: opened", "ops: opened"]


async def test_what_is_silenced_is_told_when_the_silence_is_over_if_it_is_still_wrong(store: Store) -> None:
    await add_job(store, notifications=TOLD)
    await add_job(store, "well-again", notifications=TOLD)
    await add_job(store, "taken-on", notifications=TOLD)
    await store.alarms.silence(SilenceRequest(application="shop", seconds=60, silenced_by="ada"), NOW)
    for name in ("export", "well-again", "taken-on"):
        await run(store, code=1, when=1, job_name=name)
    await run(store, when=2, job_name="well-again")
    (taken,) = await store.alarms.find({"job_name": "taken-on"}, None, 10)
    await store.alarms.acknowledge(Acknowledgement(alarm_id=taken.alarm_id, acknowledged_by="ada"), at(3))
    await store.alarms.look(at(59))
    assert await told(store) == []
    await store.alarms.look(at(60))
    await store.alarms.look(at(65))
    (notification,) = await store.outbox.find({}, None, 10)
    assert notification.job_name == "export"
    assert await store.alarms.silences(at(60)) == []


async def test_a_silence_is_replaced_and_can_be_ended(store: Store) -> None:
    for seconds in (60, 120):
        await store.alarms.silence(SilenceRequest(group_name="exports", seconds=seconds, silenced_by="ada"), NOW)
    (silence,) = await store.alarms.silences(NOW)
    assert (silence.group_name, silence.application, silence.until) == ("exports", None, at(120))
    await store.alarms.end_silence(None, None, "exports", NOW)
    with pytest.raises(SilenceNotFound):
        await store.alarms.end_silence(None, None, "exports", NOW)


async def test_an_alarm_is_acknowledged_while_it_is_open(store: Store) -> None:
    await add_job(store)
    await run(store, code=1)
    (alarm,) = await store.alarms.find({"is_open": True}, None, 10)
    by = Acknowledgement(alarm_id=alarm.alarm_id, acknowledged_by="ada", note="I see.")
    taken = await store.alarms.acknowledge(by, at(2))
    assert (taken.acknowledged_by, taken.acknowledged_at, taken.note) == ("ada", at(2), "I see.")
    await run(store, when=3)
    with pytest.raises(AlarmIsResolved):
        await store.alarms.acknowledge(by, at(4))
    with pytest.raises(AlarmNotFound):
        await store.alarms.acknowledge(by.model_copy(update={"alarm_id": "none"}), at(4))
    assert await store.alarms.open_count({}) == 0


async def test_an_applications_defaults_are_kept_until_they_are_deleted(store: Store) -> None:
    defaults = ApplicationDefaults(application="shop", notifications=Notifications(targets=["ops"]))
    await store.alarms.put_defaults(defaults, NOW)
    await store.alarms.put_defaults(defaults, at(1))
    assert await store.alarms.defaults({}, None, 10) == [defaults]
    assert await store.alarms.defaults({"application": "other"}, None, 10) == []
    await store.alarms.delete_defaults("shop", at(2))
    with pytest.raises(ApplicationNotFound):
        await store.alarms.delete_defaults("shop", at(2))


async def test_old_alarms_and_notifications_go_and_open_ones_stay(store: Store) -> None:
    await add_job(store, notifications=TOLD)
    await run(store, code=1, when=1)
    await run(store, when=2)
    await run(store, code=1, when=3)
    first, *_ = await take(store, at(4))
    assert await store.outbox.sent(first, "lease-1", at(5))
    await store.alarms.prune(at(10))
    await store.outbox.prune(at(10))
    assert await alarms(store) == [("failure", 1, True)]
    assert len(await told(store)) == 2


async def take(store: Store, now: Any, lease: str = "lease-1", busy: tuple[str, ...] = ()) -> list[Parcel]:
    """Claim for a minute."""
    until = now + timedelta(seconds=60)
    return (await store.outbox.claim(now, lease_id=lease, until=until, limit=10, busy=busy))[0]


async def test_two_replicas_never_send_the_same(store: Store, second: Store) -> None:
    for _ in range(20):
        await store.outbox.add_test("ops", NOW)
    taken = await asyncio.gather(take(store, NOW, "a"), take(second, NOW, "b"), take(store, NOW, "c"))
    ids = [each.notification_id for parcels in taken for each in parcels]
    ids += [each.notification_id for _ in range(2) for each in await take(second, NOW, "d")]
    assert len(ids) == len(set(ids)) == 20


async def test_what_a_dead_replica_held_is_sent_by_another_and_the_dead_one_cannot_mark_it(store: Store) -> None:
    await store.outbox.add_test("ops", NOW)
    (held,) = await take(store, NOW, "dead")
    assert await take(store, at(59), "living") == []
    (again,) = await take(store, at(60), "living")
    assert (again.notification_id, again.body, again.tries) == (held.notification_id, held.body, 2)
    assert not await store.outbox.sent(held, "dead", at(61))
    assert not await store.outbox.failed(held, "dead", at(61), "No.", None)
    assert await store.outbox.sent(again, "living", at(62))
    (notification,) = await store.outbox.find({}, None, 10)
    assert (notification.state, notification.finished_at) == (Delivery.SENT, at(62))


async def test_a_try_by_hand_takes_a_notification_from_who_held_it(store: Store) -> None:
    await store.outbox.add_test("ops", NOW)
    (held,) = await take(store, NOW, "slow")
    await store.outbox.try_again(held.notification_id, at(1))
    (again,) = await take(store, at(1), "other")
    assert (again.notification_id, again.tries) == (held.notification_id, held.tries)
    assert not await store.outbox.failed(held, "slow", at(2), "No.", None)
    assert await store.outbox.sent(again, "other", at(3))


async def test_what_a_replica_held_that_died_is_sent_as_soon_as_its_lease_is_over(store: Store) -> None:
    await store.replicas.beat(heartbeat("dead", NOW, lease_s=7))
    await store.outbox.add_test("ops", NOW)
    (held,) = await take(store, NOW, "dead")
    assert await take(store, at(6.9), "living") == []
    (again,) = await take(store, at(7), "living")
    assert again.notification_id == held.notification_id


async def test_a_target_is_told_that_an_alarm_opened_before_it_is_told_that_it_is_over(store: Store) -> None:
    await add_job(store, notifications=TOLD)
    await add_job(store, "other", notifications=TOLD)
    await run(store, code=1, when=1)
    (opened,) = await take(store, at(1))
    await run(store, when=2)
    await run(store, code=1, when=2, job_name="other")
    await store.outbox.failed(opened, "lease-1", at(2), "No.", at(60))
    (of_other,) = await take(store, at(3))
    assert json.loads(of_other.body)["subject"] == "shop/other"
    (opened,) = await take(store, at(60))
    assert opened.type == "clickclock.alarm.opened"
    assert await take(store, at(61)) == []
    await store.outbox.sent(opened, "lease-1", at(61))
    (resolved,) = await take(store, at(61))
    assert resolved.type == "clickclock.alarm.resolved"


async def test_that_an_alarm_is_over_is_told_although_that_it_opened_was_given_up(store: Store) -> None:
    await add_job(store, notifications=TOLD)
    await run(store, code=1, when=1)
    (opened,) = await take(store, at(1))
    await run(store, when=2)
    await store.outbox.failed(opened, "lease-1", at(2), "Gone.", None)
    assert [each.type for each in await take(store, at(3))] == ["clickclock.alarm.resolved"]


async def test_a_busy_target_is_passed_over_and_the_next_time_is_told(store: Store) -> None:
    for target in ("slow", "fast"):
        await store.outbox.add_test(target, NOW)
    assert [each.target for each in await take(store, NOW, busy=("slow",))] == ["fast"]
    (slow,) = await take(store, NOW)
    await store.outbox.failed(slow, "lease-1", at(1), "No.", at(6))
    parcels, next_at = await store.outbox.claim(at(2), lease_id="x", until=at(62), limit=10, busy=())
    assert (parcels, next_at) == ([], at(6))


async def test_a_dead_notification_says_why_and_is_tried_again_by_hand(store: Store) -> None:
    made = await store.outbox.add_test("ops", NOW)
    (parcel,) = await take(store, NOW)
    await store.outbox.failed(parcel, "lease-1", at(1), "Nobody is there.", None)
    (dead,) = await store.outbox.find({"state": Delivery.DEAD}, None, 10)
    assert (dead.notification_id, dead.last_error) == (made.notification_id, "Nobody is there.")
    assert await store.outbox.counts() == {Delivery.DEAD: 1}
    fresh = await store.outbox.try_again(made.notification_id, at(2))
    assert (fresh.state, fresh.tries, fresh.next_try_at) == (Delivery.PENDING, 0, at(2))
    (parcel,) = await take(store, at(2))
    await store.outbox.sent(parcel, "lease-1", at(3))
    with pytest.raises(NotificationIsSent):
        await store.outbox.try_again(made.notification_id, at(4))
    with pytest.raises(NotificationNotFound):
        await store.outbox.try_again("none", at(4))


async def test_a_notification_has_the_alarm_as_a_cloud_event(store: Store) -> None:
    await add_job(store, notifications=TOLD)
    trigger_id = await run(store, code=1)
    (parcel,) = await take(store, at(2))
    event = json.loads(parcel.body)
    assert (event["id"], event["type"]) == (parcel.notification_id, "clickclock.alarm.opened")
    assert (event["subject"], event["data"]["kind"]) == ("shop/export", "failure")
    assert event["data"]["triggerId"] == trigger_id
    assert event["data"]["message"] == "The command ended with exit code 1."


async def test_a_trigger_that_is_cancelled_says_nothing(store: Store) -> None:
    await add_job(store)
    await run(store, code=1, when=1)
    await store.triggers.cancel(await queue(store, now=at(2)), at(3))
    await store.statistics.count_all()
    assert await alarms(store) == [("failure", 1, True)]
