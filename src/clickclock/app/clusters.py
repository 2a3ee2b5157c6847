"""The clusters of one service: this machine's processes, and what the configuration names beside them.

Never opens one. Invariants: `local` is there, and the first; faults of all clusters' tables are reported together.

>>> list(clusters(Config(), "host-1", SystemClock(), {}))
['local']
"""

import socket
from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from pydantic import ValidationError

from clickclock.app.data_folder import url_of
from clickclock.app.options import option_faults
from clickclock.app.own_program import own_program, path_of_jobs
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.environment import environment
from clickclock.foundation.errors import ConfigurationError, Fault
from clickclock.scheduler.executors import Executor, Maker

GROUP = "clickclock.executors"
LOCAL = "local"
_PROCESS = "process"


def clusters(
    config: Config, node: str, clock: SystemClock, told: dict[str, str], umask: int | None = None
) -> dict[str, Executor]:
    """An executor for each cluster, by name; processes are `told` where we are. Raises `ConfigurationError`.

    Processes get the `umask`, or what the supervisor was started with.
    """
    made = {LOCAL: _processes(config, node, clock, told, umask)}
    faults: list[Fault] = []
    for name, table in config.clusters.items():
        options = {key: value for key, value in table.items() if key != "executor"}
        kinds = {entry.name: entry for entry in _executors() if entry.name != _PROCESS}
        kind = kinds.get(str(table.get("executor")))
        if kind is None:
            sentence = f"Say which executor it is; known are {', '.join(sorted(kinds))}."
            faults.append(Fault(f"clusters.{name}.executor", sentence))
            continue
        try:
            make: Maker = kind.load()
            made[name] = make(
                name=name,
                data_dir=config.data_dir,
                node=node,
                log_bytes_max=config.attempt_log_bytes_max,
                clock=clock,
                options=options,
            )
        except ValidationError as error:
            faults += option_faults(f"clusters.{name}", error)
    if faults:
        raise ConfigurationError(faults=faults)
    return made


@cache
def _executors() -> tuple[EntryPoint, ...]:
    """Looked for once: to read what every installed package says of itself takes long."""
    return tuple(entry_points(group=GROUP))


def _processes(config: Config, node: str, clock: SystemClock, told: dict[str, str], umask: int | None) -> Executor:
    """The member of the group that runs the embedded cluster."""
    (entry,) = (each for each in _executors() if each.name == _PROCESS)
    variables = environment()
    given = {name: variables[name] for name in config.job_environment if name in variables}
    path = path_of_jobs(given.get("PATH"), own_program())
    executor: Executor = entry.load()(
        name=LOCAL,
        data_dir=config.data_dir,
        node=node,
        slots=config.process_slots,
        log_bytes_max=config.attempt_log_bytes_max,
        base_environment=given | {"PATH": path} | told,
        umask=umask,
        clock=clock,
    )
    return executor


def told_to_jobs(config: Config, url: str, for_clicks: Sequence[socket.socket]) -> dict[str, str]:
    """What jobs learn of us."""
    told = {"CLICKCLOCK_URL": url}
    if for_clicks:
        told["CLICKCLOCK_CLICK_URL"] = url_of(for_clicks[0], config.scheme)
    if config.tls_certificate is not None:
        told["CLICKCLOCK_CA_FILE"] = str(config.tls_certificate.absolute())
    return told
