"""The environment of this process: read here alone, and emptied of what nobody else is to see.

Never decides what a variable means: `config.py` does. Invariant: what our own processes are started with has no setting
and no secret, because /proc shows it while they run.

>>> "CLICKCLOCK_SMTP_PASSWORD" in environment_to_start()
False
"""

import os
import re
from collections.abc import Mapping

from clickclock.foundation.config import Config

_TO_START = re.compile(
    "PATH|HOME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TZDIR|TMPDIR|LD_LIBRARY_PATH|LD_PRELOAD|PYTHON[A-Z]+|VIRTUAL_ENV|"
    "OPENBLAS_NUM_THREADS"
)
_WITH_PASSWORDS = ("CLICKCLOCK_DATABASE_URL", "CLICKCLOCK_SMTP_PASSWORD")
"""Settings that the environment can give, and that nobody reads a second time."""


def environment() -> Mapping[str, str]:
    """The service's own environment."""
    return dict(os.environ)


def environment_to_start() -> dict[str, str]:
    """What a process of ours needs to start. It has no setting and no secret: /proc shows it while the process runs."""
    return {name: value for name, value in os.environ.items() if _TO_START.fullmatch(name)}


def take_environment(variables: Mapping[str, str]) -> None:
    """Have these variables, too, as a process that was started without them."""
    os.environ.update(variables)


def take_secrets(config: Config) -> dict[str, str]:
    """The variables that jobs may refer to, without their prefix. They and our own passwords leave the environment."""
    secrets = config.secret_variables(os.environ)
    for name in (*(f"{config.secret_environment_prefix}{each}" for each in secrets), *_WITH_PASSWORDS):
        os.environ.pop(name, None)
    return secrets
