"""Both services behind nginx, HAProxy and Caddy, set up as the guide says.

Never relies on a proxy to refuse what is in doubt. Invariant: whatever happens to the test, its proxy is gone
afterwards.
"""

import contextlib
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.clicking import ORDER, click_path, until
from tests.acceptance.service import Service, running
from tests.acceptance.test_framing import OFFERS, head, in_chunks
from tests.api.port import Client, Heard
from tests.house.tree import ROOT
from tests.ports import free_port, free_ports

GUIDE = (ROOT / "docs/how-to/deploy.md").read_text(encoding="utf-8")
PROXIES: dict[str, str] = dict(re.findall(r"^```(nginx|haproxy|caddy)\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL))
HOST = "jobs.localhost"
COPIED = 'proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade"; proxy_request_buffering off;'
"""What people copy into nginx."""
DENIED = {
    "nginx": ("location / {", f"location ~ ^/schedulerService/job/?$ {{ return 403; }}\nlocation / {{ {COPIED}"),
    "haproxy": ("http-request deny", "http-request deny if { path,url_dec -m reg ^/schedulerService/job/?$ }\n  # "),
    "caddy": ("respond @change 403", "@job path /schedulerService/job /schedulerService/job/\nrespond @job 403"),
}
"""By proxy: what makes of the guide's lines such that deny the path of jobs to everybody, and nothing else."""


@dataclass
class Proxy:
    """A running proxy: its port before each service."""

    scheduler: int
    collector: int

    def connect(self, *, to_collector: bool = False) -> Client:
        return Client(("127.0.0.1", self.collector if to_collector else self.scheduler))

    def ask(self, *pieces: bytes, to_collector: bool = False) -> Heard:
        """The answer to one request, on a connection of its own."""
        with self.connect(to_collector=to_collector) as client, self.connect(to_collector=to_collector) as other:
            for piece in pieces:
                client.send(piece)
                other.ask(f"GET /healthz HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())  # which comes behind the piece
            answer = client.answer()
            while answer.status == 100:
                answer = client.answer()
            return answer


def _lines(kind: str, port: int, upstream: str, deny: bool) -> str:
    lines = PROXIES[kind].replace("10.0.0.0/8", "127.0.0.0/8").replace("127.0.0.1:8080", upstream.partition("//")[2])
    if deny:
        lines = lines.replace(*DENIED[kind])
    names = {"frontend jobs": f"frontend f{port}", "clickclock": f"b{port}", "listen 80": f"listen 127.0.0.1:{port}"}
    names |= {"bind :80": f"bind 127.0.0.1:{port}", "jobs.example {": f":{port} {{", "jobs.example": HOST}
    for name, other in names.items():
        lines = lines.replace(name, other)
    return lines


def _command(kind: str, folder: Path, lines: str) -> list[str]:
    file = folder / kind
    if kind == "nginx":
        paths = "\n".join(
            f"{name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        top = f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
        file.write_text(f"{top}http {{\naccess_log off;\n{paths}\n{lines}\n}}\n")
        return ["nginx", "-p", str(folder), "-c", str(file), "-e", "stderr"]
    if kind == "caddy":
        file.write_text(f"{{\nadmin off\nauto_https off\n}}\n{lines}")
        return ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"]
    file.write_text(lines)
    return ["haproxy", "-db", "-f", str(file)]


@contextlib.contextmanager
def proxying(kind: str, folder: Path, service: Service, *, deny: bool = False) -> Iterator[Proxy]:
    """A proxy before both services; it is killed in the end."""
    ports = free_ports(2)
    pairs = zip(ports, (service.url, service.click_url), strict=True)
    command = _command(kind, folder, "\n".join(_lines(kind, port, upstream, deny) for port, upstream in pairs))
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin", "HOME": str(folder)}
    process = subprocess.Popen(command, env=environment)
    try:
        for port in ports:
            until(partial(_is_settled, process, port), f"{kind} is up")
        assert process.poll() is None, f"{kind} ended"
        yield Proxy(*ports)
    finally:
        process.kill()
        process.wait()


def _is_settled(process: subprocess.Popen[bytes], port: int) -> bool:
    if process.poll() is not None:
        return True
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("data"), "--clicks", "--click-port", str(free_port())) as service:
        yield service


KINDS = [pytest.param(kind, marks=pytest.mark.needs(kind)) for kind in DENIED]


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_to_send_a_body_passes_a_proxy(service: Service, tmp_path: Path, kind: str) -> None:
    with proxying(kind, tmp_path, service) as proxy:
        for number, offer in enumerate(("", *OFFERS.values())):
            for way in ("together", "apart", "chunked", "long"):
                name = f"{way}-{number}"
                job = json.dumps({"application": kind, "jobName": name, "command": "true", "description": "x"}).encode()
                body = job + b" " * 1_000_000 if way == "long" else job
                begun = head("/schedulerService/job", "POST", None if way == "chunked" else len(body), offer)
                body = in_chunks(body) if way == "chunked" else body
                answer = proxy.ask(begun, body) if way == "apart" else proxy.ask(begun + body)
                assert answer.status == 201, (offer, way, answer)
            order = json.dumps(ORDER).encode()
            begun = head("/orders", "POST", len(order), offer)
            assert proxy.ask(begun + order, to_collector=True).status == 202
            click = f"GET {click_path()} HTTP/1.1\r\nHost: {HOST}\r\n{offer}\r\n".encode()
            assert proxy.ask(click, to_collector=True).status == 204
        listed = f"GET /schedulerService/job?application={kind} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
        assert len(json.loads(whole(proxy, listed))["jobs"]) == 4 * (1 + len(OFFERS))


def whole(proxy: Proxy, request: bytes) -> bytes:
    """The body of an answer, however the proxy frames it."""
    with proxy.connect() as client:
        client.send(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        body = b"".join(iter(lambda: client.socket.recv(2**16), b""))
    text = body[body.index(b"{") : body.rindex(b"}") + 1]
    return re.sub(rb"\r\n[0-9a-f]+\r\n", b"", text)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_proxy_denies_cannot_be_reached_in_the_body_of_what_it_allows(
    service: Service, tmp_path: Path, kind: str
) -> None:
    job = json.dumps({"application": "denied", "jobName": kind, "command": "true"}).encode() + b" " * 100_000
    inner = head("/schedulerService/job", "POST", len(job)) + job
    with proxying(kind, tmp_path, service, deny=True) as proxy:
        assert proxy.ask(inner).status == 403
        for offer in ("", *OFFERS.values()):
            for method in ("POST", "GET"):
                for path in ("/schedulerService/jobTrigger", "/nothing"):
                    for begun, body in (
                        (head(path, method, len(inner), offer), inner),
                        (head(path, method, None, offer), in_chunks(inner)),
                    ):
                        with contextlib.suppress(EOFError, ConnectionError):
                            proxy.ask(begun + body)
                        with contextlib.suppress(EOFError, ConnectionError):
                            proxy.ask(begun, body)
    with Client(("127.0.0.1", int(service.url.rpartition(":")[2]))) as client:
        listed = client.ask(b"GET /schedulerService/job?application=denied HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert json.loads(listed.body)["jobs"] == []
