"""The desk at which questions over HTTP are answered: opened in a process of its own, from the configuration.

Never opened by the service itself, which only says where to find this. Invariant: to know of it loads nothing.

>>> open_desk(load(None, {}, {})).lake.url   # doctest: +SKIP
"""

import shutil
from typing import TYPE_CHECKING

from clickclock.foundation import log
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk


def open_desk(config: Config) -> "Desk":
    """What questions are answered from."""
    # The service hands this function over, and has no use for what it loads.
    from clickclock.app.exporting import conversions_of, exporter_of, folder_of  # noqa: PLC0415 (see the line above)
    from clickclock.app.lake import docket_of, lake_of  # noqa: PLC0415 (as above)
    from clickclock.app.models import known_models  # noqa: PLC0415 (as above)
    from clickclock.app.postbacks import partners_of  # noqa: PLC0415 (as above)
    from clickclock.app.reporting import engine_of  # noqa: PLC0415 (as above)
    from clickclock.attribution.api.query_context import Desk  # noqa: PLC0415 (as above)

    log.set_up(config.log_format, config.log_level)
    folder = config.data_dir / "answers"
    shutil.rmtree(folder, ignore_errors=True)  # what such a process, when it was killed, had not in memory
    folder.mkdir()
    lake = lake_of(config)
    return Desk(
        lake,
        engine_of(config, folder),
        known_models(),
        docket_of(config),
        config.journal_dir,
        exporter_of(config, lake),
        config.upload_model,
        conversions_of(config),
        partners_of(config),
        folder_of(config),
        SystemClock(),
    )
