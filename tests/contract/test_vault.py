"""The vault: what a job may be given, what it may not, and that a value shows in nothing that is said."""

import os
from pathlib import Path

import pytest

from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.secret import SecretRef
from clickclock.scheduler.vault import SECRET_BYTES_MAX, Vault


def launch(*refs: SecretRef, application: str = "shop") -> Launch:
    return Launch("t-1", ("true",), application=application, secret_refs=refs)


def file(name: str, variable: str = "V") -> SecretRef:
    return SecretRef(name=variable, file=name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Secrets of two applications."""
    for application in ("shop", "bank", "a%2Fb"):
        (tmp_path / application).mkdir()
    (tmp_path / "shop" / "key").write_text("of the shop\n")
    (tmp_path / "bank" / "key").write_text("of the bank")
    (tmp_path / "bank" / "vault").write_text("of the bank alone")
    (tmp_path / "a%2Fb" / "key").write_text("of a/b")
    return tmp_path


async def given(vault: Vault, wanted: Launch) -> dict[str, str] | str:
    """What an attempt gets, or why it gets nothing."""
    ready, lacking = await vault.fill([wanted])
    return dict(ready[0].secrets) if ready else lacking[wanted.name]


async def test_an_attempt_gets_its_own_applications_secret_without_the_lines_end(folder: Path) -> None:
    assert await given(Vault(folder, {}), launch(file("key"))) == {"V": "of the shop"}
    assert await given(Vault(folder, {}), launch(file("key"), application="bank")) == {"V": "of the bank"}
    assert await given(Vault(folder, {}), launch(file("key"), application="a/b")) == {"V": "of a/b"}


async def test_a_secret_of_another_application_is_not_there(folder: Path) -> None:
    told = await given(Vault(folder, {}), launch(file("vault")))
    assert told == "The secret file vault of shop cannot be read: No such file or directory."


async def test_an_application_whose_name_is_a_path_reaches_nothing_else(folder: Path) -> None:
    (folder / "top").write_text("of nobody")
    for application in (".", "..", "../bank", "shop/../bank"):
        assert isinstance(await given(Vault(folder / "shop", {}), launch(file("key"), application=application)), str)


async def test_a_value_is_read_anew_for_every_attempt(folder: Path) -> None:
    vault = Vault(folder, {})
    await given(vault, launch(file("key")))
    (folder / "shop" / "key").write_text("rotated")
    assert await given(vault, launch(file("key"))) == {"V": "rotated"}
    assert await vault.masks("shop") == {b"of the shop", b"rotated"}


async def test_of_the_environment_only_what_is_marked_for_jobs_can_be_had() -> None:
    vault = Vault(None, {"KEY": "1234"})
    assert await given(vault, launch(SecretRef(name="V", environment="KEY"))) == {"V": "1234"}
    told = await given(vault, launch(SecretRef(name="V", environment="PATH")))
    assert "no variable PATH for jobs" in str(told)


async def test_everything_that_is_missing_is_told_together_and_no_value_is(folder: Path) -> None:
    (folder / "shop" / "long").write_bytes(b"x" * (SECRET_BYTES_MAX + 1))
    (folder / "shop" / "nul").write_bytes(b"secret\0part")
    (folder / "shop" / "latin").write_bytes(b"gr\xfc\xdfe")
    (folder / "shop" / "folder").mkdir()
    os.mkfifo(folder / "shop" / "pipe")  # which nobody writes to: it is not waited for
    names = ["none", "long", "nul", "latin", "folder", "pipe"]
    told = await given(Vault(folder, {}), launch(*(file(name, f"V{n}") for n, name in enumerate(names))))
    assert all(f"secret file {name} " in str(told) for name in names)
    assert "part" not in str(told)
    assert "no secrets_dir" in str(await given(Vault(None, {}), launch(file("key"))))


async def test_what_needs_no_secret_is_left_as_it_is(folder: Path) -> None:
    wanted = launch()
    ready, lacking = await Vault(folder, {}).fill([wanted])
    assert ready[0] is wanted
    assert lacking == {}


async def test_all_that_an_applications_jobs_could_have_been_given_is_masked_and_nothing_else(folder: Path) -> None:
    (folder / "shop" / "short").write_text("abc")
    assert await Vault(folder, {"KEY": "of all"}).masks("shop") == {b"of the shop", b"of all"}
    assert await Vault(folder, {}).masks("nobody") == frozenset()


async def test_of_a_value_in_several_lines_each_long_one_is_masked_alone_too(folder: Path) -> None:
    (folder / "shop" / "key").write_text('{\n  "private": "abc",\n  "id": 1\n},\n')
    whole = b'{\n  "private": "abc",\n  "id": 1\n},'
    assert await Vault(folder, {}).masks("shop") == {whole, b'"private": "abc",'}


async def test_a_launch_does_not_show_its_secrets(folder: Path) -> None:
    ready, _ = await Vault(folder, {}).fill([launch(file("key"))])
    assert "of the shop" not in repr(ready)
