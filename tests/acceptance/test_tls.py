"""Both ports with a certificate: the command line, own jobs, clicks, who has a certificate, and a renewed one."""

import json
import os
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from clickclock.client import Client
from clickclock.client.connection import Untrusted
from tests.acceptance.service import running
from tests.authority import Authority, Pair

pytestmark = pytest.mark.needs("openssl")
NAME = "jobs.example.com"


def shown(url: str) -> bytes:
    """The certificate that a port shows."""
    port = int(url.rpartition(":")[2])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=30) as raw, context.wrap_socket(raw) as tls:
        return tls.getpeercert(binary_form=True) or b""


def clickclock(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end."""
    environment = {**os.environ, "PYTHONPATH": "src"}
    command = [sys.executable, "-m", "clickclock.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)


def test_both_ports_speak_tls_alone_and_take_a_renewed_certificate(tmp_path: Path) -> None:
    authority, used = Authority(tmp_path), Pair(tmp_path / "c.pem", tmp_path / "c.key")
    used.replace(authority.pair(NAME))
    used.key.chmod(0o600)
    anna, file, data = authority.pair("anna", signed=True), tmp_path / "c.toml", tmp_path / "data"
    settings = {"tls_certificate": used.certificate, "tls_key": used.key, "tls_client_ca": authority.own.certificate}
    lines = [f'{name} = "{path}"' for name, path in settings.items()]
    file.write_text("\n".join([*lines, 'tls_clients = [{name = "anna", role = "viewer"}]\n']), encoding="utf-8")
    token = clickclock("token", "create", "first", "--role", "admin", "--data-dir", str(data)).stdout.strip()
    options = ("--config", str(file), "--authentication", "tokens", "--clicks", "--click-port", "0")
    trust = ssl.create_default_context(cafile=used.certificate)
    trust.check_hostname = False  # the name is another than 127.0.0.1
    with running(data, *options) as service, httpx.Client(verify=trust) as plain:
        assert service.url.startswith("https://")
        key = {"authorization": f"Bearer {token}"}
        deadline = time.monotonic() + 60
        while "compaction" not in (jobs := plain.get(f"{service.url}/schedulerService/job", headers=key)).text:
            assert time.monotonic() < deadline, jobs.text
        click = plain.get(f"{service.click_url}/aclick?client_id=shop-1&cli_ubid=v&utm_source=x")
        stay = [(each.status_code, each.headers["Strict-Transport-Security"]) for each in (jobs, click)]
        assert stay == [(200, "max-age=31536000"), (400, "max-age=31536000")]
        with pytest.raises(httpx.HTTPError):
            httpx.get(service.url.replace("https", "http"))
        (tmp_path / "token").write_text(token, encoding="ascii")
        asked = ("--url", service.url, "--token-file", str(tmp_path / "token"))
        with pytest.raises(Untrusted, match="not believed"), Client(service.url, token=token) as client:
            client.whoami()
        refused = clickclock(*asked, "whoami")
        assert (refused.returncode, "--ca-file" in refused.stderr) == (3, True)
        assert (
            json.loads(clickclock(*asked, "--ca-file", str(used.certificate), "whoami", "--json").stdout)["whoami"][
                "name"
            ]
            == "first"
        )
        well = clickclock(*asked, "doctor", "--config", str(file), "--data-dir", str(data), "--json")
        checks = {each["check"]: each["result"] for each in json.loads(well.stdout)["checks"]}
        assert (checks["service"], checks["certificate"], checks["clickPort"]) == ("ok", "ok", "ok")
        proving = ssl.create_default_context(cafile=used.certificate)
        proving.check_hostname = False
        proving.load_cert_chain(anna.certificate, anna.key)
        with httpx.Client(verify=proving) as certified:
            who = certified.get(f"{service.url}/schedulerService/whoami").json()["whoami"]
            assert (who["name"], who["proof"]) == ("anna", "certificate")
            passed_on = {"x-forwarded-for": "203.0.113.7"}  # by a proxy, whose certificate is not the caller's
            assert certified.get(f"{service.url}/schedulerService/whoami", headers=passed_on).status_code == 401
        old = shown(service.url)
        used.replace(authority.pair(NAME, days=5))
        for url in (service.url, service.click_url):
            while shown(url) == old:
                assert time.monotonic() < deadline + 60, f"{url} goes on with the old one"
        assert service.stop() == 0
