"""The settings of traces: where they go, how many are kept, and by which headers the receiver knows us.

Never reads a file. Invariant: without an address nothing is traced, and nothing of it is loaded.

>>> TraceSettings().traces_url is None
True
"""

from pathlib import Path

from pydantic import Field, field_validator

from clickclock.foundation.record import Settings


class TraceSettings(Settings):
    """What `Config` has of traces."""

    traces_url: str | None = Field(
        None,
        description="Where traces go, by OpenTelemetry's OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`; "
        "nothing is traced if not given.",
    )
    traces_ratio: float = Field(
        1.0,
        ge=0,
        le=1,
        description="The part of traces that is sent, of those that begin here: 0.01 is one in a hundred.",
    )
    traces_headers_file: Path | None = Field(
        None, description="File with headers for that address, `NAME: VALUE` on each line, such as a key."
    )

    @field_validator("traces_url")
    @classmethod
    def _refuse_what_is_no_address_and_passwords_that_all_would_see(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("http://", "https://")):
            raise ValueError("give a URL that begins with http:// or https://, such as http://127.0.0.1:4318/v1/traces")
        if url is not None and "@" in url.partition("://")[2].partition("/")[0]:
            raise ValueError("it has a password in it; give it as a header in traces_headers_file")
        return url
