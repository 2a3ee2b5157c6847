"""Durable, validated clicks beside nginx's access log, on one core (`python -m tests.bench clicks`).

The server has core 0, wrk has core 1. All of them run in many short turns, each time another one first, so that
whatever else this machine does meets each; what is compared is the median of the turns' ratios. Afterwards, ours alone:
few connections, and far too many.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clickclock.attribution.journal import read, segments
from tests.bench.machine import sync_ms
from tests.bench.report import Goal, Report, middle

HERE = Path(__file__).parent
CONNECTIONS = 256
FEW = 8
FAR_TOO_MANY = 10_000
SLOW_SYNC_S = 0.05
ALONE_S = 5
BUFFERED, UNBUFFERED = "nginx, buffered log", "nginx, unbuffered log"
_SERVER_CORE, _WRK_CORE = "0", "1"
_FILES_MAX = 20_000
_UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


@dataclass(frozen=True)
class Turn:
    """What wrk saw in one turn, and what the server used for it."""

    requests: int
    refused: int
    """Answers that are no 204."""
    errors: str
    per_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """The server's CPU time (user and system) for one request."""


def run(folder: Path, *, quick: bool) -> Report:
    """24 turns of two seconds each (--quick: three)."""
    turns, seconds = 3 if quick else 24, 2
    report = Report(
        f"clicks: 12 parameters, 350 bytes, one core, {CONNECTIONS} connections, {turns} turns of {seconds} s in turn"
    )
    if missing := [name for name in ("nginx", "wrk", "taskset") if not shutil.which(name)]:
        report.faults.append(f"needs {', '.join(missing)}: apt-get install nginx-light wrk util-linux")
        return report
    if len(os.sched_getaffinity(0)) < 2:
        report.faults.append("needs two cores, one for the server and one for wrk")
        return report
    p50_ms, p99_ms = sync_ms(folder)
    report.notes.append(f"the disk's fdatasync of 4 KiB just before: p50 {p50_ms:.3f} ms, p99 {p99_ms:.3f} ms")
    _compare(report, folder, turns, seconds)
    _few(report, folder)
    _overload(report, folder)
    return report


def _compare(report: Report, folder: Path, turns: int, seconds: int) -> None:
    found: dict[str, list[Turn]] = {"clickclock": [], BUFFERED: [], UNBUFFERED: []}
    with _nginx(folder / "nginx") as (nginx, ports), _collector(folder / "ours") as (ours, port):
        servers = {"clickclock": (ours, port), BUFFERED: (nginx, ports[0]), UNBUFFERED: (nginx, ports[1])}
        for who, (pid, at) in servers.items():
            _turn(pid, at, CONNECTIONS, 1)  # warm
            found[who] = []
        order = [*servers.items()]
        for _ in range(turns):
            order.append(order.pop(0))  # another one first
            for who, (pid, at) in order:
                os.sync()  # nginx leaves its log to the system, which would write it while the next waits for the disk
                found[who].append(_turn(pid, at, CONNECTIONS, seconds))
    _check(report, found["clickclock"])
    others = {who: found[who] for who in (BUFFERED, UNBUFFERED)}
    for name, unit, number, goal in (
        ("requests", "1/s", "per_s", None),
        ("CPU of the server", "µs/request", "cpu_us", Goal(most=17.0)),
        ("latency p50", "ms", "p50_ms", None),
        ("latency p99", "ms", "p99_ms", Goal(most=10.0)),
    ):
        theirs = {who: [getattr(turn, number) for turn in them] for who, them in others.items()}
        report.add(name, unit, [getattr(turn, number) for turn in found["clickclock"]], goal, theirs)
    for who, least in ((BUFFERED, 0.62), (UNBUFFERED, 0.8)):
        pairs = list(zip(found["clickclock"], others[who], strict=True))
        report.add(f"rate ÷ {who}", "median ratio", [a.per_s / b.per_s for a, b in pairs], Goal(least=least))
        report.add(f"CPU of {who} ÷ ours", "median ratio", [b.cpu_us / a.cpu_us for a, b in pairs])


def _few(report: Report, folder: Path) -> None:
    with _collector(folder / "few") as (pid, port):
        turns = [_turn(pid, port, FEW, ALONE_S) for _ in range(3)]
    _check(report, turns)
    report.add(f"{FEW} connections: p50", "ms", [turn.p50_ms for turn in turns], Goal(most=1.0))
    report.add(f"{FEW} connections: p99", "ms", [turn.p99_ms for turn in turns])


