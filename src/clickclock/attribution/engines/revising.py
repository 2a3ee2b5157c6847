"""What stands in tables that runs revise, as expressions: the rows of a few keys, retractions among them.

Never decides which of them count. Whole tables are looked through for few rows, and an engine does not make texts of
the others.

>>> unconverted().columns
('client_id', 'person', 'path', 'run', 'is_retraction', 'month')
"""

import ibis
import pyarrow as pa

from clickclock.attribution.engines import CREDITED, PATHS
from clickclock.attribution.engines.columns import unbound


def credited() -> ibis.Table:
    """`CREDITED` of those of `credits` that have one of the order ids `keys`."""
    return _having(CREDITED, "credits", "order_id")


def unconverted() -> ibis.Table:
    """`PATHS` of those of `paths` that are of one of the persons `keys`."""
    return _having(PATHS, "paths", "person")


def _having(schema: pa.Schema, name: str, column: str) -> ibis.Table:
    rows = unbound(schema, name)
    keys = unbound(pa.schema([("key", schema.field(column).type)]), "keys")
    return rows.join(keys, rows[column] == keys.key).select(*schema.names)
