"""The models of `integrations/dbt` over a real lake: their sums are those of the report, also after a retraction.

dbt itself only puts names into the text, which this test does, too.
"""

import re
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

from clickclock.attribution.agents.reporter import Reporter
from clickclock.attribution.engines.duckdb import DuckDB
from clickclock.attribution.lake import Lake
from clickclock.attribution.reporting.question import read
from tests.credited import HOUR_MS, START_MS, click, load, order, run
from tests.house.tree import ROOT

FOLDER = ROOT / "integrations/dbt/models"


def _sums(lake: Path) -> dict[str, tuple[int, int]]:
    """Credit of the models `last` and `linear` by channel, in minor units, as the dbt models say it."""
    connection = duckdb.connect()
    for name in set(
        re.findall(r"source\('lake', '(\w+)'\)", "".join(path.read_text() for path in FOLDER.glob("*.sql")))
    ):
        files = DeltaTable(lake / name).file_uris()
        connection.read_parquet(files, hive_partitioning=True, union_by_name=True).create_view(name)
    for model in ("touchpoint_credits", "credited_orders", "channel_days"):
        text = (FOLDER / f"{model}.sql").read_text()
        text = re.sub(r"\{\{ (?:source\('lake', '|ref\(')(\w+)'\) \}\}", r"\1", text)
        connection.execute(f"CREATE TABLE {model} AS {text}")
    rows = connection.execute("SELECT channel, sum(last_credit), sum(linear_credit) FROM channel_days GROUP BY ALL")
    return {channel: (int(last), int(linear)) for channel, last, linear in rows.fetchall()}


def test_the_models_say_what_the_report_says(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    load(
        lake,
        click(1, START_MS, cli_ubid="v1", source="google"),
        click(2, START_MS + HOUR_MS, cli_ubid="v1", source="facebook"),
        order(3, "o1", START_MS + 2 * HOUR_MS, cli_ubid="v1"),
        order(4, "o2", START_MS + 2 * HOUR_MS, cli_ubid="nobody"),
    )
    run(lake, tmp_path)
    assert _sums(tmp_path / "lake") == {"google": (0, 500), "meta": (1000, 500)}
    load(lake, order(5, "o1", START_MS + 3 * HOUR_MS, cli_ubid="v1", amount="30.00"))
    run(lake, tmp_path)
    sums = _sums(tmp_path / "lake")
    engine = DuckDB(memory_mb=256, threads=1, temp_dir=tmp_path)
    for place, model in enumerate(("last", "linear")):
        rows = Reporter(lake, engine).report(read({"model": [model]})).rows
        assert {row["channel"]: round(row["credit"] * 100) for row in rows if row["channel"]} == {
            channel: sums[channel][place] for channel in sums
        }
    assert sum(last for last, _ in sums.values()) == pytest.approx(3000)
