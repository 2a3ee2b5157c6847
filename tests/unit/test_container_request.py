"""A launch in the engine's words, and an exit read from its state."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from clickclock.scheduler.executors.container.options import ContainerOptions
from clickclock.scheduler.executors.container.request import Circumstances, creation, exit_of
from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.trigger import Exit, ExitKind

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
PLAIN = ContainerOptions()


def body(options: ContainerOptions = PLAIN, **fields: Any) -> dict[str, Any]:
    launch = Launch(**{"name": "t-1", "argv": ("run", "it"), "image": "busybox", **fields})
    return creation(launch, options, cluster="boxes", owner="host-1")


def ended(code: int, output: bytes = b"", asked: ExitKind | None = None, **state: Any) -> Exit:
    told = {"ExitCode": code, "StartedAt": "2026-11-21T09:59:58.1239Z", "FinishedAt": "2026-11-21T09:59:59Z", **state}
    return exit_of(told, NOW, Circumstances(asked, timedelta(0), "run", output))


def test_the_command_takes_the_place_of_the_images_entry_point() -> None:
    assert (body()["Entrypoint"], body()["Cmd"]) == (["run", "it"], [])


def test_the_jobs_variables_go_over_its_secrets_and_both_over_the_clusters() -> None:
    options = ContainerOptions(environment={"A": "cluster", "B": "cluster", "C": "cluster"})
    made = body(options, environment={"A": "job"}, secrets={"A": "secret", "B": "secret"})
    assert made["Env"] == ["A=job", "B=secret", "C=cluster"]


def test_limits_are_told_in_the_engines_units() -> None:
    host = body(ContainerOptions(ulimits={"nofile": "1:2", "core": "0"}), cpu=0.5, memory_bytes=64 << 20)["HostConfig"]
    assert (host["NanoCpus"], host["Memory"], host["MemorySwap"]) == (500_000_000, 64 << 20, 64 << 20)
    assert {"Name": "nofile", "Soft": 1, "Hard": 2} in host["Ulimits"]
    assert {"Name": "core", "Soft": 0, "Hard": 0} in host["Ulimits"]


def test_no_label_of_the_cluster_hides_whose_a_container_is() -> None:
    labels = body(ContainerOptions(labels={"clickclock.attempt": "x", "team": "y"}), timeout_s=1.5)["Labels"]
    assert (labels["clickclock.attempt"], labels["team"], labels["clickclock.timeout-s"]) == ("t-1", "y", "1.5")


CATATONIT = b"ERROR (catatonit:6): failed to exec pid1: No such file or directory\n"
TINI = b"[FATAL tini (7)] exec run failed: No such file or directory\n"


@pytest.mark.parametrize(
    ("exit_", "kind", "code", "signal"),
    [
        (ended(0), ExitKind.CODE, 0, None),
        (ended(3), ExitKind.CODE, 3, None),
        (ended(128 + 15), ExitKind.SIGNAL, None, 15),
        (ended(255), ExitKind.CODE, 255, None),
        (ended(137, OOMKilled=True), ExitKind.SIGNAL, None, 9),
        (ended(0, OOMKilled=True), ExitKind.CODE, 0, None),
        (ended(3, OOMKilled=True), ExitKind.CODE, 3, None),
        (ended(137, OOMKilled=True, asked=ExitKind.STOPPED), ExitKind.STOPPED, None, 9),
        (ended(0, asked=ExitKind.TIMEOUT), ExitKind.TIMEOUT, 0, None),
        (ended(1, CATATONIT), ExitKind.NOT_STARTED, None, None),
        (ended(127, TINI), ExitKind.NOT_STARTED, None, None),
        (ended(1, b"before\n" + CATATONIT), ExitKind.CODE, 1, None),
    ],
)  # fmt: skip
def test_codes_signals_and_commands_that_never_started_are_told_apart(
    exit_: Exit, kind: ExitKind, code: int | None, signal: int | None
) -> None:
    assert (exit_.kind, exit_.code, exit_.signal) == (kind, code, signal)


def test_too_little_memory_is_named_as_the_reason() -> None:
    assert "memory" in (ended(137, OOMKilled=True).message or "")


def test_an_end_is_never_before_its_beginning_and_is_now_where_the_engine_knows_none() -> None:
    set_back = ended(0, FinishedAt="2026-11-21T09:00:00Z")
    assert set_back.started_at == set_back.finished_at == datetime(2026, 11, 21, 9, 59, 58, 123_000, UTC)
    assert ended(0, StartedAt="0001-01-01T00:00:00Z", FinishedAt="0001-01-01T00:00:00Z").finished_at == NOW


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"engine": "http://x"}, "engine"),
        ({"engine": "unix:relative"}, "engine"),
        ({"capacity": 0}, "capacity"),
        ({"mounts": ["nowhere"]}, "mounts"),
        ({"ulimits": {"nofile": "many"}}, "ulimits"),
        ({"pull_policy": "sometimes"}, "pull_policy"),
        ({"tls_key": "/key"}, "tls_key"),
        ({"networks": "x"}, "networks"),
    ],
)
def test_an_option_that_is_wrong_is_named(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ContainerOptions.model_validate(options)
    assert [each["loc"][0] for each in caught.value.errors()] == [field]


def test_a_container_has_no_rights_but_those_that_the_cluster_gives_it() -> None:
    host = body()["HostConfig"]
    assert (host["CapDrop"], host["SecurityOpt"], "CapAdd" in host) == (["ALL"], ["no-new-privileges"], False)
    assert body(ContainerOptions(capabilities=("CHOWN",)))["HostConfig"]["CapAdd"] == ["CHOWN"]
    assert body(ContainerOptions(restricted=False))["HostConfig"] == {"Init": True}
