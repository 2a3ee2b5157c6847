"""The composition root: configuration in, running service out. The only file that names what is behind a door.

Never decides anything about jobs. Invariants: one service to a data folder; the port is ours before the store is
opened, and answers only when the engine has adopted what was left behind.
"""

import asyncio
import contextlib
import fcntl
import gc
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points, version
from pathlib import Path

import uvicorn
import uvloop

from clickclock.examples import apply_examples
from clickclock.foundation import log
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config, environment
from clickclock.foundation.errors import ClickclockError, ConfigurationError, Fault
from clickclock.foundation.ids import new_id
from clickclock.scheduler.api import create_app
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.executors import Executor
from clickclock.scheduler.store import Store

CLUSTER = "local"
GRACEFUL_S = 5
"""Seconds that open answers get when the service stops; live logs are cut then, and can be resumed."""
BACKLOG = 2048
WHAT_TO_TRY = """
The examples run already. In another terminal (with .venv/bin in its PATH), try:
  {cli} triggers list                          what ran, and when
  {cli} trigger examples countdown --follow    run a job now and watch its output
  {cli} schedule preview "30 2 * * *" --time-zone Europe/Berlin
  curl -s '{url}/schedulerService/jobDetail?application=examples&jobName=hello'
  a browser on {url}/docs                      every endpoint, to try
Stop with Ctrl-C; running jobs go on, and are adopted at the next start."""

_log = logging.getLogger(__name__)


def serve(config: Config) -> int:
    """Run the service until SIGTERM or SIGINT; returns the exit code. Raises `ConfigurationError`."""
    log.set_up(config.log_format, config.log_level)
    try:
        config.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigurationError(faults=[Fault("data_dir", f"{config.data_dir}: {error.strerror}.")]) from error
    with _sole_service(config.data_dir), _listen(config.host, config.port) as listening:
        return uvloop.run(_serve(config, listening))


async def _serve(config: Config, listening: socket.socket) -> int:
    clock = SystemClock()
    node = _node(config.data_dir)
    try:
        store = await Store.open(config.store_url, CLUSTER)
    except ClickclockError as error:
        _log.error("%s", error)
        return 1
    engine = Engine(store, clock, {CLUSTER: _executor(config, node, clock)}, node=node, version=version("clickclock"))
    await engine.open()
    server = _Server(
        uvicorn.Config(
            create_app(
                engine,
                allowed_hosts=None if config.insecure_no_authentication else [config.host, *config.allowed_hosts],
                body_bytes_max=config.request_body_bytes_max,
            ),
            http="httptools",
            loop="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=GRACEFUL_S,
        )
    )
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, server.stop)
    working = asyncio.create_task(engine.run(until=stopped))
    # A dead engine behind an answering port would be the worst of both: they end together.
    working.add_done_callback(lambda _: server.stop())
    if config.examples is not None:
        await apply_examples(config.examples, engine)
    # What is here now stays: the collector need not walk through it again in the middle of a busy moment.
    gc.collect()
    gc.freeze()
    _announce(listening, config)
    try:
        await server.serve(sockets=[listening])
    finally:
        stopped.set()
        await asyncio.gather(working, return_exceptions=True)
        await engine.close(stop_jobs=config.stop_jobs)
        await store.close()
    _log.info(
        "stopped; running jobs %s", "were ended" if config.stop_jobs else "go on and are adopted at the next start"
    )
    return 1 if working.exception() else 0


class _Server(uvicorn.Server):
    """uvicorn, with the signals left to us: they also stop the engine, in order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Stop accepting, answer what is open, return from `serve`; at the second time at once."""
        self.force_exit = self.should_exit
        self.should_exit = True


def _executor(config: Config, node: str, clock: SystemClock) -> Executor:
    """The member of the group `clickclock.executors` that runs the embedded cluster."""
    (entry,) = entry_points(group="clickclock.executors", name="process")
    variables = environment()
    executor: Executor = entry.load()(
        name=CLUSTER,
        data_dir=config.data_dir,
        node=node,
        slots=config.process_slots,
        log_bytes_max=config.attempt_log_bytes_max,
        base_environment={name: variables[name] for name in config.job_environment if name in variables},
        clock=clock,
    )
    return executor


@contextlib.contextmanager
def _sole_service(data_dir: Path) -> Iterator[None]:
    """Hold the data folder; the lock goes with the process, however it ends."""
    with (data_dir / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            sentence = f"Another clickclock serves {data_dir}; stop it, or give this one another --data-dir."
            raise ConfigurationError(faults=[Fault("data_dir", sentence)]) from error
        yield


@contextlib.contextmanager
def _listen(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        sentence = f"{host}:{port} cannot be listened on: {error.strerror}; give another --port."
        raise ConfigurationError(faults=[Fault("port", sentence)]) from error
    with listening:
        yield listening


def _node(data_dir: Path) -> str:
    """This data folder's name among others, made once: attempts are found again by it."""
    file = data_dir / "node"
    if not file.exists():
        fresh = file.with_suffix(".new")
        fresh.write_text(f"{socket.gethostname()}-{new_id()[-12:]}\n")
        fresh.rename(file)
    return file.read_text().strip()


def _announce(listening: socket.socket, config: Config) -> None:
    host, port = listening.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    lines = [f"clickclock is ready at {url}/schedulerService/ (data in {config.data_dir})"]
    if config.examples is not None:
        cli = "clickclock" if port == Config.model_fields["port"].default else f"clickclock --url {url}"
        lines.append(WHAT_TO_TRY.format(cli=cli, url=url))
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
