"""What every request passes: host, origin, request id, and what becomes of a fault of ours."""

import logging

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from clickclock.foundation.errors import StoreUnreachable
from clickclock.foundation.gate import Gate
from clickclock.scheduler.api import create_app
from clickclock.scheduler.engine import Engine
from tests.api.conftest import BASE, JOB


async def test_every_answer_has_a_request_id_and_is_not_to_be_sniffed(http: httpx.AsyncClient) -> None:
    for path in ("job", "nothing", "job?limit=0", "http://127.0.0.1/docs"):
        response = await http.get(path)
        assert response.headers["x-request-id"]
        assert response.headers["x-content-type-options"] == "nosniff"
    response = await http.get("nothing", headers={"x-request-id": "mine-1"})
    assert response.headers["x-request-id"] == response.json()["requestId"] == "mine-1"
    response = await http.get("nothing", headers={"x-request-id": "not { safe"})
    assert response.headers["x-request-id"] != "not { safe"


async def test_no_answer_is_framed_or_tells_other_sites_of_us_and_pages_keep_their_own_policy(
    http: httpx.AsyncClient,
) -> None:
    for path in ("job", "nothing", "http://127.0.0.1/docs", "http://127.0.0.1/metrics"):
        headers = (await http.get(path)).headers
        assert (headers["x-frame-options"], headers["referrer-policy"]) == ("DENY", "same-origin")
        policies = headers.get_list("content-security-policy")
        assert len(policies) == 1
        assert "frame-ancestors 'none'" in policies[0]
        assert ("script-src 'self'" in policies[0]) == path.endswith("docs")
        assert "strict-transport-security" not in headers
    assert "max-age" in (await http.get("https://127.0.0.1/docs")).headers["strict-transport-security"]


@pytest.mark.parametrize(("site", "status"), [("cross-site", 403), ("same-origin", 201), ("none", 201)])
async def test_a_change_that_another_sites_page_asks_for_without_saying_so_is_refused(
    http: httpx.AsyncClient, site: str, status: int
) -> None:
    response = await http.post("job", json=JOB, headers={"sec-fetch-site": site})
    assert response.status_code == status
    assert (await http.get("job", headers={"sec-fetch-site": site})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example.com", "127.0.0.1.evil.example.com", "10.0.0.1", ""])
async def test_a_name_that_somebody_points_at_us_is_refused(http: httpx.AsyncClient, host: str) -> None:
    response = await http.get("job", headers={"host": host})
    assert response.status_code == 403
    assert response.json()["code"] == "foreignHost"


@pytest.mark.parametrize(("version", "hosts", "status"), [("1.1", 0, 400), ("1.1", 2, 400), ("1.0", 0, 200)])
async def test_a_request_names_one_host(engine: Engine, version: str, hosts: int, status: int) -> None:
    statuses: list[int] = []
    scope: Scope = {
        "type": "http",
        "http_version": version,
        "method": "GET",
        "path": "/schedulerService/job",
        "query_string": b"",
        "headers": [(b"host", b"localhost")] * hosts,
    }

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await create_app(engine)(scope, receive, send)
    assert statuses == [status]


@pytest.mark.parametrize(
    "host", ["localhost:8080", "127.0.0.1", "127.0.0.2:1", "[::1]:8080", "app.localhost", "LOCALHOST"]
)
async def test_names_of_the_loopback_are_ours(http: httpx.AsyncClient, host: str) -> None:
    assert (await http.get("job", headers={"host": host})).status_code == 200


async def test_further_names_can_be_allowed(engine: Engine) -> None:
    for hosts, status in ((["jobs.example.com"], 200), ([], 403), (None, 200)):
        transport = httpx.ASGITransport(create_app(engine, allowed_hosts=hosts))
        async with httpx.AsyncClient(transport=transport, base_url="http://jobs.example.com:8080") as http:
            assert (await http.get("/schedulerService/job")).status_code == status


@pytest.mark.parametrize("origin", ["https://evil.example.com", "null", "http://127.0.0.1:9999", "http://", "http://["])
async def test_a_page_of_another_site_can_change_nothing(http: httpx.AsyncClient, origin: str) -> None:
    for method in ("POST", "PUT", "DELETE"):
        response = await http.request(method, "job", json=JOB, headers={"origin": origin})
        assert response.status_code == 403
        assert response.json()["code"] == "foreignOrigin"
    assert (await http.get("job", headers={"origin": origin})).json()["jobs"] == []


async def test_our_own_page_can(http: httpx.AsyncClient) -> None:
    response = await http.post("job", json=JOB, headers={"origin": "http://127.0.0.1"})
    assert response.status_code == 201


async def test_a_fault_of_ours_is_500_tells_nothing_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError("secret")

    async with httpx.AsyncClient(transport=httpx.ASGITransport(Gate(broken)), base_url=BASE) as http:
        with caplog.at_level(logging.ERROR):
            response = await http.get("job")
    assert response.status_code == 500
    assert response.json()["code"] == "internal"
    assert "secret" not in response.text
    assert response.json()["requestId"] in caplog.text
    assert "ZeroDivisionError" in caplog.text


async def test_a_store_that_does_not_answer_is_503_with_when_to_try_again() -> None:
    async def unreachable(scope: Scope, receive: Receive, send: Send) -> None:
        raise StoreUnreachable

    async with httpx.AsyncClient(transport=httpx.ASGITransport(Gate(unreachable)), base_url=BASE) as http:
        response = await http.get("job")
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert response.json()["code"] == "storeUnreachable"
