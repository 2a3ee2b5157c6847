"""How the dashboard's files are served, beside the services."""

import gzip
import re
from collections.abc import AsyncIterator

import httpx
import pytest

from clickclock.scheduler.api import create_app
from clickclock.scheduler.engine import Engine
from clickclock.web import Dashboard

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
async def http(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(engine, elsewhere=Dashboard()))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


async def test_every_address_of_a_page_is_the_one_page_and_asked_anew_each_time(http: httpx.AsyncClient) -> None:
    page = await http.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    for path in ("/jobs/shop/nightly-export", "/runs/%2e%2e", "/a/b/c/d", "/staticky"):
        assert (await http.get(path, headers=BROWSER)).text == page.text
    again = await http.get("/", headers={"if-none-match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_the_page_names_the_port_on_which_clicks_are_taken_if_any(engine: Engine) -> None:
    for port, named in ((9081, "9081"), (None, "")):
        transport = httpx.ASGITransport(create_app(engine, elsewhere=Dashboard(port)))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            assert f'<meta name="click-port" content="{named}">' in (await client.get("/")).text


async def test_a_file_may_be_kept_for_ever_for_its_address_names_its_content(http: httpx.AsyncClient) -> None:
    page = (await http.get("/")).text
    for path in re.findall(r'(?:href|src)="(/static/[^"]+)"', page):
        file = await http.get(path)
        assert file.status_code == 200, path
        assert file.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert file.headers["x-content-type-options"] == "nosniff"
    elsewhere = re.sub(r"/static/\w+/", "/static/0123456789abcdef/", path)
    assert (await http.get(elsewhere, headers=BROWSER)).json()["code"] == "unknownPath"


async def test_files_leave_compressed_only_if_the_caller_takes_that(http: httpx.AsyncClient) -> None:
    plain = await http.get("/", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    async with http.stream("GET", "/", headers={"accept-encoding": "gzip"}) as packed:
        raw = b"".join([piece async for piece in packed.aiter_raw()])
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw) == plain.content
    assert packed.headers["vary"].lower() == "accept-encoding"


async def test_the_policy_lets_nothing_in_from_elsewhere_and_no_text_become_a_script(http: httpx.AsyncClient) -> None:
    policy = (await http.get("/")).headers["content-security-policy"]
    for part in (
        "default-src 'none'",
        "script-src 'self'",
        "require-trusted-types-for 'script'",
        "frame-ancestors 'none'",
    ):
        assert part in policy
    assert "unsafe" not in policy


async def test_no_page_shadows_what_a_service_answers(http: httpx.AsyncClient) -> None:
    for path, media_type in (("/docs", "text/html"), ("/openapi.json", "application/json"), ("/metrics", "text/plain")):
        answer = await http.get(path, headers=BROWSER)
        assert answer.headers["content-type"].startswith(media_type)
        assert "clickclock-worker" not in answer.headers.get("content-security-policy", "")
    unknown = await http.get("/schedulerService/nothing", headers=BROWSER)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknownPath")


async def test_whoever_is_no_browser_hears_that_a_path_is_unknown(http: httpx.AsyncClient) -> None:
    assert (await http.get("/jobs")).json()["code"] == "unknownPath"
    assert (await http.post("/jobs", headers={"accept": "application/json"})).status_code == 404
    refused = await http.post("/")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
