"""Who is answered: the service's own user and root, by the kernel's word, and nobody else of this machine."""

import getpass
import http.client
import json
import multiprocessing
import os
import re
import subprocess
import sys
import time
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser

from tests.acceptance.dashboard import look_in_both_themes, watched
from tests.acceptance.service import running
from tests.identity import provider
from tests.ports import free_port

NOBODY = 65534
OPEN = {"/healthz", "/livez", "/readyz"}
"""What everybody may ask."""


def _ask(url: str, routes: list[tuple[str, str]], answers: Connection) -> None:
    """As another user of this machine, in a process of its own."""
    os.setuid(NOBODY)
    told = []
    for method, path in routes:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        connection.request(method, f"{path}?limit=1", headers={"X-Forwarded-User": "root"})
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
        routes = [
            (method.upper(), path)
            for path, methods in paths.items()
            for method, operation in methods.items()
            if path not in OPEN and {} not in operation.get("security", [])
        ]
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


def clickclock(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end."""
    environment = {**os.environ, "PYTHONPATH": "src", **variables}
    command = [sys.executable, "-m", "clickclock.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)


def _sign_in_and_out(browser: Browser, url: str, token: str) -> None:
    with watched(browser, url, is_quiet=False) as page:
        page.goto("/jobs")
        page.get_by_role("heading", name="Sign in").wait_for()
        assert look_in_both_themes(page) == []
        page.get_by_label("Token").fill(f"{token[:-1]}!")
        page.get_by_label("Token").press("Enter")
        page.get_by_text("This is no token of clickclock").wait_for()
        page.get_by_label("Token").fill(token)
        page.get_by_label("Token").press("Enter")
        page.get_by_role("link", name="attribution/compaction").first.wait_for()
        (kept,) = page.context.cookies()
        session = kept["value"]
        assert (session[:4], kept["httpOnly"], kept["sameSite"]) == ("ccs_", True, "Strict")
        scripts = page.evaluate("document.cookie + JSON.stringify({...localStorage, ...sessionStorage})")
        assert token not in scripts
        assert session not in scripts
        page.reload()
        page.get_by_role("status").get_by_text("Live").wait_for()
        page.get_by_text("More").click()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("heading", name="Sign in").wait_for()
        assert page.context.cookies() == []


def _sign_in_by_link_and_let_a_command_line_in(browser: Browser, url: str, token: str, settings: Path) -> None:
    link = clickclock(
        "open", "/runs?state=failed", "--print", CLICKCLOCK_URL=url, CLICKCLOCK_TOKEN=token
    ).stdout.strip()
    assert token not in link
    with watched(browser, url, is_quiet=False) as page:
        page.goto(link)
        page.wait_for_url("**/runs?state=failed")
        asked = [sys.executable, "-m", "clickclock.cli", "login", url, "--name", "mine", "--no-browser"]
        environment = {**os.environ, "PYTHONPATH": "src", "XDG_CONFIG_HOME": str(settings)}
        waiting = subprocess.Popen(asked, stderr=subprocess.PIPE, text=True, env=environment)
        assert waiting.stderr is not None
        said = re.search(r"The code is (\S+)\. Let it in at (\S+)", waiting.stderr.readline())
        assert said is not None
        page.goto(said[2])
        page.get_by_text(said[1]).wait_for()
        assert look_in_both_themes(page) == []
        page.get_by_label("What it may do").select_option("admin")
        page.get_by_role("button", name="Let it in").click()
        page.get_by_text("more than you may yourself").wait_for()
        page.get_by_label("What it may do").select_option("")
        page.get_by_role("button", name="Let it in").click()
        page.get_by_text("It is in").wait_for()
        waiting.stderr.close()
        assert waiting.wait(timeout=30) == 0
    told = clickclock("--context", "mine", "whoami", "--json", XDG_CONFIG_HOME=str(settings))
    assert json.loads(told.stdout)["whoami"]["grants"][0]["role"] == "viewer"


@pytest.mark.needs("chromium")
def test_the_first_token_is_made_on_the_host_and_opens_a_service_that_others_reach(
    tmp_path: Path, browser: Browser
) -> None:
    data, first = tmp_path / "data", tmp_path / "first.token"
    made = clickclock("token", "create", "first", "--role", "admin", "--data-dir", str(data))
    assert made.returncode == 0, made.stderr
    first.write_text(made.stdout)
    first_key = {"authorization": f"Bearer {made.stdout.strip()}"}
    with running(data, "--host", "0.0.0.0", "--authentication", "tokens", "--clicks", "--click-port", "0") as service:  # noqa: S104 (as the guide says)
        url = f"http://127.0.0.1:{service.url.rpartition(':')[2]}"
        assert httpx.get(f"{url}/schedulerService/jobTrigger").json() == {"status": "success"}
        refused = clickclock("--url", url, "job", "list")
        assert (refused.returncode, "wants a token" in refused.stderr) == (1, True)
        known = clickclock("--url", url, "--token-file", str(first), "whoami", "--json")
        assert json.loads(known.stdout)["whoami"]["name"] == "first"
        more = clickclock("--url", url, "token", "create", "watch", "--role", "viewer", CLICKCLOCK_TOKEN=made.stdout)
        viewer = {"CLICKCLOCK_URL": url, "CLICKCLOCK_TOKEN": more.stdout}
        deadline = time.monotonic() + 60
        key = {"authorization": f"Bearer {more.stdout.strip()}"}
        while "compaction" not in (jobs := httpx.get(f"{url}/schedulerService/job", headers=key)).text:
            assert time.monotonic() < deadline, jobs.text
        _sign_in_and_out(browser, url, more.stdout.strip())
        _sign_in_by_link_and_let_a_command_line_in(browser, url, more.stdout.strip(), tmp_path / "settings")
        told = clickclock("job", "create", "shop", "export", "--command", "true", **viewer)
        assert (told.returncode, "lacks the permission job.write" in told.stderr) == (1, True)
        # On the host, beside the running service: it hears of it within two seconds.
        assert clickclock("token", "revoke", "watch", "--data-dir", str(data)).returncode == 0
        while httpx.get(f"{url}/schedulerService/job", headers=key).status_code != 401:
            assert time.monotonic() < deadline
        listed = clickclock("token", "list", "--data-dir", str(data), "--json").stdout
        trail = httpx.get(f"{url}/schedulerService/audit?resource=token", headers=first_key).json()["records"]
        assert clickclock("--url", url, "--token-file", str(first), "audit", "verify").returncode == 0
    by_host = [(each["operation"], each["resourceId"]) for each in trail if each["proof"] == "host"]
    assert by_host == [("clickclock token revoke", "watch"), ("clickclock token create", "first")]
    assert {each["principal"].partition(" on ")[0] for each in trail if each["proof"] == "host"} == {getpass.getuser()}
    names = [each["name"] for each in json.loads(listed)["tokens"]]
    assert (names[:2], names[2].startswith("login "), names[2].endswith(" of watch")) == (
        ["first", "watch"],
        True,
        True,
    )
    assert made.stdout.strip() not in listed
    assert all(made.stdout.strip().encode() not in file.read_bytes() for file in data.iterdir() if file.is_file())


def test_the_guide_opens_a_service_to_a_team_command_by_command(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs/how-to/open-it-to-a-team.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ (.+)$", guide, re.MULTILINE)
    (serve,) = [each for each in commands if each.startswith("clickclock serve")]
    before, after = commands[: commands.index(serve)], commands[commands.index(serve) + 1 :]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def shell(lines: list[str], url: str) -> str:
        script = "\n".join(["set -e", *lines]).replace("http://127.0.0.1:8080", url)
        done = subprocess.run(
            ["sh", "-c", script],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    shell(before, "")
    options = serve.partition("--data-dir clickclock-data ")[2].split()
    with running(tmp_path / "clickclock-data", *options) as service:
        told = shell(after, f"http://127.0.0.1:{service.url.rpartition(':')[2]}")
    assert "hello" in told
    assert re.search(r"^first .*\d", told, re.MULTILINE), "it is listed with when it was revoked"


@pytest.mark.needs("chromium")
def test_a_person_signs_in_by_a_real_provider_in_a_browser(tmp_path: Path, browser: Browser) -> None:
    port = free_port()
    with provider([{"sub": "anna", "groups": ["ops"]}, {"sub": "bob", "groups": ["sales"]}]) as issuer:
        settings, secret = tmp_path / "clickclock.toml", tmp_path / "secret"
        secret.write_text("hush")
        settings.write_text(
            f'authentication = "tokens"\n[oidc]\nissuer = "{issuer}"\nclient_id = "clickclock"\nname = "Example ID"\n'
            f'client_secret_file = "{secret}"\n'
            f'public_url = "http://127.0.0.1:{port}"\nask = "the platform team"\n'
            '[[oidc.grants]]\ngroup = "ops"\nrole = "viewer"\n'
        )
        with (
            running(tmp_path / "data", "--config", str(settings), port=port) as service,
            closing(browser.new_context(base_url=service.url)) as context,
        ):
            page = context.new_page()
            for subject in ("bob", "anna"):
                page.goto("/jobs")
                page.get_by_role("link", name="Sign in with Example ID").click()
                page.locator("input[name=sub]").first.fill(subject)
                page.locator("form").filter(has=page.locator("input[name=sub]")).last.locator("button").first.click()
                if subject == "bob":
                    page.get_by_text("Ask the platform team for a role").wait_for()
            page.get_by_role("status").get_by_text("Live").wait_for()
            told = page.evaluate("fetch('/schedulerService/whoami').then((answer) => answer.json())")
            assert (told["whoami"]["kind"], told["whoami"]["name"]) == ("person", "anna")
            (kept,) = page.context.cookies(service.url)
            assert (kept["value"][:4], kept["httpOnly"], kept["sameSite"]) == ("ccs_", True, "Strict")
