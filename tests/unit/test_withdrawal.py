"""What was written for ad networks loses the rows about who was erased, and keeps all others byte for byte."""

import json

import pytest

from clickclock.attribution.erasing.erasure import Identifier, Marks, Sought
from clickclock.attribution.erasing.withdrawal import without
from clickclock.attribution.uploads.meta_upload import hashed

SOUGHT = Sought("shop-1", [Identifier("cli_ubid", "browser-12345")])
MARKS = Marks(clicks=frozenset({"gclid-1"}), orders=frozenset({"A-1"}))
HEAD = "Parameters:TimeZone=Europe/Berlin\nGoogle Click ID,Conversion Name,Conversion Value,Order ID\n"


def test_rows_of_its_clicks_and_orders_go() -> None:
    mine = ["gclid-1,Order,1.00,B-7\n", "gclid-2,Order,1.00,A-1\n", "gclid-3,Order,1.00,A-1#2\n"]
    others = ["gclid-4,Order,1.00,A-12\n", '"gclid-5","two\nlines, A-1",1.00,C\n', "A-1,gclid-1,1.00,D\n"]
    file = HEAD + others[0] + mine[0] + others[1] + mine[1] + mine[2] + others[2]
    left = without(file.encode(), SOUGHT, MARKS)
    assert left.content.decode() == HEAD + "".join(others)
    assert (left.rows, left.withdrawn) == (3, 3)


def test_adjustments_are_known_by_their_order() -> None:
    head = "Parameters:TimeZone=UTC\nOrder ID,Conversion Name,Adjustment Type\n"
    left = without(f"{head}A-1,Order,RETRACT\n".encode(), SOUGHT, MARKS)
    assert (left.content.decode(), left.rows, left.withdrawn) == (head, 0, 1)


@pytest.mark.parametrize(
    "event",
    [
        {"user_data": {"external_id": ["x", hashed("browser-12345")]}, "custom_data": {"order_id": "B"}},
        {"user_data": {"external_id": []}, "custom_data": {"order_id": "A-1"}},
        {
            "user_data": {"external_id": []},
            "custom_data": {"order_id": "B"},
            "event_source_url": "https://shop.example/?u=browser%2D12345",
        },
    ],
)
def test_events_about_it_go(event: dict[str, object]) -> None:
    other = '{"user_data":{"external_id":["y"]},"custom_data":{"value":9.90,"order_id":"A-12"}}'
    left = without(f'{{"data":[{json.dumps(event)},{other}]}}'.encode(), SOUGHT, MARKS)
    assert left.content.decode() == f'{{"data":[{other}]}}'
    assert (left.rows, left.withdrawn) == (1, 1)


def test_a_file_without_it_is_left_as_it_is() -> None:
    for file in (HEAD.encode() + b"gclid-9,Order,1.00,Z\n", b'{"data": [  ]}'):
        assert without(file, SOUGHT, MARKS).content == file


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\x0c", "\x1e"])
def test_a_row_is_a_whole_line_whatever_else_python_takes_for_the_end_of_one(mark: str) -> None:
    mine, other = f"gclid-7,Order,1.00,A{mark}1\n", f"gclid-8,Order,1.00,A{mark}2\n"
    left = without((HEAD + mine + other).encode(), SOUGHT, Marks(orders=frozenset({f"A{mark}1"})))
    assert left.content.decode() == HEAD + other
    assert (left.rows, left.withdrawn) == (1, 1)
