"""Errors that only a broken surrounding causes: each is raised for real, and says what to do."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from clickclock import demo
from clickclock.app.backup.place import Folder, PlaceFailed
from clickclock.client import Client
from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.executors.container.engine import Engine, EngineUnreachable
from clickclock.scheduler.executors.container.options import ContainerOptions
from clickclock.scheduler.executors.kubernetes.api import (
    Gone,
    Removed,
    RuntimeDown,
    Unreachable,
    _raise_for,
    without_excuses,
)
from clickclock.scheduler.identity_provider import IdentityProvider, ProviderUnreachable, SignInRefused
from clickclock.scheduler.store.pg_tools import ToolFailed, rows_of
from tests.api.test_sign_in import config


async def pieces(*texts: bytes) -> AsyncIterator[bytes]:
    for each in texts:
        yield each


@pytest.mark.parametrize(
    ("excuse", "error"),
    [
        (b'rpc error: code = NotFound desc = could not find container "x"', Removed),
        (b"rpc error: code = Unavailable desc = connection refused", RuntimeDown),
        (b"unable to retrieve container logs for containerd://x", Unreachable),
    ],
)
async def test_an_output_that_cannot_be_read_on_says_why(excuse: bytes, error: type[Exception]) -> None:
    output = without_excuses(pieces(b"one\n", excuse[:9], excuse[9:]))
    assert await anext(output) == b"one\n"
    with pytest.raises(error):
        await anext(output)


def test_a_version_that_the_api_server_has_no_more_is_listed_anew() -> None:
    with pytest.raises(Gone, match="too old resource version"):
        _raise_for(httpx.Response(410, json={"message": "too old resource version: 1 (9)"}))


async def test_an_identity_provider_that_is_not_there_or_is_another_is_told() -> None:
    provider = IdentityProvider(config("http://127.0.0.1:1"), "hush", SystemClock())
    with pytest.raises(ProviderUnreachable):
        await provider.begin()
    with pytest.raises(SignInRefused, match=r"correct oidc\.issuer"):
        provider._issuer({"issuer": "https://another.example.com"})


async def test_an_engine_that_is_not_there_is_named_with_why(tmp_path: Path) -> None:
    engine = Engine(ContainerOptions(engine=f"unix://{tmp_path}/none.sock"))
    with pytest.raises(EngineUnreachable, match=r"none\.sock does not answer"):
        await engine.ping()
    await engine.close()


def test_a_place_for_backups_that_is_no_folder_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(PlaceFailed, match="make it a folder that this user may read and write"):
        Folder(tmp_path / "file").write("parts/a", b"x")


def test_a_program_of_postgresql_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolFailed, match="pg_restore is not in the PATH"), rows_of(tmp_path / "archive"):
        pass


def test_a_demonstration_whose_orders_never_come_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "WITHIN_S", 0.0)
    with (
        Client("http://127.0.0.1:1") as client,
        pytest.raises(demo.NotThere, match="jobs of the application attribution"),
    ):
        demo.credited(client, demo.Shop([], []), SystemClock())
