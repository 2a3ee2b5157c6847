"""Requests that wait for the disk: who waits, who is sent away, what a failing disk means, and how it all ends."""

import errno
import json
import os
import re
import socket
import struct
from pathlib import Path

import pytest
from msgspec.structs import replace

from clickclock.attribution.api.limits import Limits
from clickclock.attribution.clicks.account import Profile
from clickclock.attribution.files.counters import SYNC_BOUNDS_S, Counters
from clickclock.attribution.journal import SYNC_BUCKETS_S
from tests.api.port import PATIENCE_S, Client, Gate, Port, get, post, query

LIMITS = Limits(drain_s=5.0)


def _reset(client: Client) -> None:
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


def _is_silent(client: Client) -> bool:
    """Whether nothing comes, for as long as it takes to be sure that the port has looked."""
    client.socket.settimeout(0.05)
    try:
        client.answer()
    except TimeoutError:
        client.socket.settimeout(PATIENCE_S)
        return True
    return False


def test_nothing_is_answered_before_the_sync_has_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    with Port(tmp_path, limits=LIMITS) as port, gate.before(monkeypatch), port.connect() as client:
        gate.close()
        client.send(get(query()) + get("seller_id=s") + get("/nothing"))
        assert _is_silent(client)
        gate.open()
        assert [client.answer().status for _ in range(3)] == [204, 400, 404]


def test_what_is_over_the_limit_is_sent_away_and_what_was_taken_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    with Port(tmp_path, limits=replace(LIMITS, waiting_max=5)) as port, gate.before(monkeypatch):
        gate.close()
        clients = [port.connect().send(get(query(cli_ubid=number))) for number in range(5)]
        port.until("clickclock_waiting", 5)
        for said in (get(query(cli_ubid="over")), post("/orders", b"{}"), get("/appsflyer?event_name=viewproduct")):
            heard = port.ask(said)
            assert (heard.status, heard.fields["retry-after"]) == (503, "1")
            assert json.loads(heard.body)["code"] == "unavailable"
        gate.open()
        assert [client.answer().status for client in clients] == [204] * 5
        assert port.ask(get(query(cli_ubid="later"))).status == 204
        assert port.number('clickclock_refused_total{limit="waiting"}') == 3
    kept = [entry.raw.split(b"&")[1] for entry in port.entries()]
    assert sorted(kept) == sorted([*(b"cli_ubid=u%d" % number for number in range(5)), b"cli_ubid=later"])


def test_a_failing_disk_is_503_and_recovers_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    with Port(tmp_path, limits=LIMITS) as port, gate.before(monkeypatch), port.connect() as client:
        assert client.ask(get(query(cli_ubid="before"))).status == 204
        assert client.ask(get("/healthz")).status == 200
        gate.break_disk()
        said = get(query(cli_ubid="lost"))
        client.send(said + get("/nothing") + get("seller_id=s") + post("/orders", b"{}") + said)
        answers = [client.answer() for _ in range(5)]
        assert [heard.status for heard in answers] == [503, 404, 503, 503, 503]
        assert answers[0].fields["retry-after"] == "1"
        assert "disk" in json.loads(answers[0].body)["message"]
        port.until_health_is(503)
        assert client.send(get(query(), method="HEAD")).answer(to_head=True).status == 503
        gate.mend()
        assert client.ask(get(query(cli_ubid="after"))).status == 204
        port.until_health_is(200)
    kept = [entry.raw.split(b"&")[1] for entry in port.entries()]
    assert kept == [b"cli_ubid=before", b"cli_ubid=after"]


def test_a_client_that_leaves_before_the_sync_has_its_click_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    with Port(tmp_path, limits=LIMITS) as port, gate.before(monkeypatch):
        gate.close()
        staying = port.connect().send(get(query(cli_ubid=0)))
        leaving = [port.connect().send(get(query(cli_ubid=number))) for number in range(1, 4)]
        port.until("clickclock_waiting", 4)
        _reset(leaving[0])
        leaving[1].socket.close()
        leaving[2].socket.shutdown(socket.SHUT_WR)
        port.until("clickclock_connections", 4)  # one is gone, two have ended their side, one asks
        gate.open()
        assert staying.answer().status == leaving[2].answer().status == 204
        assert leaving[2].is_ended()
        assert port.number('clickclock_clicks_total{profile="strict"}') == 4
    assert len(port.entries()) == 4


