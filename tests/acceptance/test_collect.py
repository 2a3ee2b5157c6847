"""`clickclock collect` as its users start, stop and kill it, and what it answers real clients."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from clickclock.attribution.clicks.entry import EntryKind
from clickclock.attribution.files.order_tokens import OrderToken, write_order_tokens
from clickclock.attribution.journal import segments, slots
from tests.acceptance.clicking import (
    ORDER,
    Caller,
    Collect,
    call,
    children,
    click_path,
    collecting,
    entries,
    log_of,
    parent_of,
    ready,
    sighted,
    start,
    unsealed_lines,
    until,
)
from tests.crash.preloaded import disk
from tests.house.tree import ROOT
from tests.ports import free_port

TOKEN = "t0p"
ACCOUNTS = f"""
[[accounts]]
client_id = "shop-1"
orders_token_sha256 = "{sha256(TOKEN.encode()).hexdigest()}"

[[accounts]]
client_id = "shop-2"
profile = "observed"
orders_token_sha256 = "{sha256(b"other").hexdigest()}"

[[accounts.channel_rules]]
channel = "google"
parameter = "utm_source"
values = ["adwords"]
"""


def run_to_its_end(*options: str) -> subprocess.CompletedProcess[str]:
    """A `collect` that is expected to refuse."""
    return subprocess.run(
        [sys.executable, "-m", "clickclock.cli", "collect", *options],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": "src"},
        check=False,
    )


@pytest.fixture
def accounts_file(tmp_path: Path) -> str:
    file = tmp_path / "clickclock.toml"
    file.write_text(ACCOUNTS)
    return str(file)


def test_when_it_says_so_it_answers_and_all_its_processes_take_their_part(tmp_path: Path) -> None:
    with collecting(tmp_path, "--processes", "2") as collect:
        assert call(collect.url, "/healthz").status == 200
        assert len(collect.workers) == 2
        with ExitStack() as callers:
            for _ in range(60):
                caller = callers.enter_context(Caller(collect.url))
                assert caller.call(click_path()).status == 204
        total = "clickclock_journal_entries_total 60"  # a process counts right after it has answered
        until(lambda: total in call(collect.url, "/metrics").body.decode().splitlines(), "both have counted")
        assert collect.stop() == 0
    assert len({entry.id for entry in entries(tmp_path)}) == 60
    took_part = [slot.name for slot in slots(tmp_path / "journal") if segments(slot)]
    assert took_part == ["0", "1"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_gives_a_half_sent_request_its_answer(tmp_path: Path, number: int) -> None:
    with collecting(tmp_path) as collect, Caller(collect.url) as idle, Caller(collect.url) as slow:
        assert idle.call(click_path(cli_ubid="idle")).status == 204
        request = f"GET {click_path(cli_ubid='slow')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        slow.send(request[:40])
        until(lambda: "clickclock_connections 3" in call(collect.url, "/metrics").body.decode(), "both are connected")
        collect.process.send_signal(number)
        assert idle.answer() is None, "it drains: who asks nothing is closed"
        with pytest.raises(ConnectionRefusedError):
            Caller(collect.url)
        slow.send(request[40:])
        answer = slow.answer()
        assert answer is not None
        assert (answer.status, answer.headers["connection"]) == (204, "close")
        assert collect.process.wait(timeout=60) == 0
    assert [each.fields["identifier"] for each in sighted(tmp_path)] == ["idle", "slow"]
    assert unsealed_lines(tmp_path) == 0


@pytest.mark.needs("cc")
def test_a_stop_gives_clicks_that_wait_for_a_slow_disk_their_answers(tmp_path: Path) -> None:
    slow = disk(tmp_path, takes_ms=150)
    with collecting(tmp_path / "data", variables=slow) as collect, ExitStack() as opened:
        callers = [opened.enter_context(Caller(collect.url)) for _ in range(40)]
        for caller in callers:
            caller.ask(click_path())
        until(lambda: "clickclock_waiting 0" not in call(collect.url, "/metrics").body.decode(), "some wait")
        collect.process.terminate()
        answers = [caller.answer() for caller in callers]
        assert {answer and answer.status for answer in answers} == {204}
        assert collect.process.wait(timeout=60) == 0
    assert len(entries(tmp_path / "data")) == 40
    assert unsealed_lines(tmp_path / "data") == 0


def test_a_killed_process_is_replaced_while_connections_wait(tmp_path: Path) -> None:
    with collecting(tmp_path) as collect:
        for life in range(2):
            with Caller(collect.url) as kept:
                assert kept.call(click_path(cli_ubid=f"before-{life}")).status == 204
                (worker,) = collect.workers
                os.kill(worker, signal.SIGKILL)
                assert kept.answer() is None
            assert call(collect.url, click_path(cli_ubid=f"after-{life}")).status == 204
        assert collect.stop() == 0
    found = Counter(each.fields["identifier"] for each in sighted(tmp_path))
    assert found == Counter(f"{when}-{life}" for when in ("before", "after") for life in range(2))


def test_a_process_that_cannot_be_replaced_for_a_while_is_replaced_then(tmp_path: Path) -> None:
    with collecting(tmp_path) as collect:
        files = resource.prlimit(collect.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(collect.process.pid, resource.RLIMIT_NOFILE, (4, files[1]))
        (worker,) = collect.workers
        os.kill(worker, signal.SIGKILL)
        with Caller(collect.url) as waiting:
            waiting.ask(click_path())
            until(lambda: "collector 0 could not be started" in log_of(tmp_path).read_text(), "it was tried")
            resource.prlimit(collect.process.pid, resource.RLIMIT_NOFILE, files)
            answer = waiting.answer()
            assert answer is not None
            assert answer.status == 204
        assert collect.stop() == 0


def test_when_its_parent_is_killed_a_collector_ends_and_the_next_takes_over_at_once(tmp_path: Path) -> None:
    port = free_port()
    with collecting(tmp_path, port=port) as first, Caller(first.url) as slow:
        assert call(first.url, click_path(cli_ubid="first")).status == 204
        slow.send(b"GET /aclick?half=of HTTP/1.1\r\n")
        (orphan,) = first.workers
        first.kill()
        with collecting(tmp_path, port=port) as second:
            assert call(second.url, click_path(cli_ubid="second")).status == 204
            until(lambda: parent_of(orphan) is None, "it let go of the journal, so it ends")
            assert slow.answer() is None, "it does not wait for who never sends the rest: that would be a 408"
            assert "did not end in time" not in log_of(tmp_path).read_text(), "nor for as long as a drain may take"
            assert second.stop() == 0
    assert [each.fields["identifier"] for each in sighted(tmp_path)] == ["first", "second"]


def test_a_taken_port_is_refused_with_the_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_to_its_end("--data-dir", str(tmp_path), "--click-port", str(port))
    assert done.returncode == 1
    assert f"127.0.0.1:{port} cannot be listened on: Address already in use; give another --click-port." in done.stderr


def test_two_collectors_share_neither_a_port_nor_a_data_folder(tmp_path: Path) -> None:
    """They could share both: the one by SO_REUSEPORT, the other by waiting for the journal's lock for ever."""
    with collecting(tmp_path / "a") as collect:
        port = collect.url.rpartition(":")[2]
        done = run_to_its_end("--data-dir", str(tmp_path / "b"), "--click-port", port)
        assert (done.returncode, f"127.0.0.1:{port} cannot be listened on" in done.stderr) == (1, True), done.stderr
        done = run_to_its_end("--data-dir", str(tmp_path / "a"), "--click-port", "0")
        assert (done.returncode, "Another clickclock collects into" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("name", ["collectors-lock", "address-salt"])
def test_a_data_folder_that_cannot_be_used_is_refused_with_its_name(tmp_path: Path, name: str) -> None:
    data_dir = tmp_path / "data"
    (data_dir / name).mkdir(parents=True)
    done = run_to_its_end("--data-dir", str(data_dir), "--click-port", "0")
    assert done.returncode == 1
    assert f"data_dir: {data_dir / name}: " in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_in_the_place_of_its_folders_is_told_together_and_before_it_starts(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("a file")
    (tmp_path / "logs").symlink_to(tmp_path / "not mounted")
    done = run_to_its_end("--data-dir", str(tmp_path), "--click-port", "0")
    assert done.returncode == 1
    for name in ("journal", "logs"):
        assert f"data_dir: {tmp_path / name} is no folder; move it away" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kept", ["", "ab", "no salt"])
def test_a_salt_that_hides_nothing_is_refused(tmp_path: Path, kept: str) -> None:
    (tmp_path / "address-salt").write_text(kept)
    done = run_to_its_end("--data-dir", str(tmp_path), "--click-port", "0")
    assert done.returncode == 1
    assert "address-salt is not the 64 hex digits that were made" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reachable_address_needs_accounts_with_tokens(tmp_path: Path, accounts_file: str) -> None:
    reachable = ("--click-host", "0.0.0.0")  # noqa: S104 - what this test is about
    done = run_to_its_end("--data-dir", str(tmp_path / "data"), "--click-port", "0", *reachable)
    assert done.returncode == 1
    assert "anybody could send orders" in done.stderr
    assert "[[accounts]]" in done.stderr
    with collecting(tmp_path / "data", *reachable, "--config", accounts_file) as collect:
        assert collect.url.startswith("http://0.0.0.0:")
        assert call(collect.url, click_path()).status == 204


def test_at_a_reachable_address_clicks_are_everybodys_and_orders_need_a_token(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir(mode=0o700)
    write_order_tokens(data_dir / "order-tokens.json", {"c": [OrderToken(sha256(TOKEN.encode()).hexdigest())]})
    variables = {"CLICKCLOCK_AUTHENTICATION": "tokens"}
    with collecting(data_dir, "--click-host", "0.0.0.0", variables=variables) as collect:  # noqa: S104 (see above)
        assert call(collect.url, click_path()).status == 204
        fields = (f"Authorization: Bearer {TOKEN}",)
        taken = [call(collect.url, "/orders", *each, body=json.dumps(ORDER)).status for each in ((), fields)]
        other = call(collect.url, "/orders", *fields, body=json.dumps({**ORDER, "client_id": "never had one"}))
    assert [*taken, other.status] == [401, 202, 401]


def test_the_function_of_the_guide_notices_what_is_refused(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/register-clicks.md").read_text()
    function = page.split("```python\n", 1)[1].split("```", 1)[0]
    good = {"client_id": "c", "order_id": "7", "cli_ubid": "u", "event_time": 1_800_000_000_000, "amount": "9.90"}
    good["currency"] = "EUR"
    names: dict[str, Any] = {}
    with collecting(tmp_path / "data") as collect:
        exec(function.replace("http://127.0.0.1:8081", collect.url), names)  # noqa: S102 (what the guide tells people to run)
        names["send_orders"]([good])
        with pytest.raises(RuntimeError, match=r"Some orders are refused[^\n]*\norders\[1\]\.amount: "):
            names["send_orders"]([good, {**good, "order_id": "8", "amount": 9.9}])
        with pytest.raises(RuntimeError, match=r"The order is refused[^\n]*\nclient_id: [^\n]*\norder_id: "):
            names["send_orders"]([{"amount": "24.90"}])
        assert collect.stop() == 0
    assert [each.kind for each in entries(tmp_path / "data")] == [*"oorr"]


def test_accounts_decide_whose_clicks_and_orders_are_taken(tmp_path: Path, accounts_file: str) -> None:
    order = {"order_id": "7", "cli_ubid": "u", "event_time": 1_800_000_000_000, "amount": "9.90", "currency": "EUR"}

    def order_of(client_id: str, *fields: str) -> tuple[int, list[str]]:
        answer = call(collect.url, "/orders", *fields, body=json.dumps({"client_id": client_id, **order}))
        told = json.loads(answer.body)
        return answer.status, [each["status"] for each in told.get("results", [])]

    with collecting(tmp_path / "data", "--config", accounts_file) as collect:
        unknown = call(collect.url, click_path(client_id="shop-9", atag=None))
        assert (unknown.status, json.loads(unknown.body)["code"]) == (403, "unknownClient")
        assert [fault["field"] for fault in json.loads(unknown.body)["errors"]] == ["client_id", "atag"]
        assert call(collect.url, click_path(event_time=None)).status == 400
        assert call(collect.url, click_path(client_id="shop-2", event_time=None)).status == 204
        assert call(collect.url, click_path(client_id="shop-2", utm_source="google")).status == 204
        assert call(collect.url, click_path(client_id="shop-2", utm_source="AdWords")).status == 400
        assert order_of("shop-1")[0] == 401
        assert order_of("shop-1", "Authorization: Bearer wrong")[0] == 401
        assert order_of("shop-1", f"Authorization: Bearer {TOKEN}")[0] == 202
        assert order_of("shop-2", f"Authorization: Bearer {TOKEN}")[0] == 401
        assert collect.stop() == 0
    seen = [(each.seen.value, each.client_id, each.fields.get("kind")) for each in sighted(tmp_path / "data")]
    assert seen[:5] == [
        ("rejection", "shop-9", "unknownClient"),
        ("rejection", "shop-1", "invalid"),
        ("click", "shop-2", None),
        ("click", "shop-2", None),
        ("rejection", "shop-2", "invalid"),
    ]
    assert [each[:2] for each in seen if each[0] == "order"] == [("order", "shop-1")]
    assert TOKEN.encode() not in b"".join(
        path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()
    )


UCLID = (
    "2|r9sga6ewt7p9ps59stvm59gotyii6qht|0.0040838|1664429063646|12027|BRAND_AD_TAG|os_62e8d149a52d65.11278952"
    "|CPM|b_Samsung|387071|187752|197248|197248||3246|4408|"
)
GCLID = "EAItIQoxChMIiYfIzLff6AIVPSsrCh0hqwA2EAYEKCPAEgJ09vD_IwE"
DEVICE = "38400000-8cf0-11bd-b23e-10b96e40000d"
ANDROID = f"device_id={DEVICE}&client_id=shop-1&seller_id=77&device_id=from-the-link&utm_source=push"
DEEP_LINK = "name={a|b}&title=Fish & Chips = good&q=%7B%7D"
NODE = "client_id=shop-1&cli_ubid=u-1"


@dataclass(frozen=True)
class Real:
    """A request of a real client: its path, the flags it gets in `observed`, what `strict` names."""

    path: str
    flags: list[str]
    missing: list[str]
    values: dict[str, str]


REAL = {
    "an Android deep link": Real(
        f"/aclick?{ANDROID}&asvt=1|2&atag={{x|y}}&{DEEP_LINK}",
        ["eventTimeAbsent", "placeholder:name"],
        ["event_time"],
        {"device_id": DEVICE, "atag": "{x|y}", "title": "Fish ", " Chips ": " good", "q": "{}"},
    ),
    "an Android deep link without asvt": Real(
        f"/aclick?{ANDROID}&atag=t&{DEEP_LINK}",
        ["asvtAbsent", "eventTimeAbsent", "placeholder:name"],
        ["asvt", "event_time"],
        {},
    ),
    "an Android deep link without asvt and atag": Real(
        f"/aclick?{ANDROID}", ["asvtAbsent", "atagAbsent", "eventTimeAbsent"], ["asvt", "atag", "event_time"], {}
    ),
    "a Node tool": Real(
        f"/aclick/?uclid={UCLID.replace('|', '%7C')}&{NODE}&note=a+b",
        ["sponsored", "eventTimeAbsent"],
        ["seller_id", "asvt", "atag", "event_time"],
        {"uclid": UCLID, "note": "a b"},
    ),
    "a Node tool without a time": Real(
        f"/aclick/?uclid={UCLID.replace('|', '%7C')}&{NODE}&event_time=undefined",
        ["sponsored", "eventTimeAbsent", "placeholder:event_time"],
        ["seller_id", "asvt", "atag", "event_time"],
        {"uclid": UCLID},
    ),
    "a Node tool with a time": Real(
        f"/aclick/?uclid={UCLID.replace('|', '%7C')}&{NODE}&event_time=NOW",
        ["sponsored"],
        ["seller_id", "asvt", "atag"],
        {"uclid": UCLID},
    ),
    "a uclid as it is": Real(
        f"/aclick?uclid={UCLID}&{NODE}&event_time=NOW",
        ["sponsored"],
        ["seller_id", "asvt", "atag"],
        {"uclid": UCLID},
    ),
    "a Google click": Real(
        f"/aclick?{NODE}&seller_id=77&asvt=1&atag=t&event_time=NOW&utm_source=google&gclid={GCLID}",
        [],
        [],
        {"gclid": GCLID},
    ),
}


@pytest.fixture(scope="module", params=["strict", "observed"])
def of_profile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collect]:
    """One collector of each profile."""
    variables = {} if request.param == "strict" else {"CLICKCLOCK_CLICK_PROFILE": request.param}
    with collecting(tmp_path_factory.mktemp(request.param), variables=variables) as collect:
        yield collect


@pytest.mark.parametrize("name", REAL)
def test_a_request_of_a_real_client_is_answered_as_its_profile_says(name: str, of_profile: Collect) -> None:
    real, data_dir = REAL[name], of_profile.data_dir
    is_taken = data_dir.name.startswith("observed") or not real.missing
    path = real.path.replace("NOW", str(time.time_ns() // 1_000_000))
    there = len(entries(data_dir))
    raw = path.partition("?")[2].encode()
    # A space would end the target of a request; clients encode that one.
    wire = path.replace(" ", "%20")
    # Twice within milliseconds, as from two screens of the app.
    with Caller(of_profile.url) as caller:
        answers = [caller.call(wire) for _ in range(2)]
    kept = entries(data_dir)[there:]
    assert [entry.raw for entry in kept] == [raw.replace(b" ", b"%20")] * 2
    assert len({entry.id for entry in kept}) == 2
    shown = [each.fields for each in sighted(data_dir)[there:]]
    if is_taken:
        assert [(answer.status, answer.body) for answer in answers] == [(204, b"")] * 2
        assert {entry.kind for entry in kept} <= {EntryKind.CLICK, EntryKind.PLAIN_CLICK}
        assert sorted(shown[0]["flags"]) == sorted(real.flags)
    else:
        told = [json.loads(answer.body) for answer in answers]
        assert [(answer.status, each["code"]) for answer, each in zip(answers, told, strict=True)] == [
            (400, "invalid")
        ] * 2
        assert [fault["field"] for fault in told[0]["errors"]] == real.missing
        assert [each["requestId"] for each in told] == [entry.id for entry in kept]
        assert {entry.kind for entry in kept} == {EntryKind.REJECTION}
        assert [fault["field"] for fault in shown[0]["faults"]] == real.missing
    assert shown[0]["parameters"].items() >= real.values.items()


def test_a_google_click_without_its_gclid_is_refused_in_both_profiles(of_profile: Collect) -> None:
    answer = call(of_profile.url, click_path(utm_source="google", gclid="null"))
    assert answer.status == 400
    assert [fault["field"] for fault in json.loads(answer.body)["errors"]] == ["gclid"]


def test_a_collector_that_cannot_start_does_not_say_that_it_takes_clicks(tmp_path: Path) -> None:
    """It is tried again until it can."""
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "0").touch()
    process = start(tmp_path)
    try:
        tried: set[int] = set()

        def was_tried_twice() -> bool:
            tried.update(children(process.pid))
            return len(tried) >= 2

        until(was_tried_twice, "it was tried twice")
        (tmp_path / "journal" / "0").unlink()
        collect = ready(process, tmp_path)
        assert call(collect.url, click_path()).status == 204
        assert collect.stop() == 0
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
