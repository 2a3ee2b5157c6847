"""The OpenAPI document of the scheduler, made once for all tests that read it: it takes a second.

Never changes it. Invariant: it is what `/openapi.json` answers.

>>> SCHEDULER["openapi"]
'3.1.0'
"""

from typing import Any, Final

from clickclock.scheduler.api import TABLE
from clickclock.scheduler.api.openapi import document

SCHEDULER: Final[dict[str, Any]] = document(TABLE, "0.1.0")
