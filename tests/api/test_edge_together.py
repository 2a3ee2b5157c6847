"""Clients that repeat themselves: their clicks are taken together, and each is answered as if it were alone."""

import socket
from pathlib import Path

import pytest
from msgspec.structs import replace

from clickclock.attribution.api.limits import Limits
from clickclock.attribution.clicks.account import Profile
from clickclock.attribution.clicks.entry import JUDGED, TOGETHER_MAX
from clickclock.attribution.clicks.query import split
from clickclock.attribution.clicks.template import SEEN_MIN
from tests.api.port import Client, Gate, Port, get, query

LIMITS = Limits(drain_s=5.0)
WARM = 3
"""After so many clicks a client is known to repeat itself."""


def _repeating(port: Port, count: int) -> list[Client]:
    clients = [port.connect() for _ in range(count)]
    for number in range(max(WARM, SEEN_MIN // count + 1)):
        for client in clients:
            assert client.ask(get(query(cli_ubid=f"warm{number}"))).status == 204
    return clients


def _users(port: Port) -> list[str]:
    every = [split(entry.raw.replace(b" ", b"")).get("cli_ubid", "") for entry in port.entries()]
    return sorted(user for user in every if user and not user.startswith("warm"))


def test_many_at_once_are_kept_once_each_and_every_client_hears_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    count = TOGETHER_MAX + 50
    with Port(tmp_path, limits=LIMITS) as port, gate.before(monkeypatch):
        clients = _repeating(port, count)
        gate.close()
        wanted = {}
        for number, client in enumerate(clients):
            match number % 5:
                case 0:
                    said, wanted[client] = get(query(cli_ubid=number, seller_id=None)), 400
                case 1:
                    said, wanted[client] = get(query(cli_ubid=number)).replace(b"&asvt", b"& asvt"), 400
                case 2:
                    said, wanted[client] = get(query(cli_ubid=number, extra=1)), 204
                case _:
                    said, wanted[client] = get(query(cli_ubid=number)), 204
            client.send(said)
        port.until("clickclock_waiting", count)
        gate.open()
        assert {client: client.answer().status for client in clients} == wanted
        assert _users(port) == sorted(f"u{number}" for number in range(count))
        entries = port.entries()
        assert len({entry.id for entry in entries}) == len(entries)
        assert {(len(entry.id), entry.id[12], entry.id[16] in "89ab") for entry in entries} == {(32, "7", True)}
        assert port.number('clickclock_responses_total{status="204"}') == sum(entry.kind in "cC" for entry in entries)


def test_each_keeps_its_own_profile_and_what_is_flagged_is_so(tmp_path: Path) -> None:
    with Port(tmp_path, limits=LIMITS, profile=Profile.OBSERVED) as port:
        (client,) = _repeating(port, 1)
        assert client.ask(get(query(cli_ubid="plain"))).status == 204
        assert client.ask(get(query(cli_ubid="flagged", event_time=None))).status == 204
        assert client.ask(get(query(cli_ubid="stale", event_time=1_000_000_000_000))).status == 204
        kept = port.entries()[-3:]
    assert [(entry.kind, entry.detail) for entry in kept] == [
        ("c", b"observed" + JUDGED.encode()),
        ("C", b"observed"),
        ("C", b"observed"),
    ]


def test_when_the_disk_fails_all_of_them_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    with Port(tmp_path, limits=LIMITS) as port, gate.before(monkeypatch):
        clients = _repeating(port, 40)
        gate.break_disk()
        for number, client in enumerate(clients):
            client.send(get(query(cli_ubid=number)))
        assert [client.answer().status for client in clients] == [503] * 40
        gate.mend()
        assert [client.ask(get(query(cli_ubid="after"))).status for client in clients] == [204] * 40
        assert _users(port) == ["after"] * 40


def test_no_more_of_them_wait_than_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    with Port(tmp_path, limits=replace(LIMITS, waiting_max=5)) as port, gate.before(monkeypatch):
        clients = _repeating(port, 20)
        gate.close()
        for number, client in enumerate(clients):
            client.send(get(query(cli_ubid=number)))
        port.until('clickclock_refused_total{limit="waiting"}', 15)
        gate.open()
        assert sorted(client.answer().status for client in clients) == [204] * 5 + [503] * 15
        assert len(_users(port)) == 5


def test_who_leaves_costs_the_others_nothing_and_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    with Port(tmp_path, limits=LIMITS) as port, gate.before(monkeypatch):
        clients = _repeating(port, 30)
        gate.close()
        for number, client in enumerate(clients):
            client.send(get(query(cli_ubid=number)))
            match number % 3:
                case 1:
                    client.socket.close()
                case 2:
                    client.socket.shutdown(socket.SHUT_WR)
        port.until("clickclock_waiting", 30)
        gate.open()
        assert [client.answer().status for client in clients if client.socket.fileno() >= 0] == [204] * 20
        assert all(client.is_ended() for client in clients[2::3])
        assert len(_users(port)) == 30
        assert port.number('clickclock_clicks_total{profile="strict"}') == len(port.entries())


def test_what_is_sent_behind_such_a_click_is_answered_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    with Port(tmp_path, limits=LIMITS) as port, gate.before(monkeypatch):
        (client,) = _repeating(port, 1)
        gate.close()
        client.send(get(query(cli_ubid="1")))
        client.send(get("/nothing"), get(query(cli_ubid="2")), get("seller_id=s"), get(query(cli_ubid="3")))
        port.until("clickclock_waiting", 4)
        gate.open()
        assert [client.answer().status for _ in range(5)] == [204, 404, 204, 400, 204]
        assert _users(port) == ["1", "2", "3"]
        assert client.ask(get(query(cli_ubid="4"))).status == 204


def _waiting(port: Port, gate: Gate) -> Client:
    """A client that repeats itself, whose click waits for the disk until the gate is open."""
    (client,) = _repeating(port, 1)
    gate.close()
    client.send(get(query(cli_ubid="1")))
    port.until("clickclock_waiting", 1)
    return client


def test_what_came_while_such_a_click_waited_is_read_when_it_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    with Port(tmp_path, limits=replace(LIMITS, pipelined_max=1)) as port, gate.before(monkeypatch):
        client = _waiting(port, gate)
        client.send(get(query(cli_ubid="2")), get("/nothing"))
        assert port.ask(get("/nothing")).status == 404  # so the port has read what was sent before
        gate.open()
        assert [client.answer().status for _ in range(3)] == [204, 204, 404]
        assert _users(port) == ["1", "2"]


def test_who_says_something_else_of_itself_has_that_in_its_next_entry(tmp_path: Path) -> None:
    agents = ["a"] * 4 + ["b"] * 4 + ["a"]
    with Port(tmp_path, limits=LIMITS) as port:
        (client,) = _repeating(port, 1)
        for number, agent in enumerate(agents):
            assert client.ask(get(query(cli_ubid=number), f"User-Agent: {agent}\r\n")).status == 204
        assert [entry.agent.decode() for entry in port.entries()[-len(agents) :]] == agents


def test_a_query_that_is_too_long_is_refused_from_who_repeats_itself_too(tmp_path: Path) -> None:
    with Port(tmp_path, limits=replace(LIMITS, query_bytes_max=1000)) as port:
        (client,) = _repeating(port, 1)
        assert client.ask(get(query(cli_ubid="1" * 1000))).status == 414
        assert client.ask(get(query(cli_ubid="2"))).status == 204
        assert _users(port) == ["1" * 1000, "2"]
        assert [entry.kind for entry in port.entries()[-2:]] == ["r", "c"]


def test_who_repeats_itself_is_let_go_when_it_says_nothing_more_but_not_while_its_click_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    with Port(tmp_path, limits=replace(LIMITS, idle_s=0.3)) as port, gate.before(monkeypatch):
        client = _waiting(port, gate)
        assert port.connect().is_ended()  # who came later has been let go meanwhile
        gate.open()
        assert client.answer().status == 204
        assert client.is_ended()
        assert _users(port) == ["1"]
