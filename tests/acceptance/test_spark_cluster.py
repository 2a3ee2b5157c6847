"""Runs on a real Spark cluster, of a lake in a real object store: what DuckDB makes, also when a worker dies."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clickclock.attribution.lake import CREDITS, IDENTITIES, UNCONVERTED, Lake
from tests.acceptance.clicking import until
from tests.acceptance.spark_cluster import ENVIRONMENT, READY_WITHIN_S, Cluster, spark_cluster
from tests.bench.attribution_rows import World, fill
from tests.credited import rows
from tests.object_store import BUCKET

pytestmark = pytest.mark.needs("java")
TABLES = (CREDITS, IDENTITIES.name, UNCONVERTED.name)


class Runs:
    """`clickclock attribution run` of one lake, as a user starts it."""

    def __init__(self, folder: Path, lake: Lake) -> None:
        self.lake = lake
        self.scratch = folder / "seen-by-all"
        self.scratch.mkdir()
        self.here = folder / "here"
        self.here.mkdir()
        settings = folder / "clickclock.toml"
        options = "\n".join(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in lake.storage_options.items())
        settings.write_text(f'spark_scratch = "{self.scratch}"\n[lake_options]\n{options}\n', encoding="utf-8")
        self._options = ["--config", str(settings), "--data-dir", str(folder / "data"), "--lake-url", lake.url]

    def start(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "clickclock.cli", "attribution", "run", "--full", *self._options, *options]
        return subprocess.Popen(
            command,
            cwd=self.here,
            env=os.environ | ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def made(self, *options: str) -> list[object]:
        """What a run makes of everything."""
        with self.start(*options) as run:
            said = run.communicate()[0]
        assert run.returncode == 0, said
        return self.seen()

    def seen(self) -> list[object]:
        """What the latest version has."""
        result = self.lake.results()[-1]
        return [rows(self.lake, result, table) for table in TABLES]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master with two workers."""
    with spark_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, object_store_options: dict[str, str]) -> Runs:
    """Runs of one lake, of which the first was DuckDB's."""
    folder = tmp_path_factory.mktemp("runs")
    lake = Lake(f"s3://{BUCKET}/{folder.name}", object_store_options)
    fill(lake, World(clicks=2000, orders=100, days=2))
    made = Runs(folder, lake)
    made.made()
    return made


def test_a_run_on_a_cluster_makes_what_one_machine_makes(cluster: Cluster, runs: Runs) -> None:
    expected = runs.seen()
    assert runs.made("--engine", "spark", "--master", cluster.master) == expected
    assert cluster.executors(0)
    assert cluster.executors(1)
    assert [*runs.scratch.iterdir(), *runs.here.iterdir()] == []


def test_a_run_whose_worker_dies_makes_the_same_or_fails_and_leaves_nothing(cluster: Cluster, runs: Runs) -> None:
    expected, versions = runs.seen(), len(runs.lake.results())
    there = [len(cluster.executors(worker)) for worker in (0, 1)]
    on_cluster = ("--engine", "spark", "--master", cluster.master)
    with runs.start(*on_cluster) as run:
        until(lambda: len(cluster.executors(0)) > there[0], "a worker has an executor", READY_WITHIN_S)
        until(lambda: len(cluster.executors(1)) > there[1], "so has the other", READY_WITHIN_S)
        until(lambda: list(runs.scratch.glob("*/*/spark-*")), "a piece of the work is under way", READY_WITHIN_S)
        assert run.poll() is None
        cluster.kill(1)
        said = run.communicate()[0]
    if run.returncode:
        assert "Error: Spark could not do its work" in said, said
        assert len(runs.lake.results()) == versions
        runs.made(*on_cluster)
    assert runs.seen() == expected
    assert list(runs.scratch.iterdir()) == []
