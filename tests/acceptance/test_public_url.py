"""A service behind a proxy that has the certificate: who signs in there is the caller, and its changes are taken."""

import contextlib
import os
import ssl
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.acceptance.clicking import until
from tests.acceptance.service import running
from tests.acceptance.test_access import clickclock
from tests.acceptance.test_proxies import PROXIES, _command, _is_settled
from tests.authority import Authority, Pair
from tests.ports import free_port

NAME = "jobs.localhost"
CALLER, OTHER = "203.0.113.9", "203.0.113.10"
SEEN = {"nginx": CALLER, "caddy": "127.0.0.1"}
"""The caller's address in the audit trail. Caddy takes what the caller says of it for a lie."""


def _lines(kind: str, port: int, upstream: str, pair: Pair) -> str:
    """The guide's lines, with a certificate."""
    lines = PROXIES[kind].replace("10.0.0.0/8", "127.0.0.0/8").replace("127.0.0.1:8080", upstream.partition("//")[2])
    ours = {
        "listen 80;": f"listen {port} ssl; ssl_certificate {pair.certificate}; ssl_certificate_key {pair.key};",
        "http://jobs.example {": f"https://{NAME}:{port} {{\n    tls {pair.certificate} {pair.key}",
        "jobs.example": NAME,
    }
    for theirs, other in ours.items():
        lines = lines.replace(theirs, other)
    return lines


@contextlib.contextmanager
def proxying(kind: str, folder: Path, port: int, upstream: str, pair: Pair) -> Iterator[None]:
    """A proxy before the service; it is killed in the end."""
    lines = _lines(kind, port, upstream, pair)
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin", "HOME": str(folder)}
    process = subprocess.Popen(_command(kind, folder, lines), env=environment)
    try:
        until(partial(_is_settled, process, port), f"{kind} is up")
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.needs(kind)) for kind in SEEN])
def test_a_browser_signs_in_and_changes_things_through_a_proxy_with_the_certificate(kind: str, tmp_path: Path) -> None:
    port, data, file = free_port(), tmp_path / "data", tmp_path / "c.toml"
    url = f"https://{NAME}:{port}"
    file.write_text(f'public_url = "{url}"\nauthentication = "tokens"\n', encoding="utf-8")
    token = clickclock("token", "create", "anna", "--role", "admin", "--data-dir", str(data)).stdout.strip()
    pair = Authority(tmp_path).pair(NAME)
    trust = ssl.create_default_context(cafile=pair.certificate)
    with running(data, "--config", str(file)) as service, proxying(kind, tmp_path, port, service.url, pair):
        through = {"host": f"{NAME}:{port}", "x-forwarded-for": CALLER, "origin": url}
        base, sni = f"https://127.0.0.1:{port}/schedulerService/", {"sni_hostname": NAME}
        with httpx.Client(base_url=base, verify=trust, headers=through) as web:
            begun = web.post("session", headers={"authorization": f"Bearer {token}"}, extensions=sni)
            assert begun.status_code == 200, begun.text
            kept = begun.headers["set-cookie"].partition(";")[0]
            assert kept.startswith("__Host-clickclock=")
            assert "strict-transport-security" in begun.headers
            by_session = {"cookie": kept, "x-session-token": begun.json()["whoami"]["sessionToken"]}
            job = {"application": "shop", "jobName": "export", "command": "true", "preemption": False}
            assert web.post("job", json=job, headers=by_session, extensions=sni).status_code == 201
            foreign = by_session | {"origin": "https://evil.example"}
            assert web.post("job", json=job, headers=foreign, extensions=sni).json()["code"] == "foreignOrigin"
            listed = web.get("audit", params={"resource": "job"}, headers=by_session, extensions=sni)
            records = listed.json()["records"]
            assert [(each["principal"], each["address"]) for each in records] == [("anna", SEEN[kind])]
            wrong = {"authorization": "Bearer wrong", "x-forwarded-for": OTHER}
            answers = [web.get("job", headers=wrong, extensions=sni).status_code for _ in range(11)]
            assert answers == [401] * 10 + [429]
            assert web.get("job", headers=by_session, extensions=sni).status_code == 200
            status = web.get("job", headers={"authorization": "Bearer wrong"}, extensions=sni).status_code
            assert status == (401 if kind == "nginx" else 429), "Caddy believes nobody's word on an address"
