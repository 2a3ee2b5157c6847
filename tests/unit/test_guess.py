"""A mapping that is guessed: by names in several languages, and never against what stands in a column."""

import pytest

from clickclock.attribution.importing.file_mapping import Kind, read, written
from clickclock.attribution.importing.guess import guess

Columns = dict[str, tuple[str]]
ORDERS: list[tuple[str, str, Columns]] = [
    (
        "Order #;Placed at;Subtotal;Total;Ccy;Customer Email",
        "7;2026-11-03 10:15;10.00;12.90;EUR;a@b.example",
        {
            "order_id": ("Order #",),
            "event_time": ("Placed at",),
            "amount": ("Total",),
            "customer_id": ("Customer Email",),
        },
    ),
    (
        "N° de commande;Date de commande;Montant TTC (EUR);Statut;Nom du client",
        "7;03/11/2026;12,90;payée;Anne",
        {"order_id": ("N° de commande",), "event_time": ("Date de commande",), "amount": ("Montant TTC (EUR)",)}
        | {"status": ("Statut",)},
    ),
    (
        "Datum;Rechnungsbetrag;Währung;Auftrags-Nr.;MwSt. Betrag",
        "3.11.2026 10:15;12,90;EUR;7;2,06",
        {"event_time": ("Datum",), "amount": ("Rechnungsbetrag",), "currency": ("Währung",)}
        | {"order_id": ("Auftrags-Nr.",)},
    ),
    (
        "transactionId,orderDate,total_price,shop_id,Order Notes",
        "7,1795095300000,12.90,s-1,please ring",
        {"order_id": ("transactionId",), "event_time": ("orderDate",), "amount": ("total_price",)}
        | {"seller_id": ("shop_id",)},
    ),
    (
        "Número de pedido;Fecha;Importe total;Estado del pedido;Correo electrónico",
        "7;03/11/2026 10:15;12,90 €;Completado;a@b.example",
        {"order_id": ("Número de pedido",), "event_time": ("Fecha",), "amount": ("Importe total",)}
        | {"status": ("Estado del pedido",), "customer_id": ("Correo electrónico",)},
    ),
    (
        "Order ID,Created at,Conversion type,Email",
        "7,2026-11-03 10:15,Lead,a@b.example",
        {"order_id": ("Order ID",), "event_time": ("Created at",), "kind": ("Conversion type",)}
        | {"customer_id": ("Email",)},
    ),
]


def _guessed(header: str, row: str) -> tuple[list[str], list[list[str]]]:
    separator = ";" if ";" in header else ","
    return header.split(separator), [row.split(separator)]


@pytest.mark.parametrize(("header", "row", "columns"), ORDERS)
def test_orders_are_known_by_their_columns_in_several_languages(header: str, row: str, columns: Columns) -> None:
    found = guess(*_guessed(header, row))
    assert found is not None
    assert (found.kind, found.columns) == (Kind.ORDERS, columns)
    assert read(written(found), "shop.toml") == found


@pytest.mark.parametrize(
    ("header", "row", "columns"),
    [
        ("Datum;Kampagne;Kosten (EUR)", "3.11.2026;Brand;1,50", {"day": "Datum", "campaign": "Kampagne"}),
        ("day,platform,spend,impressions", "2026-11-03,tiktok,1.50,900", {"day": "day", "channel": "platform"}),
    ],
)
def test_costs_name_a_day_and_something_advertised(header: str, row: str, columns: dict[str, str]) -> None:
    found = guess(*_guessed(header, row))
    assert found is not None
    assert (found.kind, found.adds_up) == (Kind.COSTS, True)
    assert {name: found.columns[name][0] for name in columns} == columns
    assert found.columns.keys() == {*columns, "amount"}


def test_visits_are_addresses_with_a_time() -> None:
    found = guess(["Timestamp", "Page URL"], [["2026-11-03T10:15:00Z", "https://shop.example/?gclid=x"]])
    assert found is not None
    assert (found.kind, found.columns) == (Kind.CLICKS, {"event_time": ("Timestamp",), "url": ("Page URL",)})


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("a,b", "1,2"),
        ("Order,Total", "7,see invoice"),  # no amount
        ("Date,Amount", "2026-11-03,1.50"),  # of nothing that was advertised
        ("Date,URL", "2026-11-03,none"),
        ("", ""),
    ],
)
def test_nothing_is_guessed_of_what_says_nothing(header: str, row: str) -> None:
    assert guess(*_guessed(header, row)) is None


def test_what_names_and_values_say_besides_is_taken() -> None:
    header = ["order no", "created at", "total (EUR)", "email", "sku", "state"]
    rows = [["7", "2026-11-03", "12.90", "a@b.example", sku, "Paid"] for sku in ("P-1", "P-2")]
    found = guess(header, rows)
    assert found is not None
    assert (found.constants, found.hashed, found.values) == (
        {"currency": "EUR"},
        ("customer_id",),
        {"status": {"Paid": "completed"}},
    )
    assert found.lines is not None
    alone = guess(header, rows[:1])
    assert alone is not None
    assert alone.lines is None


def test_a_name_of_somebody_is_no_id_of_a_customer() -> None:
    found = guess(["order", "total", "customer name"], [["7", "1.00", "Anne"]])
    assert found is not None
    assert "customer_id" not in found.columns
