"""Texts of expressions: kept from one run to the next, and never used where another would be written."""

import subprocess
import sys
from pathlib import Path

import pytest

from clickclock.attribution.clicks.account import ChannelRule
from clickclock.attribution.crediting.policy import Policies, Policy
from clickclock.attribution.engines.dialects import DUCKDB, SPARK, Dialect
from clickclock.attribution.engines.sql_cache import ALWAYS, Texts
from clickclock.attribution.engines.sql_text import INSTANT, Text

RULES = Policies(Policy(), {"shop": Policy(shared_identifiers=("kiosk",))})
WORKS: dict[str, tuple[object, ...]] = {
    **dict.fromkeys(ALWAYS, ()),
    "expressions:ads": (DUCKDB, RULES),
    "expressions:touches": (DUCKDB, RULES),
    "expressions:codes": (RULES,),
    "tying:floods": (RULES,),
}
OF_AN_INSTANT = {"expressions:walk_in_part", "tying:concerned", "tying:last"}


def _written(texts: Texts, dialect: Dialect = DUCKDB) -> dict[str, Text]:
    return {work: texts.of(dialect, work, *given) for work, given in WORKS.items()}


def test_kept_texts_are_those_that_were_written(tmp_path: Path) -> None:
    written = _written(Texts(tmp_path / "texts", "rules"))
    assert _written(Texts(tmp_path / "texts", "rules")) == written == _written(Texts())
    assert [path.name for path in tmp_path.iterdir()] == ["texts"]
    assert (tmp_path / "texts").stat().st_mode & 0o777 == 0o600


def test_who_knows_its_texts_loads_no_ibis(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from clickclock.attribution.engines.duckdb import DuckDB
from clickclock.attribution.engines.sql_cache import Texts
from clickclock.attribution.crediting.policy import Policies
engine = DuckDB(memory_mb=100, threads=1, temp_dir=Path("."), texts=Texts(Path({str(tmp_path / "texts")!r})))
engine.uses([])
print(engine.fingerprint(Policies()), "ibis" in sys.modules)
"""
    one, other = (subprocess.check_output([sys.executable, "-c", program], text=True).split() for _ in range(2))
    assert (one[-1], other[-1]) == ("True", "False")
    assert one[:-1] == other[:-1]


@pytest.mark.parametrize("work", [work for work, given in WORKS.items() if RULES in given])
def test_other_rules_are_other_texts(work: str, tmp_path: Path) -> None:
    rule = ChannelRule(channel="mail", parameter="utm_medium", values=("email",))
    others = Policies(Policy(channel_rules=(rule,), shared_identifiers=("any",), clicks_per_network_and_ad_max=7))
    texts = Texts(tmp_path / "texts")
    given = [others if each is RULES else each for each in WORKS[work]]
    assert texts.of(DUCKDB, work, *given) != texts.of(DUCKDB, work, *WORKS[work])


def test_dialects_have_texts_of_their_own(tmp_path: Path) -> None:
    texts = Texts(tmp_path / "texts")
    assert texts.of(DUCKDB, "tying:links").sql != texts.of(SPARK, "tying:links").sql


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: b"",
        lambda kept: kept[:-1],
        lambda kept: kept.replace(b"SELECT", b"select", 1),
        lambda kept: b"\xff" + kept,
        lambda kept: kept.replace(kept[:64], b"0" * 64, 1),
    ],
    ids=["empty", "cut", "changed", "no text", "of another program"],
)
def test_what_is_not_whole_is_written_anew(damage: "object", tmp_path: Path) -> None:
    assert callable(damage)
    file = tmp_path / "texts"
    text = Texts(file).of(DUCKDB, "tying:links")
    kept = file.read_bytes()
    file.write_bytes(damage(kept))
    assert Texts(file).of(DUCKDB, "tying:links") == text
    assert file.read_bytes() == kept


def test_what_was_kept_under_other_rules_goes(tmp_path: Path) -> None:
    file = tmp_path / "texts"
    Texts(file, "a rule").of(DUCKDB, "expressions:codes", RULES)
    assert "kiosk" in file.read_text()
    Texts(file, "another rule").of(DUCKDB, "tying:links")
    assert "kiosk" not in file.read_text()


def test_what_cannot_be_kept_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for file in (tmp_path / "texts", tmp_path / "absent" / "texts", tmp_path / "texts" / "x" / "y"):
        assert Texts(file).of(DUCKDB, "tying:links") == Texts().of(DUCKDB, "tying:links")


@pytest.mark.parametrize("dialect", [DUCKDB, SPARK], ids=lambda dialect: dialect.name)
def test_an_instant_stands_in_those_texts_alone_that_are_about_one(dialect: Dialect) -> None:
    for work, text in _written(Texts(), dialect).items():
        assert (str(INSTANT) in text.sql) == (work in OF_AN_INSTANT)
        assert str(INSTANT) not in text.at(-86_400_000).sql
