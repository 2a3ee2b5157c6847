"""`clickclock attribution report`: a table for people, files for programs, and refusals that name the option."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clickclock.cli.attribution_report import report
from tests.lakes import SmallLake


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    SmallLake(tmp_path / "lake").fill()
    return tmp_path


def run(data_dir: Path, *arguments: str) -> Result:
    return CliRunner().invoke(report, [*arguments, "--data-dir", str(data_dir)], catch_exceptions=False)


def test_the_table_has_a_column_for_each_dimension_and_figure(data_dir: Path) -> None:
    ran = run(data_dir, "--client-id", "shop", "--currency", "EUR", "--figures", "orders,credit")
    assert [line.split() for line in ran.stdout.splitlines()] == [
        ["channel", "model", "currency", "orders", "credit"],
        ["google", "last", "EUR", "2", "20.00"],
        ["meta", "last", "EUR", "1", "10.01"],
        ["(none)", "last", "EUR", "1", "0.00"],
    ]
    assert (ran.stderr, ran.exit_code) == ("", 0)


def test_what_there_is_to_say_does_not_stand_among_the_rows(data_dir: Path) -> None:
    ran = run(data_dir, "--format", "csv", "--model", "last", "--model", "linear", "--figures", "cost,roas")
    assert ran.stdout.splitlines()[:3] == [
        "channel,model,currency,cost,roas",
        "google,last,EUR,5.00,3.0000",
        "google,linear,EUR,5.00,4.0000",
    ]
    assert "another currency" in ran.stderr


def test_a_file_is_written_whole(data_dir: Path) -> None:
    output = data_dir / "report.json"
    ran = run(data_dir, "--format", "json", "--output", str(output), "--by", "")
    assert (ran.output, json.loads(output.read_text())["by"]) == ("", [])


def test_a_report_of_nothing_is_a_sentence(data_dir: Path) -> None:
    ran = run(data_dir, "--client-id", "nobody")
    assert (ran.stdout.startswith("There is nothing to report"), ran.exit_code) == (True, 0)


def test_faults_are_told_by_the_names_of_the_options(data_dir: Path) -> None:
    ran = run(data_dir, "--by", "colour", "--from", "2026-11-03", "--to", "2026-11-01", "--client-id", "")
    assert ran.exit_code == 2
    told = [line.partition(":")[0] for line in ran.stderr.replace("Error: ", "").splitlines() if line.startswith("--")]
    assert told == ["--by", "--client-id", "--from"]
    unknown = run(data_dir, "--model", "markov")
    assert (unknown.exit_code, "there are: last, linear" in unknown.stderr) == (2, True)
    assert run(data_dir, "--output", "report.csv").exit_code == 2
    assert run(data_dir, "--raw").exit_code == 2
    assert run(data_dir, "--raw", "--format", "csv").exit_code == 0


def test_without_a_version_it_says_what_to_run(tmp_path: Path) -> None:
    ran = run(tmp_path)
    assert (ran.exit_code, "clickclock attribution run" in ran.stderr) == (1, True)


def test_a_holdout_says_what_to_know_beside_its_table(data_dir: Path) -> None:
    ran = run(data_dir, "--holdout", "at,CH", "--by", "client", "--from", "2026-11-01", "--to", "2026-11-28")
    assert ran.stdout.splitlines()[0].split()[:5] == ["client", "currency", "orders", "others", "orders_expected"]
    assert "Orders without a known country: " in ran.stderr
    assert run(data_dir, "--holdout", "at").stderr.splitlines()[-1].startswith("Error: --holdout: This needs")