def test_a_client_that_sends_on_and_on_is_read_no_further_than_it_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    count = 500
    limits = replace(LIMITS, pipelined_max=8)
    with Port(tmp_path, limits=limits) as port, gate.before(monkeypatch):
        client, another = port.connect(), port.connect()
        assert client.ask(get(query())).status == another.ask(get(query())).status == 204
        gate.close()
        client.send(b"".join(get(query(cli_ubid=number)) for number in range(count)))
        for number in range(20):  # one at a time, each in a packet of its own
            another.send(get(query(cli_ubid=number)))
        port.until("clickclock_waiting", 16)
        gate.open()
        assert {client.answer().status for _ in range(count)} == {204}
        assert {another.answer().status for _ in range(20)} == {204}
    assert len(port.entries()) == count + 22


@pytest.mark.parametrize("target", ["/nothing", "/metrics", "/clickclock.js"])
def test_who_asks_for_much_at_once_lets_the_others_go_first(tmp_path: Path, target: str) -> None:
    count = 100
    with Port(tmp_path, limits=LIMITS) as port:
        greedy, other = port.connect(), port.connect()
        before = greedy.ask(get(target)).status
        assert other.ask(get(query())).status == 204
        with port.held():
            greedy.send(get(target) * count)
            other.send(get("/metrics"))
        answered = re.search(rf'clickclock_responses_total{{status="{before}"}} (\d+)', other.answer().body.decode())
        assert answered is not None
        assert int(answered[1]) < 10
        assert {greedy.answer().status for _ in range(count)} == {before}


def test_orders_under_way_are_bounded_however_short_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    many, one = post("/orders", b"[%s]" % b",".join([b"{}"] * 60)), post("/orders", b"{}")
    with Port(tmp_path, limits=replace(LIMITS, orders_max=100)) as port, gate.before(monkeypatch):
        gate.close()
        taken = [port.connect().send(many), *(port.connect().send(one) for _ in range(40))]
        port.until("clickclock_waiting", 100)
        for request in (many, one):
            heard = port.ask(request)
            assert (heard.status, json.loads(heard.body)["code"]) == (503, "unavailable")
            assert "retry-after" in heard.fields
        click = port.connect().send(get(query()))
        gate.open()
        assert {client.answer().status for client in taken} == {422}
        assert click.answer().status == 204
        assert port.ask(many).status == 422
    assert len(port.entries()) == 161


