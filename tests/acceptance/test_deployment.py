"""What is in `deploy/`: the chart as Helm renders it, the manifests, the unit and the compose file."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from clickclock.foundation.access import Mode
from clickclock.foundation.config import NOT_SETTINGS, PREFIX, Config, load

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "clickclock"
KUBERNETES = "1.36"
TRUSTED = "insecureNoAuthentication=true"
COLLECTORS = ("collectors.enabled=true", "config.lake_url=s3://bucket/clickclock")

helm = pytest.mark.needs("helm")


def rendered(*settings: str) -> list[dict[str, Any]]:
    done = template(*settings)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def template(*settings: str) -> subprocess.CompletedProcess[str]:
    words = ["helm", "template", "shop", str(CHART), "--namespace", "jobs"]
    for setting in settings:
        words += ["--set", setting]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def named(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (found,) = (each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def manifests(file: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(file.read_text()) if each]


@helm
@pytest.mark.parametrize(
    "settings",
    [
        (TRUSTED,),
        (TRUSTED, "jobs.enabled=false"),
        (TRUSTED, *COLLECTORS),
        (TRUSTED, *COLLECTORS, "scheduler.volume.enabled=false"),
        (
            TRUSTED,
            "networkPolicy.egress[0].ports[0].port=5432",
            "networkPolicy.schedulerFrom[0].namespaceSelector.matchLabels.name=ingress",
        ),
    ],
)
def test_all_that_the_chart_makes_is_what_kubernetes_takes(settings: tuple[str, ...]) -> None:
    objects = rendered(*settings)
    assert {"StatefulSet", "PodDisruptionBudget", "NetworkPolicy"} <= {each["kind"] for each in objects}
    for each in objects:
        kubernetes_validate.validate(each, KUBERNETES, strict=True)


@helm
@pytest.mark.parametrize("component", ["scheduler", "collector"])
def test_every_replica_has_a_volume_of_its_own_that_stays(component: str) -> None:
    replicas = named(rendered(TRUSTED, *COLLECTORS), "StatefulSet", f"shop-clickclock-{component}")["spec"]
    assert [claim["metadata"]["name"] for claim in replicas["volumeClaimTemplates"]] == ["data"]
    assert set(replicas["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}
    assert "data" not in [volume["name"] for volume in replicas["template"]["spec"]["volumes"]]


@helm
def test_a_scheduler_whose_output_need_not_stay_has_no_volume_and_collectors_keep_theirs() -> None:
    objects = rendered(TRUSTED, *COLLECTORS, "scheduler.volume.enabled=false")
    scheduler = named(objects, "StatefulSet", "shop-clickclock-scheduler")["spec"]
    assert "volumeClaimTemplates" not in scheduler
    assert {"name": "data", "emptyDir": {}} in scheduler["template"]["spec"]["volumes"]
    assert "volumeClaimTemplates" in named(objects, "StatefulSet", "shop-clickclock-collector")["spec"]


@helm
@pytest.mark.parametrize("component", ["scheduler", "collector"])
def test_replicas_reach_each_other_at_their_pods_addresses(component: str) -> None:
    pod = named(rendered(TRUSTED, *COLLECTORS), "StatefulSet", f"shop-clickclock-{component}")["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    variables = {each["name"]: each for each in container["env"]}
    assert variables["POD_IP"]["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
    assert variables["CLICKCLOCK_ADVERTISE_URL"]["value"] == "http://$(POD_IP):8080"
    assert load(None, {"CLICKCLOCK_ADVERTISE_URL": "http://10.0.0.7:8080"}, {}).advertise_url == "http://10.0.0.7:8080"


@helm
def test_the_configuration_of_the_chart_is_one_that_the_service_takes(tmp_path: Path) -> None:
    settings = (*COLLECTORS, "config.process_slots=50", "config.clusters.other.executor=kubernetes")
    objects = rendered(TRUSTED, *settings)
    for component, clicks in (("scheduler", False), ("collector", True)):
        file = tmp_path / f"{component}.toml"
        file.write_text(named(objects, "ConfigMap", f"shop-clickclock-{component}")["data"]["clickclock.toml"])
        config = load(file, {}, {})
        assert (config.clicks, config.process_slots, config.lake_url) == (clicks, 50, "s3://bucket/clickclock")
        assert set(config.clusters) == {"kubernetes", "other"}
        assert config.clusters["kubernetes"]["namespace"] == "jobs"


@helm
def test_the_scheduler_of_the_chart_wants_tokens_unless_it_is_told_that_this_is_safe(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.toml"
    for settings, mode, is_insecure in (((), Mode.TOKENS, False), ((TRUSTED,), Mode.NONE, True)):
        objects = rendered(*settings, *COLLECTORS)
        file.write_text(named(objects, "ConfigMap", "shop-clickclock-collector")["data"]["clickclock.toml"])
        config = load(file, {}, {})
        assert (config.orders_need_token, config.insecure_no_authentication) == (not is_insecure, is_insecure)
        file.write_text(named(objects, "ConfigMap", "shop-clickclock-scheduler")["data"]["clickclock.toml"])
        config = load(file, {}, {})
        assert (config.access, config.insecure_no_authentication, config.host) == (mode, is_insecure, "0.0.0.0")  # noqa: S104 (as the chart has it)


@helm
def test_secrets_are_files_of_the_pod_and_tls_is_what_is_asked_for(tmp_path: Path) -> None:
    shop = ("jobSecrets[0].application=shop", "jobSecrets[0].secretName=shop-keys")
    objects = rendered(TRUSTED, *COLLECTORS, "tls.secretName=clickclock-tls", "orderTokens.secretName=digests", *shop)
    for component in ("scheduler", "collector"):
        file = tmp_path / f"{component}.toml"
        file.write_text(named(objects, "ConfigMap", f"shop-clickclock-{component}")["data"]["clickclock.toml"])
        config = load(file, {}, {})
        assert (str(config.tls_certificate), str(config.tls_key)) == tuple(
            f"/etc/clickclock-tls/tls.{each}" for each in ("crt", "key")
        )
        pod = named(objects, "StatefulSet", f"shop-clickclock-{component}")["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
        secrets = {each["name"]: each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
        assert secrets[mounts["/etc/clickclock-tls"]] == "clickclock-tls"
        assert secrets[mounts[f"{config.secrets_dir}/shop"]] == "shop-keys"
        mounted = secrets.get(mounts.get(str(config.order_tokens.parent), ""))
        assert mounted == ("digests" if component == "collector" else None)
        assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
        assert {"name": "CLICKCLOCK_ADVERTISE_URL", "value": "https://$(POD_IP):8080"} in container["env"]
        assert "envFrom" not in container


@helm
def test_a_whole_number_in_a_file_of_values_is_one_in_the_configuration(tmp_path: Path) -> None:
    """Helm reads those of a file as 3.0, and those of `--set` as 3."""
    values = tmp_path / "values.yaml"
    models = {"third": {"model": "markov", "order": 3}, "decay": {"model": "time_decay", "half_life_ms": 0.5}}
    windows = [{"channel": "meta", "days": 5}]
    values.write_text(
        yaml.safe_dump(
            {
                "insecureNoAuthentication": True,
                "config": {
                    "request_body_bytes_max": 123456789,
                    "attribution_models": models,
                    "accounts": [{"client_id": "shop-1", "attribution": {"windows": windows}}],
                },
                "jobs": {"options": {"pod_template": {"spec": {"securityContext": {"supplementalGroups": [2000]}}}}},
            }
        )
    )
    words = ["helm", "template", "shop", str(CHART), "--namespace", "jobs", "--values", str(values)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    objects = [each for each in yaml.safe_load_all(done.stdout) if each]
    text = named(objects, "ConfigMap", "shop-clickclock-scheduler")["data"]["clickclock.toml"]
    assert re.findall(r"^\s*(\w+) = (\[?[\d.e+]+\]?)$", text, re.MULTILINE) == [
        ("click_port", "8081"),
        ("port", "8080"),
        ("request_body_bytes_max", "123456789"),
        ("days", "5"),
        ("half_life_ms", "0.5"),
        ("order", "3"),
        ("capacity", "100"),
        ("supplementalGroups", "[2000]"),
    ]


@helm
@pytest.mark.parametrize("component", ["scheduler", "collector"])
def test_a_budget_of_disruptions_says_one_thing(component: str) -> None:
    """Kubernetes refuses one that says both."""

    def said(*settings: str) -> dict[str, Any]:
        budget = named(rendered(TRUSTED, *COLLECTORS, *settings), "PodDisruptionBudget", f"shop-clickclock-{component}")
        return {name: value for name, value in budget["spec"].items() if name != "selector"}

    assert said() == {"maxUnavailable": 1}
    values = "collectors" if component == "collector" else component
    assert said(f"{values}.podDisruptionBudget.minAvailable=1") == {"minAvailable": 1}
    assert said(f"{values}.podDisruptionBudget.maxUnavailable=50%") == {"maxUnavailable": "50%"}


@helm
@pytest.mark.parametrize("component", ["scheduler", "collector"])
def test_no_service_of_the_namespace_gets_into_the_settings(component: str) -> None:
    """A Service called clickclock, as a release of that name has it, is told of in the variable CLICKCLOCK_PORT."""
    pod = named(rendered(TRUSTED, *COLLECTORS), "StatefulSet", f"shop-clickclock-{component}")["spec"]["template"]
    assert pod["spec"]["enableServiceLinks"] is False


@helm
def test_egress_is_limited_only_where_the_values_say_what_is_reached() -> None:
    policy = named(rendered(TRUSTED), "NetworkPolicy", "shop-clickclock")["spec"]
    assert (policy["policyTypes"], "egress" in policy) == (["Ingress"], False)
    objects = rendered(TRUSTED, "networkPolicy.egress[0].ports[0].port=5432")
    policy = named(objects, "NetworkPolicy", "shop-clickclock")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["egress"][0] == {"ports": [{"port": 5432}]}
    assert policy["egress"][1]["ports"] == [{"port": "http"}]


@helm
def test_a_change_of_the_configuration_replaces_the_pods() -> None:
    def checksum(*settings: str) -> str:
        pod = named(rendered(TRUSTED, *settings), "StatefulSet", "shop-clickclock-scheduler")["spec"]["template"]
        return str(pod["metadata"]["annotations"]["checksum/config"])

    assert checksum() == checksum()
    assert checksum() != checksum("config.process_slots=7")


@helm
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ((TRUSTED, "collectors.enabled=true"), "set config.lake_url to an object store"),
        ((TRUSTED, "scheduler.replicas=0"), "/scheduler/replicas"),
        ((TRUSTED, "schedular.replicas=3"), "schedular"),
        ((TRUSTED, "image.pullPolicy=Sometimes"), "/image/pullPolicy"),
        (
            (TRUSTED, "scheduler.podDisruptionBudget.minAvailable=1", "scheduler.podDisruptionBudget.maxUnavailable=1"),
            "/scheduler/podDisruptionBudget",
        ),
    ],
)
def test_values_that_cannot_work_are_refused_with_what_to_do(settings: tuple[str, ...], says: str) -> None:
    done = template(*settings)
    assert done.returncode != 0
    assert says in done.stderr


@helm
def test_the_chart_grants_what_the_manifest_grants_and_nothing_else() -> None:
    chart, manifest = rendered(TRUSTED), manifests(DEPLOY / "kubernetes" / "rbac.yaml")
    for kind in ("Role", "ClusterRole"):
        (ours,) = (each["rules"] for each in chart if each["kind"] == kind)
        (theirs,) = (each["rules"] for each in manifest if each["kind"] == kind)
        assert ours == theirs


@helm
def test_without_jobs_on_kubernetes_the_pods_hold_no_token() -> None:
    objects = rendered(TRUSTED, "jobs.enabled=false")
    assert not [each for each in objects if "Role" in each["kind"]]
    pod = named(objects, "StatefulSet", "shop-clickclock-scheduler")["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False


@pytest.mark.parametrize("file", sorted((DEPLOY / "kubernetes").glob("*.yaml")), ids=lambda file: file.name)
def test_every_manifest_is_what_kubernetes_takes(file: Path) -> None:
    for each in manifests(file):
        kubernetes_validate.validate(each, KUBERNETES, strict=True)


@pytest.mark.needs("systemd-analyze")
def test_systemd_understands_the_unit_and_leaves_jobs_alone(tmp_path: Path) -> None:
    text = (DEPLOY / "systemd" / "clickclock.service").read_text()
    assert "\nKillMode=process\n" in text
    assert "\nPrivateTmp=" not in text
    program = shutil.which("clickclock", path=str(Path(sys.executable).parent))
    unit = tmp_path / "clickclock.service"
    unit.write_text(text.replace("/opt/clickclock/bin/clickclock", str(program)))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.needs("helm")
def test_pods_keep_to_the_restricted_standard_of_kubernetes() -> None:
    """Its rules, one by one: https://kubernetes.io/docs/concepts/security/pod-security-standards/."""
    made = rendered("collectors.enabled=true", "config.lake_url=s3://clicks/lake")
    pods = [each["spec"]["template"]["spec"] for each in made if "template" in each.get("spec", {})]
    assert len(pods) > 1
    for pod in pods:
        of_pod = pod["securityContext"]
        assert of_pod["runAsNonRoot"] is True
        assert of_pod["runAsUser"] != 0
        assert of_pod["seccompProfile"]["type"] == "RuntimeDefault"
        assert not any(pod.get(shared) for shared in ("hostNetwork", "hostPID", "hostIPC"))
        volumes = {kind for volume in pod.get("volumes", ()) for kind in volume.keys() - {"name"}}
        assert volumes <= {"configMap", "emptyDir", "secret", "projected", "persistentVolumeClaim"}
        for container in (*pod["containers"], *pod.get("initContainers", ())):
            of_container = container["securityContext"]
            assert of_container["allowPrivilegeEscalation"] is False
            assert of_container["capabilities"] == {"drop": ["ALL"]}
            assert not of_container.get("privileged")
            assert not any("hostPort" in port for port in container.get("ports", ()))


