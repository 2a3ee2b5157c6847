"""A bundle for who helps: what the doctor found and what it looked at, in one file, without secrets.

Never has a password, a token, a command of a job, a click or a line of a job's output. Invariants: every text goes
through the redaction; a part that cannot be had says why, and hides no other; nothing is written over.

>>> write(Path("bundle.tar.gz"), config, checks, "http://127.0.0.1:8080", {}, None)   # doctest: +SKIP
{'checks.json': 4211, …}
"""

import io
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
import sqlalchemy as sa

from clickclock.app.doctor.check import Check
from clickclock.app.doctor.service import Terms
from clickclock.client.site import is_of_this_machine, token_of_environment
from clickclock.client.trust import trust_of
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError, Fault
from clickclock.foundation.http_header import bearer
from clickclock.foundation.record import rfc3339
from clickclock.foundation.redaction import redacted, redacted_value

LINES: Final = 2000
_TAIL_BYTES: Final = 2**20
_UNIT: Final = "clickclock"
_TIMEOUT_S: Final = 10.0
_PARTS: Final = {
    "settings.json": "the settings in force, with stars for passwords",
    "versions.json": "the versions of clickclock, Python, the system and every package",
    "checks.json": "what the doctor found, the scanner's findings among it",
    "metrics.txt": "the metrics of the service, as it shows them to Prometheus",
    "log.txt": f"the last {LINES:,} lines of the service's log",
    "supervisor.txt": "what the supervisor could not do",
    "schema.txt": "the tables of the store, their columns, and how many rows each has",
}


def write(
    file: Path,
    config: Config,
    checks: Sequence[Check],
    url: str,
    terms: Terms,
    log: Path | None,
) -> dict[str, int]:
    """Write it; the bytes of each part by its name. `log` is a file of the service's log; without it, systemd's.

    Raises `ConfigurationError` if the file is there or cannot be written.
    """
    now = SystemClock().now()
    made: dict[str, Callable[[], str]] = {
        "settings.json": lambda: _json(redacted_value(config.model_dump(mode="json"))),
        "versions.json": lambda: _json(_versions()),
        "checks.json": lambda: _json([{"check": c.check, "result": c.result, "found": c.found} for c in checks]),
        "metrics.txt": lambda: _metrics(url, terms),
        "log.txt": lambda: _log(log),
        "supervisor.txt": lambda: _tail(config.data_dir / "supervisor" / "errors"),
        "schema.txt": lambda: "\n".join(_schema(config)),
    }
    parts = {name: _made(make) for name, make in made.items()}
    told = "\n".join(f"{name}: {_PARTS[name]}" for name in parts)
    about = f"A bundle of clickclock, made at {rfc3339(now)}. Look through it before you give it away.\n\n{told}\n"
    try:
        with open(file, "xb", opener=_private) as out, tarfile.open(fileobj=out, mode="w:gz") as tar:
            for name, text in {"README.txt": about, **parts}.items():
                _add(tar, name, text, now)
    except FileExistsError as error:
        raise ConfigurationError(faults=[Fault("bundle", f"{file} is there; give another name.")]) from error
    except OSError as error:
        raise ConfigurationError(faults=[Fault("bundle", f"{file} cannot be written: {error.strerror}.")]) from error
    return {name: len(text.encode()) for name, text in parts.items()}


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _made(make: Callable[[], str]) -> str:
    """A part, or why there is none."""
    try:
        return redacted(make())
    except (OSError, httpx.HTTPError, sqlite3.Error, sa.exc.SQLAlchemyError, subprocess.SubprocessError) as error:
        return redacted(f"It cannot be had: {' '.join(str(error).split())}\n")


def _add(tar: tarfile.TarFile, name: str, text: str, now: datetime) -> None:
    content = text.encode()
    told = tarfile.TarInfo(f"clickclock-bundle/{name}")
    told.size, told.mtime, told.mode = len(content), int(now.timestamp()), 0o600
    tar.addfile(told, io.BytesIO(content))


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, default=str) + "\n"


def _versions() -> dict[str, Any]:
    packages = sorted({f"{each.name}=={each.version}" for each in distributions()}, key=str.lower)
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "sqlite": sqlite3.sqlite_version,
        "cores": os.cpu_count(),
        "packages": packages,
    }


def _metrics(url: str, terms: Terms) -> str:
    token = terms.token or token_of_environment()
    headers = ({"authorization": bearer(token)} if token else {}) | dict(terms.headers or {})
    trust = trust_of(terms.ca_file, is_here=is_of_this_machine(url)) if url.startswith("https:") else True
    answer = httpx.get(f"{url}/metrics", headers=headers, timeout=_TIMEOUT_S, trust_env=False, verify=trust)
    return answer.text if answer.is_success else f"The service answers {answer.status_code}.\n"


def _log(file: Path | None) -> str:
    if file is not None:
        return _tail(file)
    journalctl = shutil.which("journalctl")
    if journalctl is None:
        return "There is no journal of systemd here; give the service's log as --log FILE.\n"
    words = [journalctl, f"--unit={_UNIT}", f"--lines={LINES}", "--no-pager", "--output=short-iso"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)  # noqa: S603 (argv comes split, no shell)
    return done.stdout or f"{done.stderr.strip()} Give the service's log as --log FILE.\n"


def _tail(file: Path) -> str:
    """The last lines of a file, at most a megabyte of them."""
    if not file.exists():
        return f"There is no {file}.\n"
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - _TAIL_BYTES))
        lines = stream.read().decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-LINES:]) + "\n"


def _schema(config: Config) -> Iterator[str]:
    url = sa.make_url(config.store_url)
    if url.get_backend_name() == "sqlite":
        if not Path(url.database or "").exists():
            yield f"There is no {url.database} yet."
            return
        file = f"file:{quote(str(Path(url.database or '').absolute()))}"
        engine = sa.create_engine(sa.URL.create("sqlite", database=file, query={"mode": "ro", "uri": "true"}))
    else:
        engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), connect_args={"connect_timeout": 5})
    try:
        with engine.connect() as connection:
            known = sa.inspect(connection)
            for name in sorted(known.get_table_names()):
                rows = connection.scalar(sa.select(sa.func.count()).select_from(sa.table(name)))
                columns = ", ".join(f"{each['name']} {each['type']}" for each in known.get_columns(name))
                yield f"{name} ({rows:,} rows): {columns}"
    finally:
        engine.dispose()
