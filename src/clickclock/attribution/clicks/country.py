"""The country of a click whose own query says none: a parameter in front of the others.

Never does I/O: the table is behind the door. Invariant: what a click says of its country itself counts.

>>> located(b"client_id=c", b"country=DE"), located(b"country=FR&client_id=c", b"country=DE")
(b'country=DE&client_id=c', b'country=FR&client_id=c')
"""

from typing import Final

PARAMETER: Final = b"country="


def located(query: bytes, country: bytes) -> bytes:
    """The query with this parameter; as it is, where there is none or the query has one. Both as bytes of a query."""
    if not country or query.startswith(PARAMETER) or b"&" + PARAMETER in query:
        return query
    return b"%b&%b" % (country, query)
