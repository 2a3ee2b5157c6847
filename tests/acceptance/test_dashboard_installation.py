"""Who may do what and who did what, in a real browser: settings, tokens, the trail, versions of a job, chosen runs."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.acceptance.dashboard import look_in_both_themes, watched
from tests.acceptance.service import Service, running

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(Path(tmp_path_factory.mktemp("data"))) as standing:
        with httpx.Client(base_url=f"{standing.url}/schedulerService/") as ask:
            job = {"application": "shop", "jobName": "export", "command": "echo a", "preemption": False}
            assert ask.post("job", json=job).status_code == 201
            for command in ("echo b", "echo c"):
                ask.put("job", json={**job, "command": command, "priority": 70}).raise_for_status()
            for _ in range(4):
                ask.post("jobTrigger", json={"application": "shop", "jobName": "export"}).raise_for_status()
        yield standing


def _token(service: Service, role: str) -> str:
    made = httpx.post(f"{service.url}/schedulerService/token", json={"name": role, "grants": [{"role": role}]})
    secret: str = made.raise_for_status().json()["secret"]
    return secret


def test_settings_are_found_and_have_no_secret(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/settings?only=set&nonsense=1")
        rows = page.get_by_role("region", name="All settings").get_by_role("row")
        expect(rows.filter(has_text="data_dir")).to_contain_text(str(service.data_dir))
        expect(rows.filter(has_text="smtp")).to_have_count(0)
        expect(page.get_by_text("This page does not know nonsense, and ignores it.")).to_be_visible()
        page.get_by_role("searchbox", name="Setting").fill("audit")
        page.get_by_role("searchbox", name="Setting").press("Enter")
        page.get_by_label("Show").select_option("all")
        expect(rows.filter(has_text="audit_days")).to_contain_text("400")
        assert look_in_both_themes(page) == []


def test_a_token_is_made_shown_once_and_taken_back_and_all_of_it_is_in_the_trail(
    browser: Browser, service: Service
) -> None:
    with watched(browser, service.url) as page:
        page.goto("/settings/tokens")
        expect(page.get_by_role("heading", name="There is no token yet")).to_be_visible()
        page.get_by_role("button", name="Create a token …").click()
        page.get_by_label("Name").fill("deploy")
        page.get_by_label("Role").select_option("operator")
        page.get_by_role("button", name="Create", exact=True).click()
        secret = page.get_by_role("dialog").get_by_text(re.compile("^cck_"))
        told = secret.inner_text().strip()
        who = httpx.get(f"{service.url}/schedulerService/whoami", headers={"authorization": f"Bearer {told}"}).json()
        assert who["whoami"]["name"] == "deploy"
        page.get_by_role("button", name="I have kept it").click()
        row = page.get_by_role("row").filter(has_text="deploy")
        expect(row).to_contain_text("valid")
        assert told not in page.content()
        assert look_in_both_themes(page) == []
        row.get_by_role("button", name="Revoke …").click()
        page.get_by_label("Type deploy").fill("deploy")
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(row).to_contain_text("revoked")
        page.get_by_role("link", name="Audit trail").click()
        page.get_by_label("About").select_option("token")
        rows = page.get_by_role("region", name="Records").get_by_role("row")
        expect(rows.filter(has_text="DELETE token")).to_be_visible()
        expect(rows.filter(has_text="POST token")).to_be_visible()
        page.reload()
        expect(rows).to_have_count(3)
        assert look_in_both_themes(page) == []


def test_who_changed_a_job_is_told_and_two_versions_are_compared(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/jobs/shop/export?from=1")
        past = page.get_by_role("region", name="Who changed it")
        expect(past.get_by_text("Version 3", exact=True)).to_be_visible()
        expect(past.locator(".diff .gone")).to_have_text(re.compile("echo a"))
        expect(past.locator(".diff .come").filter(has_text="echo c")).to_be_visible()
        past.get_by_label("with").select_option("2")
        expect(page).to_have_url(re.compile("to=2"))
        expect(past.locator(".diff .come").filter(has_text="echo b")).to_be_visible()
        assert look_in_both_themes(page) == []


def test_runs_are_chosen_by_keys_and_run_again_together(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/runs?jobName=export")
        expect(page.get_by_role("link", name="shop/export, succeeded")).to_have_count(4)
        for key in ("j", "x", "j", "j", "Shift+X"):
            page.keyboard.press(key)
        expect(page.get_by_text("3 runs chosen")).to_be_visible()
        page.reload()
        expect(page.get_by_text("3 runs chosen")).to_be_visible()
        assert look_in_both_themes(page) == []
        page.get_by_role("button", name="Do something with them …").click()
        page.get_by_label("Why").fill("after the fix")
        page.get_by_role("button", name="Do it").click()
        answers = page.get_by_role("list", name="The answer for each").get_by_role("listitem")
        expect(answers.filter(has_text="runs again as")).to_have_count(3)
        assert look_in_both_themes(page) == []
        page.get_by_role("button", name="Close").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_role("link", name="shop/export, succeeded")).to_have_count(7)
        expect(page.get_by_text("chosen")).to_have_count(0)


def test_what_one_may_not_do_is_not_offered_and_says_why(browser: Browser, service: Service) -> None:
    headers = {"authorization": f"Bearer {_token(service, 'viewer')}"}
    with watched(browser, service.url, extra_http_headers=headers) as page:
        page.goto("/jobs/shop/export")
        lacking = "viewer may not do this: it lacks trigger.create and job.write and silence.write of shop."
        expect(page.get_by_text(lacking)).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("Run|Edit|Delete"))).to_have_count(0)
        page.get_by_text("More", exact=True).click()
        expect(page.get_by_role("link", name="Clusters")).to_be_visible()
        expect(page.get_by_role("link", name="Settings")).to_have_count(0)
        expect(page.get_by_role("link", name="Credit")).to_have_count(0)
        page.goto("/runs")
        expect(page.get_by_role("link", name="shop/export, succeeded").first).to_be_visible()
        expect(page.get_by_role("checkbox")).to_have_count(0)
        assert look_in_both_themes(page) == []
    with watched(browser, service.url, is_quiet=False, extra_http_headers=headers) as page:
        page.goto("/settings")
        expect(page.get_by_role("alert")).to_contain_text("it lacks the permission setting.read")


def test_who_is_signed_in_is_shown_and_signed_out(browser: Browser, service: Service) -> None:
    secret = httpx.post(
        f"{service.url}/schedulerService/token", json={"name": "anna", "grants": [{"role": "viewer"}]}
    ).json()["secret"]
    bearer = {"authorization": f"Bearer {secret}"}
    assert httpx.post(f"{service.url}/schedulerService/session", headers=bearer).status_code == 200
    with watched(browser, service.url) as page:
        page.goto("/settings/tokens")
        rows = page.get_by_role("region", name="Who is signed in").get_by_role("row")
        expect(rows.filter(has_text="anna")).to_contain_text("the token anna")
        assert look_in_both_themes(page) == []
        rows.get_by_role("button", name="Sign out …").click()
        page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
        expect(page.get_by_text("A browser of anna is signed out.")).to_be_visible()
        expect(rows).to_have_count(0)
    assert httpx.get(f"{service.url}/schedulerService/sessions").json()["sessions"] == []
