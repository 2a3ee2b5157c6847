"""An S3 that answers on this machine, for as long as a test session lasts."""

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUCKET = "clickclock-test"


@contextmanager
def object_store(log: Path) -> Iterator[dict[str, str]]:
    """The storage options of an S3 with one empty bucket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        log.open("wb") as said,
        subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=said, stderr=said
        ) as server,
    ):
        url = f"http://127.0.0.1:{port}"
        _make_bucket(f"{url}/{BUCKET}", time.monotonic() + 60)
        yield {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": url,
            "AWS_ALLOW_HTTP": "true",
        }
        server.terminate()


def _make_bucket(url: str, until_s: float) -> None:
    signed = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
    request = urllib.request.Request(url, b"", {"Authorization": signed}, method="PUT")  # noqa: S310 (it is http)
    while True:
        try:
            urllib.request.urlopen(request, timeout=5).close()  # noqa: S310 (it is http)
        except OSError:
            if time.monotonic() > until_s:
                raise
        else:
            return