@pytest.mark.needs("systemd-analyze")
def test_systemd_finds_the_unit_little_exposed(tmp_path: Path) -> None:
    """From 0 to 10; a unit without any of it has 9.2, and what jobs need for sure leaves some."""
    unit = tmp_path / "clickclock.service"
    unit.write_text((DEPLOY / "systemd" / "clickclock.service").read_text())
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=30", "--no-pager", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "Overall exposure level" in done.stdout


def test_the_compose_file_names_settings_and_files_that_there_are() -> None:
    compose = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
    for name, service in compose["services"].items():
        given = {key: value for key, value in service.get("environment", {}).items() if key.startswith(PREFIX)}
        config = load(None, given, {})
        # Without allowed_hosts, any web page in a browser of this machine could get in by a name of its own.
        assert (config.access is Mode.TOKENS and config.allowed_hosts) or not given, name
        for volume in service["volumes"]:
            assert volume.partition(":")[0] in compose["volumes"]
        # What is published is this machine's own: anybody may send clicks.
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        if build := service.get("build"):
            context = (DEPLOY / "compose" / build["context"]).resolve()
            assert (context / build["dockerfile"]).is_file()


def entrypoint(secret: Path, pgpass: Path) -> subprocess.CompletedProcess[str]:
    """What a container of the compose file does first, with `echo` in clickclock's place."""
    service = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]["one"]
    shell, flags, script, *rest = (word.replace("$$", "$") for word in service["entrypoint"])
    given = service["secrets"][0]
    script = script.replace(f"/run/secrets/{given}", str(secret)).replace("exec clickclock", "exec echo")
    environment = {"PATH": "/usr/bin:/bin", "PGPASSFILE": str(pgpass)}
    words = [shell, flags, script, *rest, *service["command"]]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def test_a_container_without_its_password_does_not_start_and_says_so(tmp_path: Path) -> None:
    """It went on with an empty one, and the database was said to refuse it."""
    secret, pgpass = tmp_path / "secret", tmp_path / "pgpass"
    done = entrypoint(secret, pgpass)
    assert (done.returncode, done.stdout, pgpass.exists()) == (1, "", False)
    assert "No such file" in done.stderr
    secret.write_text("abc\n")
    done = entrypoint(secret, pgpass)
    assert (done.returncode, done.stdout) == (0, "serve\n")
    assert pgpass.read_text() == "postgresql:5432:clickclock:clickclock:abc\n"


def test_the_password_that_the_compose_file_asks_for_is_no_part_of_the_repository() -> None:
    secrets = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["secrets"]
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    for secret in secrets.values():
        assert f"/deploy/compose/{secret['file']}" in ignored


def test_the_image_is_made_of_files_that_there_are_and_settings_that_there_are() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    let_through = (ROOT / ".containerignore").read_text().splitlines()
    for words in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE):
        for source in (word.partition("/")[0] for word in words.split()[:-1]):
            assert (ROOT / source).exists(), source
            assert f"!{source}" in let_through, f"{source} does not reach the build"
    for variable in re.findall(rf"{PREFIX}\w+", text):
        assert variable in NOT_SETTINGS or variable.removeprefix(PREFIX).lower() in Config.model_fields, variable


def test_the_schema_of_the_values_knows_each_of_them() -> None:
    """A value that the schema does not know would be refused, and one that only it knows does nothing."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values) == set(schema["properties"]) - {"global"}
    for name, value in values.items():
        known = schema["properties"][name].get("properties")
        if known is not None:
            assert set(value) == set(known), name
