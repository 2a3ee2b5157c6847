"""What strangers may take of the scheduler's port: a real service, real sockets, and memory as the kernel counts it."""

import contextlib
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.acceptance.caller import UNFINISHED, Caller
from tests.acceptance.service import running

BODY_BYTES = 8 * 2**20
BODIES = 100
HEAD = f"POST /schedulerService/job HTTP/1.1\r\nHost: localhost\r\nContent-Length: {BODY_BYTES}\r\n\r\n".encode()


def resident_bytes(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1]) * 1024


@contextlib.contextmanager
def unfinished(url: str) -> Iterator[list[socket.socket]]:
    """Requests whose bodies lack their last byte."""
    address = ("127.0.0.1", int(url.rpartition(":")[2]))
    with contextlib.ExitStack() as opened:
        sockets = []
        for _ in range(BODIES):
            each = opened.enter_context(socket.create_connection(address, timeout=60))
            with contextlib.suppress(ConnectionError):  # it was refused in the middle of it
                each.sendall(HEAD + bytes(BODY_BYTES - 1))
            sockets.append(each)
        yield sockets


def test_a_hundred_unfinished_bodies_of_8_mib_take_the_memory_of_eight(tmp_path: Path) -> None:
    with running(tmp_path / "data") as service:
        before = resident_bytes(service.process.pid)
        with unfinished(service.url):
            taken = resident_bytes(service.process.pid) - before
            # Who only asks is answered.
            assert httpx.get(f"{service.url}/schedulerService/job").is_success
            assert httpx.post(f"{service.url}/schedulerService/job", json={}).status_code in {422, 503}
        assert taken < 24 * BODY_BYTES, taken
        job = {"application": "t", "jobName": "t", "command": "true"}
        assert httpx.post(f"{service.url}/schedulerService/job", json=job).status_code == 201


def logs(folder: Path) -> list[Path]:
    return list((folder / "data" / "logs").glob("*/*.log"))


def test_a_job_that_writes_as_fast_as_it_can_takes_its_limit_of_the_disk_and_nobodys_memory(tmp_path: Path) -> None:
    written, limit = 2 * 2**30, 2**20
    config = tmp_path / "limits.toml"
    config.write_text(f"attempt_log_bytes_max = {limit}\n", encoding="utf-8")
    with running(tmp_path / "data", "--config", str(config)) as service:
        caller, before = Caller(service), resident_bytes(service.process.pid)
        trigger_id = caller.run("fast", f"head -c {written} /dev/zero")
        most_bytes = most_s = grown = 0.0
        while (trigger := caller.trigger(trigger_id))["state"] in UNFINISHED:
            asked_s = time.monotonic()
            caller.trigger(trigger_id)
            most_s = max(most_s, time.monotonic() - asked_s)
            most_bytes = max(most_bytes, *(each.stat().st_blocks * 512 for each in logs(tmp_path)), 0)
            grown = max(grown, resident_bytes(service.process.pid) - before)
        (log,) = logs(tmp_path)
        # A look comes within a quarter of a second: so much of it may be there at a time.
        allowed = limit + 2 * written * 0.25 * 1000 / trigger["durationMs"]
        assert (trigger["state"], log.stat().st_size) == ("succeeded", written)
        assert most_bytes < allowed
        assert log.stat().st_blocks * 512 < limit + 20 * 4096
        assert grown < 30 * 2**20
        assert most_s < 2


def test_what_a_proxy_passes_on_is_its_clients_and_not_its_own(tmp_path: Path) -> None:
    with running(tmp_path / "data") as service:
        job = f"{service.url}/schedulerService/job"
        # Whoever runs the proxy, here our own user: those behind it are others.
        for passed_on in ("203.0.113.7", "203.0.113.7, 127.0.0.1", "127.0.0.1, 10.0.0.9", "unknown"):
            assert httpx.get(job, headers={"x-forwarded-for": passed_on}).status_code == 401
        assert httpx.get(job, headers={"x-forwarded-for": "127.0.0.1"}).status_code == 200
        assert "strict-transport-security" not in httpx.get(job).headers
        assert "strict-transport-security" in httpx.get(job, headers={"x-forwarded-proto": "https"}).headers
    with running(tmp_path / "data", "--config", str(_trusting_nobody(tmp_path))) as service:
        answer = httpx.get(f"{service.url}/schedulerService/job", headers={"x-forwarded-proto": "https"})
        assert "strict-transport-security" not in answer.headers


def _trusting_nobody(folder: Path) -> Path:
    file = folder / "clickclock.toml"
    file.write_text('trusted_proxies = ["192.0.2.1"]\n')
    return file
