"""Names for new things: UUID version 7 (RFC 9562), so that newer sorts after older.

>>> len(new_id())
36
"""

import uuid_utils


def new_id() -> str:
    """A fresh id, ordered by time of making within this process."""
    return str(uuid_utils.uuid7())