def test_bodies_that_end_at_the_same_time_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, body = Gate(), b'{"order_id": "%b"}' % (b"7" * 400)
    limits = replace(LIMITS, bodies_bytes_max=5 * len(body) // 2)
    with Port(tmp_path, limits=limits) as port, gate.before(monkeypatch):
        clients = [port.connect() for _ in range(8)]
        assert {client.ask(get("/nothing")).status for client in clients} == {404}
        gate.close()
        with port.held():
            for client in clients:
                client.send(post("/orders", body))
        port.until('clickclock_responses_total{status="503"}', 6)
        gate.open()
        assert sorted(client.answer().status for client in clients) == [422] * 2 + [503] * 6
    assert len(port.entries()) == 2


def test_the_order_to_stop_lets_everybody_have_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    with Port(tmp_path, limits=LIMITS) as port, gate.before(monkeypatch):
        idle, half = port.connect(), port.connect().send(get(query())[:50])
        assert idle.ask(get("/nothing")).status == 404
        gate.close()
        waiting = [port.connect().send(get(query(cli_ubid=number))) for number in range(10)]
        gone = port.connect().send(get(query(cli_ubid="gone")))
        port.until("clickclock_waiting", 11)
        _reset(gone)
        port.begin_to_stop()
        assert idle.is_ended()
        while not port.is_refusing():
            pass
        half.send(get(query())[50:])
        gate.open()
        assert [client.answer().status for client in waiting] == [204] * 10
        assert all(client.is_ended() for client in waiting)
        heard = half.answer()
        assert (heard.status, heard.fields["connection"]) == (204, "close")
        port.stop()
    assert len(port.entries()) == 12


def test_who_never_ends_his_request_cannot_keep_it_from_stopping(tmp_path: Path) -> None:
    with Port(tmp_path, limits=replace(LIMITS, drain_s=0.1)) as port:
        half = port.connect().send(b"GET /aclick HTTP/1.1\r\n")
        assert port.ask(get(query())).status == 204
        port.stop()
        assert half.is_ended()


def test_the_numbers_of_all_processes_are_one(tmp_path: Path) -> None:
    with Port(tmp_path) as first, Port(tmp_path, slot="1", profile=Profile.OBSERVED) as second:
        for port, count in ((first, 3), (second, 5)):
            with port.connect() as client:
                assert {client.ask(get(query())).status for _ in range(count)} == {204}
        assert second.ask(get(query(event_time=None))).status == 204
        assert first.ask(get("seller_id=s")).status == 400
        for port in (first, second):
            port.until('clickclock_responses_total{status="400"}', 1)
            port.until('clickclock_responses_total{status="204"}', 9)
            assert port.number('clickclock_clicks_total{profile="strict"}') == 3
            assert port.number('clickclock_clicks_total{profile="observed"}') == 6
            assert port.number('clickclock_click_flags_total{flag="eventTimeAbsent"}') == 1
            assert port.number('clickclock_rejections_total{what="click"}') == 1
            assert port.number('clickclock_faults_total{reason="missing"}') == 5
            assert port.number('clickclock_start_time_seconds{slot="1"}') > 0
        first.stop()
        # What it counted stays, and is gone on with; what it was doing does not.
        assert second.number('clickclock_clicks_total{profile="strict"}') == 3
        assert second.number("clickclock_connections") == 1
        with Port(tmp_path) as again:
            assert again.ask(get(query())).status == 204
            # An answer is counted when those that go out together have gone.
            second.until('clickclock_clicks_total{profile="strict"}', 4)
            assert second.number("clickclock_journal_entries_total") == 11
            assert second.number("clickclock_sync_seconds_count") <= 11 + 2
            # Each entry waited at least as long as the disk took, whoever it came together with.
            assert second.number("clickclock_kept_seconds_count") == 11
            assert second.number("clickclock_kept_seconds_sum") > 0


def test_the_page_of_numbers_is_one_that_prometheus_reads(tmp_path: Path) -> None:
    with Port(tmp_path) as port:
        assert port.ask(get(query())).status == 204
        heard = port.ask(get("/metrics"))
        assert heard.fields["content-type"].startswith("text/plain; version=0.0.4")
        kinds: dict[str, str] = {}
        for line in heard.body.decode().splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                kinds[name] = kind
            elif not line.startswith("#"):
                sample, number = line.rsplit(" ", 1)
                name = sample.partition("{")[0]
                base = name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
                assert kinds.get(name, kinds.get(base)) in {"counter", "gauge", "histogram"}
                assert float(number) >= 0
        assert set(kinds.values()) == {"counter", "gauge", "histogram"}


def test_the_buckets_are_those_of_the_journal_that_measures() -> None:
    assert SYNC_BOUNDS_S == SYNC_BUCKETS_S


def test_numbers_of_another_version_are_not_misread(tmp_path: Path) -> None:
    (tmp_path / "counters").write_bytes(b"\x01" * 100)
    counters = Counters(tmp_path, 5)
    assert not any(counters.cells[3:])
    counters.close()


def test_a_disk_without_room_for_the_numbers_costs_the_numbers_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    counters = Counters(tmp_path, 5)
    assert not any(counters.cells[3:])
    counters.close()
