"""The salt of addresses in the data folder: another one each day, and the one before is gone.

Never tells it to anybody but collectors and importers. Invariant: the file has the salt of the day on which it was
written, or of the first day after it on which somebody looks.

>>> salt_of(Path("data"), 1, now).days   # doctest: +SKIP
1
"""

import os
from datetime import datetime
from pathlib import Path

from clickclock.app.data_folder import ADDRESS_SALT, kept_secret, write_secret, writing
from clickclock.attribution.clicks.address import Salt

DAY_S = 86_400


def salt_of(data_dir: Path, days: int, now: datetime) -> Salt:
    """The salt of now; one that is over is replaced. Raises `ConfigurationError` as `kept_secret` does."""
    secret, file = kept_secret(data_dir, ADDRESS_SALT), data_dir / ADDRESS_SALT
    with writing(data_dir):
        salt = Salt(bytes.fromhex(secret), int(file.stat().st_mtime // DAY_S), days)
        if salt.turn(int(now.timestamp() // DAY_S)):
            write_secret(file, salt.secret.hex())
            os.utime(file, (now.timestamp(), now.timestamp()))
    return salt
