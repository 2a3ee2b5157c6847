"""The parts that are installed by choice: which there are, by which packages they are known, and how they come.

Never imports any of them. Invariant: `pyproject.toml` has the same extras, and a house test compares.

>>> missing(ModuleNotFoundError("No module named 'duckdb'", name="duckdb"))
"This needs a part that is not installed; install it with: pip install 'clickclock[attribution]'"
>>> missing(ModuleNotFoundError("No module named 'clickclok'", name="clickclok"))
"""

from importlib.util import find_spec
from typing import Final

ATTRIBUTION: Final = "attribution"
OIDC: Final = "oidc"
TRACES: Final = "traces"
MODULES: Final = {
    ATTRIBUTION: (
        *("charset_normalizer", "crawleruseragents", "deltalake", "duckdb", "ibis", "isal", "maxminddb"),
        *("narwhals", "numpy", "packaging", "pyarrow", "python_calamine", "scipy"),
    ),
    "encryption": ("cryptography",),
    OIDC: ("joserfc",),
    "spark": ("pandas", "py4j", "pyspark"),
    TRACES: ("opentelemetry.trace", "opentelemetry.exporter.otlp.proto.http", "opentelemetry.sdk.trace"),
}
"""What each extra brings, by the names that are imported."""


def is_installed(extra: str) -> bool:
    """Whether all of an extra is there."""
    return all(map(_is_there, MODULES[extra]))


def how_to_install(extra: str) -> str:
    """The command that brings an extra."""
    return f"pip install 'clickclock[{extra}]'"


def missing(error: ModuleNotFoundError) -> str | None:
    """What to do about a module that is not there; None if it is of no extra."""
    top = (error.name or "").partition(".")[0]
    for extra, names in MODULES.items():
        if top in {each.partition(".")[0] for each in names}:
            return f"This needs a part that is not installed; install it with: {how_to_install(extra)}"
    return None


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False
