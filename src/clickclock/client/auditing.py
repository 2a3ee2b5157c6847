"""The part of the client that reads the audit trail: who did what, and the chains that prove it.

Never writes a record: the service does, where somebody changes something. Invariant: a trail is read chain after chain,
each from its end, as `clickclock.foundation.hash_chain.verify` takes it.

>>> with Client() as client:                                                          # doctest: +SKIP
...     client.list_audit(application="shop", jobName="nightly-export")["records"]
"""

from collections.abc import Iterator

from clickclock.client.connection import Connection, Payload

RECORDS_PER_PAGE = 1000


class Auditing:
    """What a client can ask of the audit trail."""

    _connection: Connection

    def list_audit(self, **filters: object) -> Payload:
        """Records, newest first; with `chain` those of a chain, from its end."""
        return self._connection.call("GET", "audit", query=filters)

    def audit_chains(self) -> Payload:
        """The chains, each with its head."""
        return self._connection.call("GET", "auditChain")

    def audit_trail(self) -> Iterator[Payload]:
        """All records, chain after chain, each from its end; after the records of a chain comes its head."""
        for name in [each["chain"] for each in self.audit_chains()["chains"]]:
            cursor = None
            while True:
                page = self.list_audit(chain=name, limit=RECORDS_PER_PAGE, cursor=cursor)
                yield from page["records"]
                cursor = page["nextCursor"]
                if cursor is None:
                    break
            # Read after its records: retention may have gone on meanwhile.
            yield next(each for each in self.audit_chains()["chains"] if each["chain"] == name)
