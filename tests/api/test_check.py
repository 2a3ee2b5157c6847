"""The checker over HTTP, from the client and on the command line."""

from pathlib import Path

import httpx
import pytest

from clickclock.attribution.api.application import create_app
from clickclock.attribution.clicks.account import Account, Accounts, Profile

SHOP = Accounts([Account(client_id="shop-1", profile=Profile.OPEN)])


@pytest.fixture
def http(tmp_path: Path) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(create_app(tmp_path / "journal", accounts=SHOP))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost/attribution/")


async def test_a_text_is_checked_by_get_and_by_post_and_nothing_is_kept(
    http: httpx.AsyncClient, tmp_path: Path
) -> None:
    page = "https://shop.example/?utm_source=fb"
    answer = await http.get("check", params={"click": page, "clientId": "shop-1"})
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    told = answer.json()["check"]
    assert (told["accepted"], told["channel"]["channel"]) == (True, "meta")
    posted = (await http.post("check?clientId=shop-1", content=page)).json()["check"]
    assert {**posted, "query": "", "kept": {}, "receivedAt": "", "parameters": []} == {
        **told,
        "query": "",
        "kept": {},
        "receivedAt": "",
        "parameters": [],
    }
    assert not (tmp_path / "journal").exists()


async def test_every_fault_of_a_question_is_told(http: httpx.AsyncClient) -> None:
    refused = (await http.get("check?client=x&sellerId=")).json()
    assert (refused["code"], {each["field"] for each in refused["errors"]}) == (
        "malformed",
        {"click", "client", "sellerId"},
    )
    assert (await http.post("check", content=b"\xff")).json()["code"] == "malformed"
    assert (await http.post("check", content=b"x" * 70_000)).status_code == 413
    assert (await http.post("check", content="hello world")).json()["errors"][0]["field"] == "click"
    wrong = await http.put("check", content="a=b")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD, POST")
    strange = await http.post("check", content="a=b", headers={"origin": "https://elsewhere.example"})
    assert strange.json()["code"] == "foreignOrigin"
