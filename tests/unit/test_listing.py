"""Lists of orders: what is asked, and cursors that belong to one list."""

from datetime import UTC, datetime

import pytest

from clickclock.attribution.crediting.journey import Reason
from clickclock.attribution.reporting.listing import read_orders, read_paths
from clickclock.cli.attribution_orders import REASONS
from clickclock.foundation.errors import Malformed

LAST = {"placed_at": datetime(2026, 11, 2, 12, tzinfo=UTC), "client_id": "shop", "order_id": "A"}


def test_a_cursor_continues_its_own_list_in_its_own_version() -> None:
    asked = read_orders({"channel": ["google"], "model": ["last"]})
    cursor = asked.cursor(3, LAST)
    again = read_orders({"channel": ["google"], "model": ["last"], "cursor": [cursor], "limit": ["7"]})
    assert (again.version, again.limit, again.after and again.after.order_id) == (3, 7, "A")
    for other in ({"channel": ["meta"]}, {"channel": ["google"], "version": ["2"]}, {"channel": ["google"]}):
        with pytest.raises(Malformed) as refused:
            read_orders({**other, "cursor": [cursor]})
        assert [fault.field for fault in refused.value.faults] == ["cursor"]


@pytest.mark.parametrize("cursor", ["", "x", "WzEs", "é", "W10", "A" * 100_000])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(Malformed) as refused:
        read_orders({"cursor": [cursor]})
    assert [fault.field for fault in refused.value.faults] == ["cursor"]


def test_the_command_line_knows_every_reason() -> None:
    assert tuple(Reason) == REASONS
    assert read_orders({"reason": ["no_click"]}).filters.of_order == {"reason": "no_click"}


def test_every_fault_is_named_at_once() -> None:
    given = {"limit": ["201"], "credited": ["maybe"], "from": ["2026-11-02"], "to": ["2026-11-01"], "clientId": [""]}
    given["reason"] = ["no_clicks"]
    with pytest.raises(Malformed) as refused:
        read_orders({**given, "channels": ["google"]})
    assert {fault.field for fault in refused.value.faults} == {*given, "channels"} - {"to"}
    with pytest.raises(Malformed):
        read_paths({"model": ["last"]})
