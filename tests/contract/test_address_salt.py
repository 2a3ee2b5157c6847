"""The salt of addresses in the data folder: kept for its days, then gone."""

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clickclock.app.address_salt import salt_of
from clickclock.app.data_folder import ADDRESS_SALT

NOON = datetime(2020, 11, 27, 12, tzinfo=UTC)


def set_back(folder: Path, at: datetime) -> None:
    os.utime(folder / ADDRESS_SALT, (at.timestamp(), at.timestamp()))


def test_a_salt_lasts_for_its_day_and_is_gone_on_the_next(tmp_path: Path) -> None:
    first = salt_of(tmp_path, 1, NOON).secret
    set_back(tmp_path, NOON)
    assert salt_of(tmp_path, 1, NOON + timedelta(hours=11)).secret == first
    second = salt_of(tmp_path, 1, NOON + timedelta(hours=12))
    assert second.secret != first
    assert first.hex() not in (tmp_path / ADDRESS_SALT).read_text()
    assert stat.S_IMODE((tmp_path / ADDRESS_SALT).stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [ADDRESS_SALT]
    again = salt_of(tmp_path, 1, NOON + timedelta(hours=20))
    assert (again.secret, again.day) == (second.secret, second.day)


@pytest.mark.parametrize(("days", "lasts"), [(7, 6), (0, 400)])
def test_a_salt_may_last_longer(tmp_path: Path, days: int, lasts: int) -> None:
    epoch = datetime.fromtimestamp(7 * 86_400 * 2_900, UTC)
    salt_of(tmp_path, days, epoch)
    set_back(tmp_path, epoch)
    first = salt_of(tmp_path, days, epoch).secret
    assert salt_of(tmp_path, days, epoch + timedelta(days=lasts)).secret == first
