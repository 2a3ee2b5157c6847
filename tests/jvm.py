"""How Spark lives in tests: for a minute, with few rows, on two cores that it shares.

Never changes what is computed. Invariant: no file outside of this repository says how Spark is set up.

>>> sorted(BRIEFLY)
['JAVA_TOOL_OPTIONS', 'SPARK_CONF_DIR']
"""

from tests.house.tree import ROOT

BRIEFLY = {
    # Code that is compiled better would pay off after an hour.
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m",
    "SPARK_CONF_DIR": str(ROOT / "tests" / "data" / "spark"),
}
"""Variables of its environment."""
