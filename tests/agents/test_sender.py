"""The sender and the doubles of both networks: what counts there, what is noted here, and what comes again."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from clickclock.app.sending import send, waiting
from clickclock.attribution.agents.sender import Sent
from clickclock.attribution.files.sent_log import NAME, SentLog
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import Conflict, Invalid
from tests import networks as doubles
from tests.networks import Networks, networks

HEAD = "Parameters:TimeZone=Europe/Berlin\n"
CONVERSIONS = f"{HEAD}Google Click ID,Conversion Name,Conversion Time,Conversion Value,Conversion Currency,Order ID\n"
ADJUSTMENTS = f"{HEAD}Order ID,Conversion Name,Adjustment Time,Adjustment Type,Adjusted Value,Adjusted Value Currency\n"
AT = "2026-11-21 05:20:00"
SECRETS = {
    "token": doubles.TOKEN,
    "developer": doubles.DEVELOPER,
    "client-secret": doubles.SECRET,
    "refresh": doubles.REFRESH,
}


@pytest.fixture
def double() -> Iterator[Networks]:
    with networks() as standing:
        yield standing


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    folder = tmp_path / "data/exports"
    folder.mkdir(parents=True)
    for name, secret in SECRETS.items():
        (tmp_path / name).write_text(f"{secret}\n")
    return folder


def tables(folder: Path, double: Networks, **changes: Any) -> list[dict[str, Any]]:
    secrets = folder.parents[1]
    meta = {"dataset_id": doubles.DATASET, "token_file": str(secrets / "token"), "api_url": double.url}
    google = {
        "customer_id": "123-456-7890",
        "conversion_action_id": doubles.ACTION,
        "developer_token_file": str(secrets / "developer"),
        "oauth_client_id": "oauth-1",
        "oauth_client_secret_file": str(secrets / "client-secret"),
        "refresh_token_file": str(secrets / "refresh"),
        "api_version": "v24",
        "api_url": double.url,
        "token_url": f"{double.url}/token",
    }
    return [{"meta": meta | changes.get("meta", {}), "google": google | changes.get("google", {})}]


def config_of(folder: Path, double: Networks, **changes: Any) -> Config:
    return Config.model_validate({"data_dir": folder.parent, "send": tables(folder, double, **changes)})


def meta_file(folder: Path, number: int, ids: list[str], *, age_s: int = 60, client: str = "shop-1") -> str:
    name = f"meta-{client}-{number:06}-1f3a9c2e-0001-events.json"
    events = [
        {
            "event_name": "Purchase",
            "event_time": int(SystemClock().now().timestamp()) - age_s,
            "event_id": each,
            "custom_data": {"value": 24.90},
        }
        for each in ids
    ]
    (folder / name).write_text(json.dumps({"data": events}))
    return name


def google_file(folder: Path, number: int, rows: list[str], *, kind: str = "conversions") -> str:
    name = f"google-shop-1-{number:06}-1f3a9c2e-0001-{kind}.csv"
    (folder / name).write_text(
        (CONVERSIONS if kind == "conversions" else ADJUSTMENTS) + "".join(f"{row}\n" for row in rows)
    )
    return name


def row(order_id: str, gclid: str = "EAIa") -> str:
    return f"{gclid},Order,2026-10-25 02:30:00+0100,24.90,EUR,{order_id}"


def only(sent: list[Sent]) -> Sent:
    assert len(sent) == 1
    return sent[0]


def test_files_are_sent_once_and_say_what_they_said(exports: Path, double: Networks) -> None:
    meta_file(exports, 1, ["A-1", "A-2"])
    google_file(exports, 1, [row("A-1"), row("A-3", "")])
    config = config_of(exports, double)
    assert [(each.taken, each.left) for each in send(config)] == [(2, 0), (2, 0)]
    assert set(double.meta) == {"A-1", "A-2"}
    assert double.google["A-1"] == {
        "gclid": "EAIa",
        "conversionAction": "customers/1234567890/conversionActions/9",
        "conversionDateTime": "2026-10-25 02:30:00+01:00",
        "conversionValue": 24.90,
        "currencyCode": "EUR",
        "orderId": "A-1",
    }
    assert "gclid" not in double.google["A-3"]
    asked = len(double.requests)
    assert send(config) == []
    assert waiting(config) == []
    assert len(double.requests) == asked


def test_consent_is_sent_where_the_click_said_it(exports: Path, double: Networks) -> None:
    name = google_file(exports, 1, [f"{row('A-1')},Granted", f"{row('A-2')},"])
    head = CONVERSIONS.removesuffix("\n")
    (exports / name).write_text((exports / name).read_text().replace(head, f"{head},Ad User Data"))
    send(config_of(exports, double))
    consents = {name: told.get("consent") for name, told in double.google.items()}
    assert consents == {"A-1": {"adUserData": "GRANTED"}, "A-2": None}


def test_leads_are_sent_as_conversions_of_their_own(exports: Path, double: Networks) -> None:
    google_file(exports, 1, [row("A-1"), row("A-2").replace(",Order,", ",Lead,")])
    leads = meta_file(exports, 1, ["A-2"])
    (exports / leads).rename(exports / leads.replace("meta-", "meta.lead-"))
    given = {"data_dir": exports.parent, "conversion": [{"kind": "lead", "google_name": "Lead", "meta_event": "Lead"}]}
    ids = {"conversion_action_ids": {"Lead": doubles.LEADS}}
    config = Config.model_validate(given | {"send": tables(exports, double, google=ids)})
    assert [(each.network, each.taken) for each in send(config)] == [("google", 2), ("meta", 1)]
    actions = {name: told["conversionAction"].rpartition("/")[2] for name, told in double.google.items()}
    assert (actions, set(double.meta)) == ({"A-1": doubles.ACTION, "A-2": doubles.LEADS}, {"A-2"})


def test_no_secret_is_in_an_address_or_in_the_log_of_what_was_sent(exports: Path, double: Networks) -> None:
    meta_file(exports, 1, ["A-1"])
    google_file(exports, 1, [row("A-1")])
    send(config_of(exports, double))
    told = " ".join(double.paths) + (exports / NAME).read_text()
    assert not [secret for secret in [*SECRETS.values(), doubles.ACCESS] if secret in told]
    assert "A-1" not in (exports / NAME).read_text()


def test_adjustments_come_after_the_conversions_that_they_adjust(exports: Path, double: Networks) -> None:
    google_file(exports, 1, [row("A-1"), row("A-2")])
    adjusted = [f"A-1,Order,{AT},RESTATE,12.40,EUR", f"A-2,Order,{AT},RETRACT,,"]
    google_file(exports, 2, adjusted, kind="adjustments")
    send(config_of(exports, double))
    restated, retracted = double.adjusted
    assert restated["restatementValue"] == {"adjustedValue": 12.40, "currencyCode": "EUR"}
    assert restated["adjustmentDateTime"] == "2026-11-21 05:20:00+01:00"
    assert (retracted["adjustmentType"], retracted["orderId"]) == ("RETRACTION", "A-2")


@pytest.mark.parametrize(
    "refusal",
    [
        (429, {"error": {"code": 4, "message": "Application request limit reached"}}, {"Retry-After": "7"}),
        (503, {}, {}),
        (400, {"error": {"code": 2, "message": "Service unavailable", "is_transient": True}}, {}),
    ],
)
def test_what_is_throttled_is_left_and_sent_later(
    exports: Path, double: Networks, refusal: tuple[int, dict[str, Any], dict[str, str]]
) -> None:
    meta_file(exports, 1, ["A-1"])
    meta_file(exports, 2, ["A-2"])
    config = config_of(exports, double)
    double.answers = [refusal]
    sent = only(send(config))
    assert (sent.left, sent.is_refused) == (1, False)
    assert str(refusal[0]) in sent.sentence
    assert double.meta == {}
    assert [each.taken for each in send(config)] == [1, 1]
    assert set(double.meta) == {"A-1", "A-2"}


def test_one_bad_event_costs_itself_alone(exports: Path, double: Networks) -> None:
    ids = [f"A-{number}" for number in range(30)]
    meta_file(exports, 1, [*ids[:17], "bad", *ids[17:]])
    sent = only(send(config_of(exports, double)))
    assert (sent.taken, dict(sent.refused), sent.left) == (30, {"code_100": 1}, 0)
    assert set(double.meta) == set(ids)


def test_one_bad_conversion_costs_itself_alone(exports: Path, double: Networks) -> None:
    google_file(exports, 1, [row("A-1"), row("A-2", "unknown"), row("A-3")])
    sent = only(send(config_of(exports, double)))
    assert (sent.taken, dict(sent.refused)) == (2, {"CLICK_NOT_FOUND": 1})


def test_events_of_more_than_seven_days_are_left_out(exports: Path, double: Networks) -> None:
    meta_file(exports, 1, ["A-1"], age_s=7 * 86_400 + 60)
    sent = only(send(config_of(exports, double)))
    assert dict(sent.refused) == {"too_old": 1}
    assert double.requests == []
    assert send(config_of(exports, double)) == []


@pytest.mark.parametrize(
    ("changes", "network", "said"),
    [
        ({"meta": {"dataset_id": "78"}}, "meta", "Unsupported post request"),
        ({"google": {"conversion_action_id": "8"}}, "google", "INVALID_CONVERSION_ACTION"),
        ({"google": {"customer_id": "1234567891"}}, "google", "NOT_FOUND"),
        ({"google": {"oauth_client_id": "another"}}, "google", "invalid_grant"),
        ({"google": {"login_customer_id": "6666666666"}}, "google", "PERMISSION_DENIED"),
    ],
)
def test_wrong_settings_lose_nothing_and_are_named(
    exports: Path, double: Networks, changes: dict[str, Any], network: str, said: str
) -> None:
    if network == "meta":
        meta_file(exports, 1, ["A-1", "A-2"])
    else:
        google_file(exports, 1, [row("A-1"), row("A-2")])
    sent = only(send(config_of(exports, double, **changes)))
    assert (sent.left, sent.is_refused) == (2, True)
    assert said in sent.sentence
    assert [each.taken for each in send(config_of(exports, double))] == [2]


def test_when_all_are_refused_one_by_one_it_is_not_they_who_are_bad(exports: Path, double: Networks) -> None:
    meta_file(exports, 1, [f"bad-{number}" for number in range(64)])
    sent = only(send(config_of(exports, double)))
    assert (sent.left, sent.is_refused) == (64, True)
    assert len(double.requests) < 20
    assert not (exports / NAME).exists()


def test_a_client_with_a_table_of_its_own_is_sent_there(exports: Path, double: Networks) -> None:
    meta_file(exports, 1, ["A-1"], client="shop-1")
    meta_file(exports, 1, ["B-1"], client="caf%C3%A9")
    [table] = tables(exports, double)
    own = {"client_id": "café", "meta": {**table["meta"], "test_event_code": "TEST1"}}
    send(Config.model_validate({"data_dir": exports.parent, "send": [{"meta": table["meta"]}, own]}))
    codes = {said["data"][0]["event_id"]: said.get("test_event_code") for _, said in double.requests}
    assert codes == {"A-1": None, "B-1": "TEST1"}


def test_of_many_conversions_each_part_is_noted_for_itself(exports: Path, double: Networks) -> None:
    google_file(exports, 1, [row(f"A-{number}") for number in range(4500)])
    config = config_of(exports, double)
    taken = send(Config.model_validate({**config.model_dump(), "send": tables(exports, double)}), networks=["meta"])
    assert taken == []
    double.after = lambda: double.answers.append((500, {}, {})) if len(double.requests) == 2 else None
    sent = only(send(config))
    assert (sent.taken, sent.left) == (4000, 500)
    double.after = lambda: None
    assert only(send(config)).taken == 500
    sizes = [len(said["conversions"]) for _, said in double.requests]
    assert sizes == [2000, 2000, 500, 500]


def test_a_file_that_an_erasure_changed_is_sent_again(exports: Path, double: Networks) -> None:
    name = google_file(exports, 1, [row("A-1"), row("A-2")])
    config = config_of(exports, double)
    double.answers = [(500, {}, {})]
    send(config)
    google_file(exports, 1, [row("A-2")])
    assert only(send(config)).taken == 1
    assert set(double.google) == {"A-2"}
    assert SentLog(exports).is_sent(name, (exports / name).stat().st_size)


def test_a_note_that_was_cut_off_counts_as_none(exports: Path, double: Networks) -> None:
    meta_file(exports, 1, ["A-1"])
    config = config_of(exports, double)
    send(config)
    log = exports / NAME
    whole = log.read_bytes()
    log.write_bytes(whole[:-5])
    assert only(send(config)).taken == 1
    assert json.loads(log.read_text())["taken"] == 1
    assert len(double.meta) == 1


def test_two_at_once_and_a_missing_secret_are_refused(exports: Path, double: Networks) -> None:
    meta_file(exports, 1, ["A-1"])
    config = config_of(exports, double)

    def again() -> None:
        with pytest.raises(Conflict, match="Another program sends"):
            send(config)

    double.after = again
    assert only(send(config)).taken == 1
    meta_file(exports, 2, ["A-2"])
    (exports.parents[1] / "token").write_text("two\nlines")
    with pytest.raises(Invalid, match="not one line"):
        send(config)
    (exports.parents[1] / "token").unlink()
    with pytest.raises(Invalid, match="cannot be read"):
        send(config)
    with pytest.raises(Invalid, match=r"\[\[send\]\]"):
        send(Config(data_dir=exports.parent))


def test_killed_between_the_answer_and_the_note_nothing_is_lost_or_counted_twice(
    exports: Path, double: Networks
) -> None:
    meta_file(exports, 1, ["A-1", "A-2"])
    google_file(exports, 1, [row("A-1"), row("A-2")])
    settings = exports.parents[1] / "clickclock.toml"
    [table] = tables(exports, double)
    settings.write_text(
        "[[send]]\n"
        + "".join(
            f"[send.{network}]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in table[network].items())
            for network in ("google", "meta")
        )
    )
    command = [sys.executable, "-m", "clickclock.cli", "attribution", "send", "--json", "--config", str(settings),
               "--data-dir", str(exports.parent)]  # fmt: skip
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        double.after = partial(os.kill, process.pid, signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
        process.communicate()
    double.after = lambda: None
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [each["taken"] for each in json.loads(ended.stdout)["files"]] == [2, 2]
    assert (set(double.google), set(double.meta)) == ({"A-1", "A-2"}, {"A-1", "A-2"})
    assert json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) == {"files": []}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "give [send.meta], [send.google] or both"),
        ({"meta": {"dataset_id": "seven", "token_file": "t"}}, "dataset_id"),
        ({"google": {"customer_id": "12"}}, "customer_id"),
    ],
)
def test_a_table_that_says_too_little_is_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match="send") as refused:
        Config.model_validate({"send": [table]})
    assert said in str(refused.value)
    twice = {"meta": {"dataset_id": "7", "token_file": "t"}}
    with pytest.raises(ValueError, match="two tables send all clients to meta"):
        Config.model_validate({"send": [twice, twice]})


LEAD = {"kind": "lead", "meta_event": "Lead"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"conversion": [{"kind": "lead"}]}, "give meta_event, google_name or both"),
        ({"conversion": [{**LEAD, "kind": "purchase"}]}, "purchases are exported without a table"),
        ({"conversion": [{**LEAD, "kind": "Sign up"}]}, "conversion.0.kind"),
        ({"conversion": [LEAD, LEAD]}, "two tables are about the kind lead; leave one"),
        ({"conversion": [{**LEAD, "meta_event": " Lead"}]}, "' Lead' has spaces around it"),
        (
            {"conversion": [{"kind": "lead", "google_name": "Order"}]},
            "Order is the google_conversion_name of purchases",
        ),
        ({"conversion": [{"kind": "lead", "google_name": "L"}], "send": True}, "lacks the number of L; add it"),
        ({"send": True, "ids": {"Laed": "7"}}, "no [[conversion]] table has the google_name Laed"),
        ({"send": True, "ids": {"Lead": "seven"}}, "conversion_action_ids"),
    ],
)
def test_a_conversion_that_is_half_configured_is_refused(
    exports: Path, double: Networks, settings: dict[str, Any], said: str
) -> None:
    ids = {"conversion_action_ids": settings.pop("ids", {})}
    if settings.get("send"):
        settings["send"] = tables(exports, double, google=ids)
    with pytest.raises(ValueError, match=re.escape(said)):
        Config.model_validate(settings)
