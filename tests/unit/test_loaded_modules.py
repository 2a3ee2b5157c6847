"""Which packages a command loads: as few as it uses, for most of a short command's time is its imports."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

LOOK = """
import json, sys
from clickclock import cli
sys.argv[0] = "clickclock"
try:
    cli.main(sys.argv[1:], prog_name="clickclock")
except SystemExit:
    pass
loaded = {name.partition(".")[0] for name in sys.modules}
print(json.dumps(sorted(loaded)), file=sys.__stderr__)
"""
HELP = {"click", "clickclock"}
ASKING = HELP | {
    "anyio",
    "certifi",
    "h11",
    "httpcore",
    "httpx",
    "idna",
    "pygments",
    "rich",
    "typing_extensions",
    "uuid_utils",
}


@pytest.mark.parametrize(
    ("words", "may"),
    [
        (["--help"], HELP),
        (["serve", "--help"], HELP),
        (["--url", "http://127.0.0.1:9", "job", "list"], ASKING),
        (["--url", "http://127.0.0.1:9", "triggers", "list"], ASKING),
    ],
)
def test_a_command_loads_no_package_that_it_does_not_use(words: list[str], may: set[str]) -> None:
    # In isolation, so that nothing is counted that an environment loads at each start.
    done = subprocess.run([sys.executable, "-c", LOOK, *words], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    at_each_start = {"__main__", "_distutils_hack"} | {name for name in loaded if name.startswith("_sysconfigdata")}
    assert loaded - sys.stdlib_module_names - at_each_start <= may


@pytest.mark.parametrize("question", [["report", "--by", "channel"], ["orders"], ["cohorts"]])
def test_a_question_about_credit_loads_neither_the_store_nor_a_client(tmp_path: Path, question: list[str]) -> None:
    (tmp_path / "lake").mkdir()
    words = ["attribution", *question, "--data-dir", str(tmp_path)]
    done = subprocess.run([sys.executable, "-c", LOOK, *words], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert "ibis" in loaded
    assert loaded.isdisjoint({"sqlalchemy", "httpx"})
