"""Who is answered: the service's own user and root, by the kernel's word, and nobody else of this machine."""

import http.client
import json
import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
import pytest

from tests.acceptance.service import running

NOBODY = 65534
OPEN = {"/", "/docs", "/schedulerService"}
"""Pages of the program itself."""


def _ask(url: str, routes: list[tuple[str, str]], answers: Connection) -> None:
    """As another user of this machine, in a process of its own."""
    os.setuid(NOBODY)
    told = []
    for method, path in routes:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        connection.request(method, path, headers={"X-Forwarded-User": "root", "Authorization": "Basic cm9vdDo="})
        answer = connection.getresponse()
        told.append((answer.status, answer.headers.get("WWW-Authenticate"), answer.read().decode()))
        connection.close()
    answers.send(told)


@pytest.mark.needs("root")
def test_another_user_of_the_machine_is_refused_by_every_route_and_root_needs_no_key(tmp_path: Path) -> None:
    with running(tmp_path / "data") as service:
        paths = {
            **httpx.get(f"{service.url}/openapi.json").raise_for_status().json()["paths"],
            **httpx.get(f"{service.url}/attribution/openapi.json").raise_for_status().json()["paths"],
        }
        routes = [(method.upper(), path) for path, methods in paths.items() for method in methods]
        routes += [("GET", "/openapi.json"), ("GET", "/metrics"), ("GET", "/attribution/openapi.json")]
        routes += [("HEAD", path) for method, path in routes if method == "GET"]
        ours, theirs = multiprocessing.Pipe(duplex=False)
        other = multiprocessing.get_context("fork").Process(target=_ask, args=(service.url, routes, theirs))
        other.start()
        theirs.close()
        told = dict(zip(routes, ours.recv(), strict=True))
        other.join()
        assert {status for status, _, _ in told.values()} == {401}
        assert {challenge for _, challenge, _ in told.values()} == {"Bearer"}
        refused = json.loads(told["POST", "/schedulerService/job"][2])
        assert refused["code"] == "unauthenticated"
        assert "you are another user" in refused["message"]
        assert httpx.get(f"{service.url}/schedulerService/job").json()["jobs"] == []
