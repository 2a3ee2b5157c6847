"""One replica as a process of its own: the real service, with leases so short that minutes of chaos hold many of them.

Run as `python -m tests.chaos.replica '{"data_dir": …}' [FAULT]`.
A fault of `broken.py` is put into it. The product knows nothing of this.
"""

import json
import sys

LEASE_S = 3.0
HEARTBEAT_EVERY_S = 0.6
LOOK_EVERY_S = 0.5
ANSWER_S_MAX = 2.0
LOCK_S_MAX = 1.5
GIVEN_UP_AFTER_S = LEASE_S + 2 * LOOK_EVERY_S
"""A replica that was away for less than its lease loses nothing; for longer than this, all that ran there."""


def hasten() -> None:
    """Less than half of the product's own times."""
    from clickclock.scheduler import engine  # noqa: PLC0415 - only in the process that is to be hastened
    from clickclock.scheduler.agents import rescuer  # noqa: PLC0415 - only in the process that is to be hastened
    from clickclock.scheduler.store import database  # noqa: PLC0415

    engine.LEASE_S, engine.HEARTBEAT_EVERY_S = LEASE_S, HEARTBEAT_EVERY_S
    rescuer.LOOK_EVERY_S, rescuer.SILENT_S = LOOK_EVERY_S, LEASE_S - LOOK_EVERY_S
    engine.HEARTBEAT_RETRY_S_MAX = HEARTBEAT_EVERY_S / 3
    database.ANSWER_S_MAX, database.LOCK_S_MAX = ANSWER_S_MAX, LOCK_S_MAX


if __name__ == "__main__":
    from clickclock.app.service import serve
    from clickclock.foundation.config import load
    from tests.chaos.broken import BROKEN

    hasten()
    for name in sys.argv[2:]:
        BROKEN[name]()
    sys.exit(serve(load(None, {}, json.loads(sys.argv[1]))))
