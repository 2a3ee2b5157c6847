"""The sender of postbacks, made mortal: one step of the real one, that kills itself with SIGKILL at a chosen call.

Never lives but in a process of its own (`nursery.py`), by `{"folder": …, "url": …, "death": {…}}`.
"""

from functools import partial
from pathlib import Path
from typing import Any

from clickclock.attribution.agents.postback_sender import PostbackSender
from clickclock.attribution.networks.partners import PartnerServer
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.postback_config import PostbackConfig
from tests.crash.mortal import Death, doom
from tests.published import NOW


def live(order: dict[str, Any]) -> None:
    """One step."""
    doom(Death(**order["death"]))
    config = PostbackConfig(name="affiliate", url=order["url"])
    PostbackSender(Path(order["folder"]), {"affiliate": partial(PartnerServer, config)}, ManualClock(NOW)).step()
