"""An attempt's own token, wherever attempts run: it may what its role may in its application, and dies with it."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.acceptance.caller import Caller
from tests.acceptance.clicking import until
from tests.acceptance.service import running
from tests.container_engine import IMAGE, ContainerEngine
from tests.contract.kubernetes_double import KubernetesDouble

FETCH = {
    "local": 'curl -sS -H "$0"',
    "boxes": 'wget -q -O - --header "$0"',
    "prod": 'curl -sS -H "$0"',
}
"""What an attempt asks with, by its cluster: a container of busybox has no curl."""
BOXES = '[clusters.boxes]\nexecutor = "container"\nengine = "{address}"\nnetwork = "host"\n'
PROD = '[clusters.prod]\nexecutor = "kubernetes"\nkubeconfig = "{kubeconfig}"\n'
# The log hides a token, so it is printed backwards.
COMMAND = (
    """sh -c 'set -- "$CLICKCLOCK_URL/schedulerService"; exec 2>&1; """
    """ask() {{ set -- "$1"; sh -c '"'"'{fetch} "$1"'"'"' "Authorization: Bearer $CLICKCLOCK_TOKEN" "$1"; echo; }}; """
    """ask "$1/whoami"; ask "$1/job?application=shop"; ask "$1/job?application=other"; """
    """echo "$CLICKCLOCK_TOKEN" | rev; echo "$CLICKCLOCK_TOKEN"'"""
)


@pytest.fixture(
    params=[
        pytest.param("local", marks=pytest.mark.needs("curl")),
        pytest.param("boxes", marks=pytest.mark.needs("podman", "runc", "busybox")),
        pytest.param("prod", marks=pytest.mark.needs("curl")),
    ]
)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """A cluster's name, and the options of a service that has it."""
    name, settings = request.param, tmp_path / "clickclock.toml"
    with ExitStack() as opened:
        text = ""
        if name == "boxes":
            engine: ContainerEngine = request.getfixturevalue("engine_for_all")
            text = BOXES.format(address=engine.address)
        if name == "prod":
            double = opened.enter_context(KubernetesDouble(tmp_path / "cluster"))
            text = PROD.format(kubeconfig=double.kubeconfig)
        settings.write_text(text)
        yield name, ["--config", str(settings)]


def test_an_attempts_token_works_where_it_runs_and_dies_with_it(cluster: tuple[str, list[str]], tmp_path: Path) -> None:
    name, options = cluster
    with running(tmp_path / "data", *options) as service:
        caller = Caller(service, cluster=name, **({} if name == "local" else {"image": IMAGE}))
        other = {"application": "other", "jobName": "secret", "command": "true"}
        assert caller.ask("POST", "job", json=other).status_code == 201
        trigger_id = caller.run("asks", COMMAND.format(fetch=FETCH[name]), token="operator")
        assert caller.ended(trigger_id)["state"] == "succeeded", caller.get("jobLog", triggerId=trigger_id)
        who, own, others, backwards, hidden = caller.get("jobLog", triggerId=trigger_id).splitlines()
        found = json.loads(who)["whoami"]
        assert (found["kind"], found["name"], found["grants"]) == (
            "attempt",
            "shop/asks",
            [{"role": "operator", "applications": ["shop"], "clients": []}],
        )
        assert [each["jobName"] for each in json.loads(own)["jobs"]] == ["asks"]
        assert json.loads(others)["jobs"] == []
        assert hidden == "***"
        token = backwards[::-1]
        assert token.startswith("cck_")

        def status() -> int:
            headers = {"authorization": f"Bearer {token}"}
            return caller.ask("GET", "whoami", headers=headers).status_code

        # Keys are remembered for two seconds.
        until(lambda: status() == httpx.codes.UNAUTHORIZED, "the token is dead")
