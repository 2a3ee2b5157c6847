"""Names for new things: UUID version 7 (RFC 9562), so that newer sorts after older.

>>> len(new_id())
36
"""

import uuid_utils

EXAMPLE_ID = "01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11"
"""One of them, for examples of the API."""


def new_id() -> str:
    """A fresh id, ordered by time of making within this process."""
    return str(uuid_utils.uuid7())
