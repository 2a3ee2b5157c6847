"""Where a process sends its spans, by the settings of traces.

Never loads OpenTelemetry for a process that sends none. Invariant: no header is shown or logged.

>>> from clickclock.foundation.config import load
>>> spans_of(load(None, {}, {}), "host-1") is None
True
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from clickclock.foundation import extras
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError
from clickclock.foundation.span import Spans

_HEADER: Final = re.compile(r"([A-Za-z0-9_-]+):[ \t]*([\x20-\x7e]*)")


def spans_of(config: Config, node: str) -> Spans | None:
    """Where spans go; None without an address. `node` names this process. Raises `ConfigurationError`."""
    expect_traces(config)
    if config.traces_url is None:
        return None
    from clickclock.app.open_telemetry import OpenTelemetry  # noqa: PLC0415 (it is an optional part)

    return OpenTelemetry.of(config, node)


def expect_traces(config: Config) -> None:
    """Raises `ConfigurationError` if traces are wanted and cannot be sent."""
    if config.traces_url is None:
        return
    if not extras.is_installed(extras.TRACES):
        raise ConfigurationError(f"traces_url is set, and needs: {extras.how_to_install(extras.TRACES)}")
    if config.traces_headers_file is not None:
        read_headers(config.traces_headers_file)


def read_headers(file: Path) -> Mapping[str, str]:
    """The headers in a file, `NAME: VALUE` on each line. Raises `ConfigurationError`, and shows none of it."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"traces_headers_file {str(file)!r} cannot be read: {error}") from error
    found = {}
    for number, line in enumerate(lines, 1):
        if line and (match := _HEADER.fullmatch(line)) is None:
            raise ConfigurationError(
                f"traces_headers_file {str(file)!r}: line {number} is no header; write NAME: VALUE"
            )
        if line and match is not None:
            found[match[1].lower()] = match[2]
    return found