def _overload(report: Report, folder: Path) -> None:
    with _collector(folder / "overload", sync_s=SLOW_SYNC_S) as (pid, port):
        turn = _turn(pid, port, FAR_TOO_MANY, 2 * ALONE_S)
        status = Path(f"/proc/{pid}/status").read_text()
    peak_mb = int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024 / 1e6
    kept = sum(frame.count for segment in segments(folder / "overload") for frame in read(segment))
    acknowledged = turn.requests - turn.refused
    if kept < acknowledged:
        report.faults.append(f"overload: {acknowledged} were acknowledged, {kept} are on disk")
    name = f"{FAR_TOO_MANY:,} connections, syncs of {1000 * SLOW_SYNC_S:.0f} ms"
    report.add(f"{name}: peak memory", "MB", peak_mb, Goal(most=120.0))
    report.add(f"{name}: acknowledged", "1/s", turn.per_s * acknowledged / max(1, turn.requests))
    report.add(f"{name}: answered 503", "1/s", turn.per_s * turn.refused / max(1, turn.requests))
    report.notes.append(f"overload: {acknowledged:,} acknowledged, {kept:,} on disk, {turn.refused:,} refused")
    if turn.errors:
        report.notes.append(f"overload: wrk says: {turn.errors}")


def _check(report: Report, turns: list[Turn]) -> None:
    for turn in turns:
        if turn.refused or turn.errors:
            report.faults.append(f"{turn.refused} of {turn.requests} clicks were refused; {turn.errors or 'no errors'}")
    report.notes.append(f"our turns differ by {max(t.per_s for t in turns) / middle([t.per_s for t in turns]):.2f}")


def _turn(pid: int, port: int, connections: int, seconds: int) -> Turn:
    before_ns = _cpu_ns(pid)
    words = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "--timeout", "10s", "-s", "clicks.lua"]
    said = subprocess.run(
        ["taskset", "-c", _WRK_CORE, *words, f"http://127.0.0.1:{port}/"],
        cwd=HERE,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    used_ns = _cpu_ns(pid) - before_ns
    requests = int(re.findall(r"(\d+) requests in", said)[0])
    refused = re.findall(r"Non-2xx or 3xx responses: (\d+)", said)
    errors = re.findall(r"Socket errors: (.+)", said)
    return Turn(
        requests,
        int(refused[0]) if refused else 0,
        errors[0] if errors else "",
        float(re.findall(r"Requests/sec:\s+([\d.]+)", said)[0]),
        _ms(re.findall(r" 50%\s+(\S+)", said)[0]),
        _ms(re.findall(r" 99%\s+(\S+)", said)[0]),
        used_ns / 1000 / max(1, requests),
    )


def _ms(said: str) -> float:
    """A time as wrk writes it, in ms.

    >>> _ms("850.00us"), _ms("1.50s")
    (0.85, 1500.0)
    """
    number, unit = re.fullmatch(r"([\d.]+)(\D+)", said).groups()  # type: ignore[union-attr]  # wrk writes no other
    return float(number) * _UNITS_MS[unit]


def _cpu_ns(pid: int) -> int:
    """User and system time of all threads, in ns: ticks of 10 ms would be too coarse."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat"))


@contextlib.contextmanager
def _nginx(folder: Path) -> Iterator[tuple[int, tuple[int, int]]]:
    folder.mkdir()
    folder.chmod(0o777)  # its worker may be another user
    ports = _free_port(), _free_port()
    text = (HERE / "clicks_nginx.conf").read_text()
    for word, value in (("UNBUFFERED", ports[1]), ("BUFFERED", ports[0]), ("FOLDER", folder)):
        text = text.replace(word, str(value))
    (folder / "nginx.conf").write_text(text)
    words = ["nginx", "-e", f"{folder}/error.log", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with _server(words, folder / "out") as process:
        for port in ports:
            _wait_for(port, process)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield int(children[0]), ports


@contextlib.contextmanager
def _collector(folder: Path, sync_s: float = 0.0) -> Iterator[tuple[int, int]]:
    port = _free_port()
    words = [sys.executable, "-m", "tests.bench.collector", str(folder), str(port), str(sync_s)]
    with _server(words, folder.with_suffix(".out")) as process:
        _wait_for(port, process)
        yield process.pid, port


@contextlib.contextmanager
def _server(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        pinned = ["taskset", "-c", _SERVER_CORE, "sh", "-c", f'ulimit -n {_FILES_MAX}; exec "$@"', "sh", *words]
        process = subprocess.Popen(pinned, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
            probe.sendall(b"GET /nothing HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            if probe.recv(1):
                return
        if process.poll() is not None:
            break
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    raise RuntimeError(f"{process.args!r} does not answer")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
