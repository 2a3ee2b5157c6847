"""A real container engine for the tests: Podman's service, with a storage of its own and an image made on the spot.

Never touches the machine's own containers. Invariant: what it was asked to run is gone when it is.

>>> with container_engine(folder) as engine:   # doctest: +SKIP
...     engine.address
'unix:///tmp/engine.sock'
"""

import contextlib
import os
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

IMAGE = "localhost/busybox:test"
OPTIONS = {"network": "host", "ulimits": {"nofile": "1024:1024", "nproc": "1000:1000"}}
"""What containers need on machines that give no more."""
CONF = """
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
netns = "host"
"""
ANSWERS_WITHIN_S = 60.0


class ContainerEngine:
    """Podman in a folder. Its sockets are in a `short` one: the system takes no long paths for them."""

    def __init__(self, folder: Path, short: Path) -> None:
        self.socket = short / "s"
        self.address = f"unix://{self.socket}"
        places = ("--root", f"{folder}/root", "--runroot", f"{short}/r", "--tmpdir", f"{short}/t")
        self.podman = ["podman", *places, "--storage-driver", "vfs"]
        (folder / "containers.conf").write_text(CONF)
        self.environment = {**os.environ, "CONTAINERS_CONF": f"{folder}/containers.conf"}
        self._folder = folder  # what watches a container leaves a file where it was started when memory runs out
        self._said = folder / "said"
        self._service: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Have it answer."""
        with self._said.open("ab") as said:
            self._service = subprocess.Popen(
                [*self.podman, "system", "service", "--time=0", self.address],
                stdout=said,
                stderr=said,
                env=self.environment,
                cwd=self._folder,
            )
        until_s = time.monotonic() + ANSWERS_WITHIN_S
        while not self._answers():
            assert time.monotonic() < until_s, self._said.read_text()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._service.wait(0.05)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
            probe.connect(str(self.socket))
            return True
        return False

    def kill(self) -> None:
        """Have it answer no more. Its containers go on."""
        assert self._service is not None
        self._service.kill()
        self._service.wait()
        self.socket.unlink(missing_ok=True)

    def die_removing(self, container: str) -> bool:
        """Die when half of it is gone; whether it is half there."""
        kept = self._folder / "root" / "vfs-containers" / "containers.json"
        full_id = self.run("inspect", "--format", "{{.Id}}", container).strip()
        removing = subprocess.Popen([*self.podman, "rm", container], env=self.environment, cwd=self._folder)
        while removing.poll() is None and full_id in kept.read_text():
            with contextlib.suppress(subprocess.TimeoutExpired):
                removing.wait(0.001)
        removing.kill()
        removing.wait()
        return f"{container} Removing" in self.run("ps", "--all", "--format", "{{.Names}} {{.Status}}")

    def run(self, *arguments: str) -> str:
        """What `podman` prints."""
        words = [*self.podman, *arguments]
        done = subprocess.run(words, env=self.environment, cwd=self._folder, check=True, capture_output=True)
        return done.stdout.decode()


@contextlib.contextmanager
def container_engine(folder: Path) -> Iterator[ContainerEngine]:
    """An engine that answers, with `IMAGE`."""
    image = folder / "image.tar"
    with tarfile.open(image, "w") as tar:
        tar.add("/bin/busybox", "bin/busybox")
        for name in subprocess.run(
            ["/bin/busybox", "--list"], check=True, capture_output=True, text=True
        ).stdout.split():
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            if name != "busybox":
                tar.addfile(link)
        for name in ("tmp", "usr", "usr/bin", "etc"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        password_file = tarfile.TarInfo("etc/passwd")
        tar.addfile(password_file)
    with tempfile.TemporaryDirectory(prefix="engine-") as short:
        engine = ContainerEngine(folder, Path(short))
        engine.run("import", "--quiet", str(image), IMAGE)
        engine.start()
        try:
            yield engine
        finally:
            engine.kill()
            engine.run("rm", "--all", "--force", "--time", "0")
