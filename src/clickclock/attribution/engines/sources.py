"""What clicks name as their source, and the channel of each such word: a table that engines join with clicks.

Never decides: the words are those of `policy`. Invariant: each word is there once, in small letters.

>>> dict(zip(*NAMED.to_pydict().values()))["bing"]
'microsoft'
"""

from typing import Final

import pyarrow as pa

from clickclock.attribution.crediting.policy import CHANNEL_OF_SOURCE

NAMED: Final = pa.table(
    [pa.array(CHANNEL_OF_SOURCE), pa.array(CHANNEL_OF_SOURCE.values())],
    pa.schema([("word", pa.string()), ("channel", pa.string())]),
)
