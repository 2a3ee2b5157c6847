"""What an operator may set of the engine.

Never reads the settings (`foundation/config.py` does). Invariant: without a setting nobody may run as another user.

>>> Limits().users
()
"""

from typing import NamedTuple


class Limits(NamedTuple):
    """See the settings `preemptions_max`, `backfill_times_max`, `job_users` and `audit_days`."""

    preemptions_max: int = 5
    backfill_times_max: int = 10_000
    users: tuple[str, ...] = ()
    audit_days: int = 400
