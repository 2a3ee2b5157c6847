"""The part of the client that is about attribution: clicks and orders sent, and what is asked of the results.

Never judges a click or an order. Invariant: what was acknowledged is on the collector's disk; sending the same again is
safe, for it is taken for what it is.

>>> with Client(click_url="http://127.0.0.1:8081") as client:                         # doctest: +SKIP
...     client.register_click(client_id="shop-1", seller_id="12", atag="a", asvt="s", cli_ubid="u", event_time=now_ms)
"""

from collections.abc import Mapping, Sequence
from typing import Any

from clickclock.client.connection import Connection, Payload

ASKING_TIMEOUT_S = 150.0
"""The service lets a question wait for 60 s and answers it within 60 s, or says why not; to give up sooner is to miss
that."""


class Attributing:
    """What a client can do with clicks, orders and results."""

    _connection: Connection
    _click_url: str

    def register_click(self, **parameters: object) -> None:
        """Register one click, with the parameters as they were received; returns when it is on disk."""
        self._connection.send("GET", f"{self._click_url}/aclick", query=parameters)

    def register_view(self, **parameters: object) -> None:
        """Register one view of an ad, with the parameters of a click; returns when it is on disk."""
        self._connection.send("GET", f"{self._click_url}/aview", query=parameters)

    def send_orders(self, orders: Sequence[Mapping[str, Any]], *, token: str | None = None) -> Payload:
        """Send orders; the answer has one result for each.

        Its `status` is `success`, or `partial` if some were refused: correct those, and send them again. Raises
        `Invalid`, naming every fault, if none was taken, and `Refused` without the right token.
        """
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return self._connection.call(
            "POST", f"{self._click_url}/orders", list(orders), headers=headers, is_repeatable=True
        )

    def identify(self, identifications: Sequence[Mapping[str, Any]], *, token: str | None = None) -> Payload:
        """Tie visitors and devices to customers; the answer has one result for each, as that of `send_orders` has."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return self._connection.call(
            "POST", f"{self._click_url}/identify", list(identifications), headers=headers, is_repeatable=True
        )

    def report(self, **query: object) -> Payload:
        """What clicks brought; the query is that of `GET /attribution/report` (`from` as `**{"from": …}`)."""
        return self._ask("report", query)

    def report_file(self, **query: object) -> bytes:
        """The same as a file; `format` is `csv` or `parquet`."""
        path = f"{self._connection.root_url}/attribution/report"
        return self._connection.send("GET", path, query=query, timeout_s=ASKING_TIMEOUT_S).content

    def proof(self, client_id: str, order_id: str, version: int | None = None) -> Payload:
        """Why an order is credited as it is, in a result version or the latest."""
        return self._ask("order", {"clientId": client_id, "orderId": order_id, "version": version})

    def difference(self, before: int, after: int, client_id: str | None = None, limit: int | None = None) -> Payload:
        """The differences of two result versions, and why; at most `limit` orders are shown."""
        return self._ask("diff", {"from": before, "to": after, "clientId": client_id, "limit": limit})

    def versions(self, limit: int | None = None) -> Payload:
        """The result versions, latest first."""
        return self._ask("versions", {"limit": limit})

    def orders(self, **query: object) -> Payload:
        """A page of the orders of a version, latest first; the query is that of `GET /attribution/orders`."""
        return self._ask("orders", query)

    def paths(self, **query: object) -> Payload:
        """The commonest paths to orders; the query is that of `GET /attribution/paths`."""
        return self._ask("paths", query)

    def cohorts(self, **query: object) -> Payload:
        """What customers ordered since their first order; the query is that of `GET /attribution/cohorts`."""
        return self._ask("cohorts", query)

    def postbacks(self, **query: object) -> Payload:
        """The calls to partners; the query is that of `GET /attribution/postbacks`."""
        return self._ask("postbacks", query)

    def check_click(self, text: str, client_id: str | None = None, seller_id: str | None = None) -> Payload:
        """What the collector would make of an address, a query or a line of a server's log; nothing is kept."""
        return self._ask("check", {"click": text, "clientId": client_id, "sellerId": seller_id})

    def _ask(self, question: str, query: Mapping[str, object]) -> Payload:
        path = f"{self._connection.root_url}/attribution/{question}"
        return self._connection.call("GET", path, query=query, timeout_s=ASKING_TIMEOUT_S)
