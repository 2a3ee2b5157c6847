"""The zone of this machine is found wherever it is written, and never guessed."""

from importlib.resources import files
from pathlib import Path

import pytest

from clickclock.cli.machine_zone import machine_zone
from clickclock.foundation.errors import ConfigurationError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine without any zone."""
    (tmp_path / "etc").mkdir()
    return tmp_path


def compiled(name: str) -> bytes:
    """The file of a zone, as the program has it."""
    return files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


@pytest.mark.parametrize("said", ["Europe/Berlin", ":Europe/Berlin", ":/usr/share/zoneinfo/Europe/Berlin"])
def test_tz_comes_first(root: Path, said: str) -> None:
    (root / "etc" / "timezone").write_text("Asia/Tokyo\n")
    assert machine_zone({"TZ": said}, root) == "Europe/Berlin"


def test_a_link_says_it_by_its_target(root: Path) -> None:
    (root / "etc" / "localtime").symlink_to("/usr/share/zoneinfo/America/New_York")
    assert machine_zone({}, root) == "America/New_York"


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Etc/UTC", "Pacific/Apia"])
def test_a_copy_says_it_by_its_content(root: Path, name: str) -> None:
    (root / "etc" / "localtime").write_bytes(compiled(name))
    assert machine_zone({}, root) == name
    assert machine_zone({"TZ": ""}, root) == name


def test_of_zones_that_are_alike_the_noted_one_is_meant(root: Path) -> None:
    (root / "etc" / "localtime").write_bytes(compiled("Europe/Oslo"))
    (root / "etc" / "timezone").write_text("Europe/Oslo\n")
    assert machine_zone({}, root) == "Europe/Oslo"
    (root / "etc" / "timezone").write_text("Asia/Tokyo\n")  # left from before: the clock decides
    assert machine_zone({}, root) == "Europe/Berlin"


def test_a_copy_of_another_release_says_it_by_its_times(root: Path) -> None:
    ours = compiled("Asia/Kolkata")
    (root / "etc" / "localtime").write_bytes(ours.replace(b"\nIST-5:30\n", b"\nXYZ-5:30\n"))
    assert (root / "etc" / "localtime").read_bytes() != ours
    assert machine_zone({}, root) in {"Asia/Kolkata", "Asia/Colombo", "Asia/Calcutta"}


def test_without_a_clock_the_note_is_taken(root: Path) -> None:
    (root / "etc" / "timezone").write_text("Asia/Tokyo\n")
    assert machine_zone({}, root) == "Asia/Tokyo"


@pytest.mark.parametrize("clock", [None, b"no zone", b""])
def test_what_is_not_known_is_said(root: Path, clock: bytes | None) -> None:
    if clock is not None:
        (root / "etc" / "localtime").write_bytes(clock)
    with pytest.raises(ConfigurationError) as refused:
        machine_zone({}, root)
    assert "Give --time-zone" in refused.value.faults[0].message


def test_rules_in_tz_are_no_name(root: Path) -> None:
    (root / "etc" / "timezone").write_text("Europe/Berlin\n")
    with pytest.raises(ConfigurationError) as refused:
        machine_zone({"TZ": "CET-1CEST,M3.5.0,M10.5.0/3"}, root)
    assert "no IANA name" in refused.value.faults[0].message
