"""Parts of the machine that may be there and not work, each tried by really using it: `python -m tests.parts PART`.

Never says more than its exit code, and on standard error why. Invariant: nothing that it started is left.
"""

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

WITHIN_S = 60.0
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""By preference: the first has no window of its own to draw, and takes half the time of the second."""


def browser() -> str | None:
    """The path of the browser in which pages are tested."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def podman(folder: Path) -> None:
    """One container with an init, from its making to its removal."""
    from tests.container_engine import IMAGE, container_engine  # noqa: PLC0415 (only this part needs it)

    with (
        container_engine(folder) as engine,
        httpx.Client(
            transport=httpx.HTTPTransport(uds=str(engine.socket)), base_url="http://d", timeout=WITHIN_S
        ) as http,
    ):
        body = {"Image": IMAGE, "Cmd": ["true"], "HostConfig": {"Init": True, "NetworkMode": "host"}}
        made = http.post("/containers/create", json=body).raise_for_status().json()["Id"]
        http.post(f"/containers/{made}/start").raise_for_status()
        http.delete(f"/containers/{made}", params={"force": "true"}).raise_for_status()


def chromium(folder: Path) -> None:
    """One page in the browser."""
    page = folder / "page.html"
    page.write_text("<p>a page</p>")
    path = browser()
    assert path is not None
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={folder}/profile",
    )
    shown = subprocess.run(
        [path, *options, "--dump-dom", page.as_uri()], capture_output=True, text=True, check=True, timeout=WITHIN_S
    )
    assert "a page" in shown.stdout, shown.stderr


def nginx(folder: Path) -> None:
    """One answer of the proxy."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; events {{}} http {{ access_log off; "
        f"client_body_temp_path {folder}/b; server {{ listen 127.0.0.1:{port}; return 204; }} }}"
    )
    with subprocess.Popen(["nginx", "-p", str(folder), "-c", str(config)]) as process:
        try:
            until_s = time.monotonic() + WITHIN_S
            while process.poll() is None and time.monotonic() < until_s:
                with contextlib.suppress(httpx.TransportError):
                    assert httpx.get(f"http://127.0.0.1:{port}/", trust_env=False).status_code == httpx.codes.NO_CONTENT
                    return
            raise SystemExit("nginx does not answer")
        finally:
            process.terminate()


PARTS = {"podman": podman, "chromium": chromium, "nginx": nginx}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="parts-") as place:
        PARTS[sys.argv[1]](Path(place))
