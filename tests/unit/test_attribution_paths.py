"""The command for a file of paths: each kind of file, each fault as a sentence, and models that others bring."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from clickclock.app.models import known_models
from clickclock.attribution.models import NoModel, choose
from clickclock.cli.attribution_paths import paths
from clickclock.foundation.errors import ConfigurationError

CSV = "path,total_conversions,total_conversion_value,total_null\nGA,2,20,1\nMail,1,10,0\nGA > Mail,1,10,0\n"
ROWS = [
    {"path": path, "total_conversions": conversions, "total_conversion_value": 10.0 * conversions, "total_null": nulls}
    for path, conversions, nulls in (("GA", 2, 1), ("Mail", 1, 0), ("GA > Mail", 1, 0))
]
PATHDATA = Path(__file__).parents[1] / "data" / "pathdata"


def run(*arguments: str | Path, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(paths, [str(each) for each in arguments], input=given)


def credited(*arguments: str | Path, given: str | bytes | None = None) -> dict[str, tuple[float, float]]:
    result = run(*arguments, "--json", given=given)
    assert result.exit_code == 0, result.output
    return {each["channel"]: (each["conversions"], each["value"]) for each in json.loads(result.stdout)["channels"]}


def refused(*arguments: str | Path, given: str | bytes | None = None) -> str:
    result = run(*arguments, given=given)
    assert (result.exit_code, result.stdout) == (1, "")
    return result.stderr


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Installs a package with these models, the way that pip leaves it: a module and its entry points."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(package: str, source: str, **models: str) -> None:
        (tmp_path / f"{package}.py").write_text(source)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {package}:{attribute}" for name, attribute in models.items()]
        (info / "entry_points.txt").write_text("\n".join(["[clickclock.models]", *lines]) + "\n")

    return install


def test_every_kind_of_file_gives_the_same_credits(tmp_path: Path) -> None:
    (tmp_path / "paths.csv").write_text(CSV)
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbf" + CSV.replace(",", ";").encode())
    (tmp_path / "paths.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    (tmp_path / "paths.ndjson").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "paths.parquet")
    expected = {"GA": pytest.approx((2.4, 24), rel=1e-12), "Mail": pytest.approx((1.6, 16), rel=1e-12)}
    for file in sorted(tmp_path.iterdir()):
        assert credited(file) == expected
    assert credited("-", given=CSV) == expected


def test_pathdata_gets_the_known_answers() -> None:
    known = json.loads((PATHDATA / "pathdata-known-answers.json").read_text())
    for name, key in (
        ("first", "first"),
        ("last", "last"),
        ("linear", "linear_touch"),
        ("markov", "markov_order1_with_null"),
    ):
        expected = known[key].get("channels", known[key])
        found = credited(PATHDATA / "pathdata.csv.gz", "--model", name)
        assert found == {
            channel: pytest.approx((each["conv"], each["value"]), rel=1e-6) for channel, each in expected.items()
        }


def test_the_options_are_those_of_the_model_and_of_the_table() -> None:
    renamed = "p;n\nA|B|B;3\nB;1\n"
    columns = ("--path", "p", "--conversions", "n", "--separator", "|")
    assert credited("-", "--model", "linear", *columns, given=renamed) == {"A": (1, 0), "B": (3, 0)}
    assert credited("-", "--model", "linear", "--transform", "exposure", *columns, given=renamed)["A"] == (1.5, 0)
    assert credited("-", "--order", "2", "--no-null-paths", given=CSV) == credited(
        "-", "--set", "order=2", "--set", "with_nulls=false", given=CSV
    )
    direct = ("--model", "last_non_direct", "--set", 'direct=["Mail"]')
    assert credited("-", *direct, given=CSV)["GA"] == (3, 30)


def test_published_tables_are_read_with_the_names_that_they_have() -> None:
    expected = {
        channel: pytest.approx((part, 0), rel=1e-12) for channel, part in (("c1", 0.2), ("c2", 0.4), ("c3", 0.4))
    }
    # The table of "Marketing Multi-Channel Attribution model with R", analyzecore.com (2016).
    assert credited("-", given="path,conv,conv_null\nc1 > c2 > c3,1,0\nc1,0,1\nc2 > c3,0,1\n") == expected
    assert credited("-", given="path;Conversions;Null\nc1>c2>c3;1;0\nc1;0;1\nc2>c3;0;1\n") == expected


def test_a_person_gets_a_table() -> None:
    assert run("-", "--model", "linear", given=CSV).stdout == (
        "channel   conversions     value\nGA             2.5000   25.0000\nMail           1.5000   15.0000\n"
    )


def test_a_table_of_csv_gives_one_of_csv() -> None:
    table = 'path,total_conversions,total_conversion_value\n"a, b > c",3,1\n'
    assert run("-", "--model", "linear", "--csv", given=table).stdout == (
        'channel,conversions,value\n"a, b",1.5,0.5\nc,1.5,0.5\n'
    )


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
    [
        (["--model", "magic"], CSV, "There is no model magic; there are first, last,"),
        (["--model", "time_decay"], CSV, "there are no times here, as in every table of paths"),
        (["--model", "first", "--order", "2"], CSV, "The model first has no setting order; it has none."),
        (["--order", "5"], CSV, "give a whole number from 1 to 4"),
        (["--nulls", "none"], CSV, "There is no column none for nulls; there are: path, total_conversions,"),
        ([], "path,total_conversions\na,1\nb,NaN\n", "Row 2 has `nan` as its total_conversions"),
        ([], 'path,total_conversions\na,1\n > b,"1,234.50"\n', "Row 2 has `1,234.50` as its total_conversions"),
        ([], "path,total_conversions\na,1\n,2\n", "Row 2 has no path"),
        ([], "path,total_conversions\na,1\nb\n", "- cannot be read: CSV parse error: Expected 2 columns, got 1"),
        ([], "", "- cannot be read: Empty CSV file"),
        ([], "path,conv\na,1\n".encode("utf-16"), "- is written in UTF-16; save it as UTF-8."),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(arguments: list[str], given: str | bytes, message: str) -> None:
    assert message in refused("-", *arguments, given=given)


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "half.csv.gz").write_bytes(gzip.compress(CSV.encode() * 1000)[:100])
    (tmp_path / "half.parquet").write_bytes(b"PAR1")
    (tmp_path / "paths.json").write_text("[]")
    for name in ("absent.csv", "half.csv.gz", "half.parquet"):
        assert f"{name} cannot be read: " in refused(tmp_path / name)
    assert "its ending does not say what it is" in refused(tmp_path / "paths.json")


def test_a_path_may_be_long(tmp_path: Path) -> None:
    path = " > ".join(["google", "mail"] * 200_000)
    (tmp_path / "paths.csv").write_text(f"path,total_conversions\n{path},1\n")
    (tmp_path / "paths.ndjson").write_text(json.dumps({"path": path, "total_conversions": 1}))
    for name in ("paths.csv", "paths.ndjson"):
        assert credited(tmp_path / name, "--model", "last") == {"google": (0, 0), "mail": (1, 0)}


def test_numbers_and_dates_as_channels_stay_text(tmp_path: Path) -> None:
    table = "path,total_conversions\n2024,1\n2025,2\n"
    assert credited("-", "--model", "first", given=table) == {"2024": (1, 0), "2025": (2, 0)}
    (tmp_path / "dates.ndjson").write_text('{"path": "2024-01-01", "total_conversions": 1}\n')
    assert credited(tmp_path / "dates.ndjson", "--model", "first") == {"2024-01-01": (1, 0)}


MIDDLE = """
class Middle:
    needs_times = False
    def __init__(self, weight=1):
        self.weight = weight
    def weights(self, journey):
        n = len(journey.channels)
        return [self.weight if place == n // 2 else 0 for place in range(n)]
"""


def test_a_package_brings_a_model_by_an_entry_point(installed: Any) -> None:
    installed("middle_model", MIDDLE, middle="Middle")
    assert "middle" in known_models()
    assert credited("-", "--model", "middle", "--set", "weight=3", given=CSV) == {"GA": (2, 20), "Mail": (2, 20)}
    assert "The model middle cannot be made with nonsense" in refused(
        "-", "--model", "middle", "--set", "nonsense=1", given=CSV
    )


def test_a_model_that_cannot_be_loaded_is_told_and_stands_in_nobody_elses_way(installed: Any) -> None:
    installed("broken_model", "1 / 0", broken="Model")
    installed("no_model", "Nothing = dict", nothing="Nothing")
    assert credited("-", given=CSV)
    told = refused("-", "--model", "broken", given=CSV)
    assert "The model broken of the package broken_model cannot be loaded: ZeroDivisionError" in told
    with pytest.raises(NoModel, match="nothing of the package no_model is none"):
        choose("nothing", {}, known_models())


def test_a_name_that_is_taken_is_refused(installed: Any) -> None:
    installed("one_model", MIDDLE, middle="Middle")
    installed("other_model", MIDDLE, middle="Middle")
    with pytest.raises(ConfigurationError, match="both bring a model middle; uninstall one"):
        known_models()


def test_nobody_replaces_a_model_that_is_built_in(installed: Any) -> None:
    installed("first_model", MIDDLE, first="Middle")
    assert "The model first is built in; give yours another name." in refused("-", given=CSV)


ANSWERS = """
from clickclock.attribution.models import Share

class Weighs:
    needs_times = False
    def __init__(self, weights=()):
        self.given = weights
    def weights(self, journey):
        return self.given

class Credits:
    def __init__(self, share=None):
        self.share = share
    def credit(self, rows):
        return {"GA": Share(self.share, 0.0)} if self.share is not None else [1]
"""


@pytest.mark.parametrize(
    ("name", "setting", "told"),
    [
        ("weighs", "weights=[1, 2, 3]", "It gives 3 weights for 1 touchpoints; one for each is needed."),
        ("weighs", "weights=[0]", "Its weights are not all numbers of at least 0, one of each journey above."),
        ("weighs", "weights=[-1]", "Its weights are not all numbers of at least 0, one of each journey above."),
        ("credits", "share=null", "It does not give a dict with a Share of each channel."),
        ("credits", 'share="many"', "It gives GA a share that is infinite or no number."),
    ],
)
def test_a_model_that_does_not_answer_as_it_must_is_refused(installed: Any, name: str, setting: str, told: str) -> None:
    installed("answers", ANSWERS, weighs="Weighs", credits="Credits")
    assert told in refused("-", "--model", name, "--set", setting, given="path,total_conversions\nGA,1\n")
