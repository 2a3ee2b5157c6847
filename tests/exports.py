"""Files as exporters write them: every column that they document, with what people have in theirs. All is made up.

Each export has the columns of its preset, and awkward values in those that are not used: separators, quotes, line
breaks, formulas, signs of other alphabets.
"""

import csv
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from clickclock.attribution.files.mapping_files import presets
from clickclock.attribution.importing.file_mapping import CURRENCY

AWKWARD = ('a, "b"; c', "two\nlines", "=1+1", "ÅñÜ漢", "'", "0", "  ")


def csv_of(header: Sequence[str], rows: Sequence[Mapping[str, str]], separator: str = ",") -> str:
    """A table with these columns; where a row says nothing of a column, it has an awkward value."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\r\n")
    writer.writerow(header)
    for number, row in enumerate(rows):
        filler = (AWKWARD[(number + place) % len(AWKWARD)] for place in range(len(header)))
        writer.writerow([row.get(name, other) for name, other in zip(header, filler, strict=True)])
    return text.getvalue()


def workbook(*rows: Sequence[str | float]) -> bytes:
    """A workbook with one sheet of these rows: texts and numbers."""

    def cell(value: str | float, at: str) -> str:
        if isinstance(value, str):
            return f'<c r="{at}" t="inlineStr"><is><t>{escape(value)}</t></is></c>' if value else ""
        return f'<c r="{at}"><v>{value}</v></c>'

    lines = []
    for number, row in enumerate(rows, 1):
        cells = "".join(cell(value, f"{chr(ord('A') + place)}{number}") for place, value in enumerate(row))
        lines.append(f'<row r="{number}">{cells}</row>')
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    sheets = '<sheets><sheet name="Orders" sheetId="1" r:id="rId1"/></sheets>'
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kinds}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}">{sheets}</workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
        f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{"".join(lines)}</sheetData></worksheet>',
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as bundle:
        for name, content in parts.items():
            bundle.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{content}')
    return made.getvalue()


def header_of(name: str, used: Sequence[str]) -> list[str]:
    """The columns that an exporter documents: those that are used, by these names, and all others."""
    (preset,) = [each for each in presets() if each.name == name]
    others = [each for each in preset.ignored if CURRENCY not in each and each not in used]
    return [*used, *others]


def shopify() -> bytes:
    first = {
        "Name": "#1001",
        "Email": "Anna@Example.com ",
        "Financial Status": "paid",
        "Currency": "EUR",
        "Total": "24.90",
        "Created at": "2026-11-01 10:00:00 +0100",
        "Refunded Amount": "0.00",
        "Cancelled at": "",
        "Note Attributes": "gift: no\ncli_ubid: v1\ndevice_id: ",
        "Lineitem sku": "P-1",
        "Lineitem price": "12.00",
        "Lineitem quantity": "1",
        "Lineitem name": "Pizza, large",
    }
    blank = dict.fromkeys(header_of("shopify", tuple(first)), "")
    further = {"Name": "#1001", "Email": "Anna@Example.com ", "Created at": "2026-11-01 10:00:00 +0100"}
    second = {**blank, **further, "Lineitem sku": "C-1", "Lineitem price": "4.00", "Lineitem quantity": "2"}
    refund = {**first, "Name": "#1002", "Financial Status": "partially_refunded", "Refunded Amount": "10.00"}
    cancelled = {**first, "Name": "#1003", "Cancelled at": "2026-11-02 10:00:00 +0100", "Financial Status": "refunded"}
    pending = {**first, "Name": "#1004", "Financial Status": "pending"}
    rows = [first, second, refund, cancelled, pending, {**second, "Name": "#1004"}]
    return csv_of(header_of("shopify", tuple(first)), rows).encode()


def woocommerce() -> bytes:
    row = {"Date": "2026-11-01 10:00:00", "Order #": "501", "Status": "processing", "Customer": "Anna Muster"}
    rows = [
        {**row, "Net sales": "24.90"},
        {**row, "Net sales": "-4.90", "Status": "refunded", "Date": "2026-11-03 09:00:00"},
        {**row, "Order #": "502", "Net sales": "7.00"},
        {**row, "Order #": "503", "Net sales": "7.00", "Status": "failed"},
    ]
    return csv_of(header_of("woocommerce", tuple(rows[0])), rows).encode("utf-8-sig")


def woocommerce_export() -> bytes:
    row = {
        "order_number": "501",
        "order_date": "2026-11-01 10:00:00",
        "status": "wc-completed",
        "order_total": "24.90",
        "order_currency": "EUR",
        "refunded_total": "0",
        "billing_email": "anna@example.com",
        "meta:cli_ubid": "v1",
    }
    rows = [row, {**row, "order_number": "502", "refunded_total": "24.90"}, {**row, "status": "trash"}]
    return csv_of(header_of("woocommerce-export", tuple(row)), rows).encode()


def magento() -> bytes:
    row = {
        "ID": "000000123",
        "Purchase Date": "Nov 1, 2026 10:00:00 AM",
        "Grand Total (Purchased)": "1,234.50",
        "Status": "Complete",
        "Total Refunded": "0.00",
        "Customer Email": "anna@example.com",
    }
    rows = [row, {**row, "ID": "000000124", "Status": "closed", "Total Refunded": "1234.50"}]
    return csv_of(header_of("magento", tuple(row)), [*rows, {**row, "Status": "pending_payment"}]).encode()


def shopware() -> bytes:
    row = {
        "order_number": "10001",
        "order_date_time": "2026-11-01 09:00:00.000",
        "amount_total": "24.9",
        "currency_iso_code": "EUR",
        "order_state": "Abgeschlossen",
        "customer_email": "anna@example.com",
    }
    rows = [row, {**row, "order_number": "10002", "order_state": "Storniert"}]
    return csv_of(header_of("shopware", tuple(row)), rows, ";").encode()


def bigcommerce() -> bytes:
    row = {
        "Order ID": "101",
        "Order Date": "11/20/2026",
        "Order Total (inc tax)": "24.90",
        "Order Currency Code": "USD",
        "Order Status": "Completed",
        "Refund Amount": "0.00",
        "Customer Email": "anna@example.com",
    }
    rows = [row, {**row, "Order ID": "102", "Refund Amount": "4.90"}, {**row, "Order Status": "Incomplete"}]
    return csv_of(header_of("bigcommerce", tuple(row)), rows).encode()


def stripe() -> bytes:
    row = {
        "id": "ch_1",
        "Created date (UTC)": "2026-11-01 09:00:00",
        "Amount": "24.90",
        "Currency": "eur",
        "Status": "Paid",
        "Amount Refunded": "0.00",
        "Customer ID": "cus_1",
        "order_id (metadata)": "A-1",
        "cli_ubid (metadata)": "v1",
        "Captured": "true",
        "Client Reference ID": "x",
    }
    rows = [row, {**row, "order_id (metadata)": "A-2", "Amount Refunded": "4.90", "Status": "Partially Refunded"}]
    rows += [{**row, "Status": "Failed"}, {**row, "Captured": "false"}]
    return csv_of(header_of("stripe", tuple(row)), rows).encode()


def google_ads() -> bytes:
    row = {"Tag": "2026-11-01", "Kampagne": "Frühling; 50 %", "Anzeigengruppe": "Marke", "Währungscode": "EUR"}
    rows = [{**row, "Kosten": "1.234,50"}, {**row, "Kosten": "0,50"}, {**row, "Tag": "2026-11-02", "Kosten": " --"}]
    total = {**dict.fromkeys(row, " --"), "Tag": "Gesamt: Kampagnen", "Kosten": "1.235,00"}
    table = csv_of(header_of("google-ads", (*row, "Kosten")), [*rows, total], "\t")
    return f"Kampagnenbericht\r\n1. November 2026 - 2. November 2026\r\n{table}".encode("utf-16")


def google_ads_api() -> bytes:
    rows = [
        {
            "segments": {"date": "2026-11-01"},
            "campaign": {"name": "Spring"},
            "metrics": {"cost_micros": "1234500000", "clicks": "7"},
            "customer": {"currency_code": "EUR"},
        }
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def meta_ads() -> bytes:
    amount = "Ausgegebener Betrag (EUR)"
    row = {"Tag": "2026-11-01", "Kampagnenname": "Frühling", "Anzeigengruppenname": "Breit", "Anzeigenname": "Video 1"}
    rows = [{**row, amount: "12.3", "Berichtsende": "2026-11-01"}, {**row, amount: "1", "Berichtsende": "2026-11-01"}]
    total = {**dict.fromkeys(row, ""), amount: "13.3", "Berichtsende": "2026-11-01"}
    return csv_of(header_of("meta-ads", (*row, amount, "Berichtsende")), [total, *rows]).encode("utf-8-sig")


def tiktok_ads() -> bytes:
    row = {
        "By Day": "2026-11-01",
        "Campaign name": "Spring",
        "Ad group name": "Wide",
        "Ad name": "1",
        "Currency": "EUR",
    }
    total = {**dict.fromkeys(row, "-"), "By Day": "Total of 1 results", "Cost": "12.30"}
    return csv_of(header_of("tiktok-ads", (*row, "Cost")), [{**row, "Cost": "12.30"}, total]).encode()


def microsoft_ads() -> bytes:
    head = (
        '"Report Name: Campaigns"\r\n"Report Time: 11/1/2026"\r\n"Time Zone: (GMT+01:00) Berlin"\r\n"Rows: 1"\r\n\r\n'
    )
    row = {"Gregorian date": "11/20/2026", "Campaign name": "Spring", "Ad group": "Brand", "Currency code": "EUR"}
    table = csv_of(header_of("microsoft-ads", (*row, "Spend")), [{**row, "Spend": "1,234.50"}])
    return f'{head}{table}\r\n"©2026 Microsoft Corporation. All rights reserved. "\r\n'.encode("utf-8-sig")


def ga4() -> bytes:
    def event(name: str, page: str, at_us: int) -> dict[str, Any]:
        params = [
            {"key": "page_location", "value": {"string_value": page, "int_value": None}},
            {"key": "ga_session_id", "value": {"string_value": None, "int_value": "17"}},
        ]
        said = {"event_date": "20261101", "event_timestamp": str(at_us), "event_name": name, "event_params": params}
        geo = {"geo": {"country": "Germany"}, "device": {"category": "mobile"}}
        return {**said, "user_pseudo_id": "77.88", **geo, "collected_traffic_source": {"gclid": None}}

    landing = "https://shop.example/?gclid=EAIaIQ_1&utm_source=google&utm_campaign=spring%20sale#top"
    events = [
        event("session_start", landing, 1_793_523_600_123_456),
        event("page_view", "https://shop.example/menu", 1_793_523_660_000_000),
        event("scroll", landing, 1_793_523_670_000_000),
    ]
    return "".join(json.dumps(each) + "\n" for each in events).encode()


def snowplow() -> bytes:
    (preset,) = [each for each in presets() if each.name == "snowplow"]
    row = {
        "event": "page_view",
        "domain_userid": "d-1",
        "derived_tstamp": "2026-11-01 09:00:00.123",
        "collector_tstamp": "2026-11-01 09:00:01.000",
        "page_url": "https://shop.example/?fbclid=IwAR0x",
        "useragent": "Mozilla/5.0",
        "mkt_source": "facebook",
    }
    rows = [row, {**row, "event": "page_ping"}, {**row, "page_url": "https://shop.example/", "mkt_source": ""}]
    lines = ["\t".join(each.get(name, "") for name in preset.header) for each in rows]
    return "".join(f"{line}\n" for line in lines).encode()


def matomo() -> bytes:
    row = {
        "visitorId": "c0ffee1234567890",
        "referrerType": "campaign",
        "firstActionTimestamp": "1793523600",
        "campaignSource": "newsletter",
        "campaignMedium": "email",
        "campaignName": "Spring",
        "campaignContent": "",
        "campaignKeyword": "",
        "adClickId": "",
    }
    rows = [row, {**row, "referrerType": "direct"}]
    return csv_of(header_of("matomo", tuple(row)), rows).encode("utf-16")


NAMES = {
    "shopify": "orders_export_1.csv",
    "woocommerce": "wc-orders.csv",
    "woocommerce-export": "order_export.csv",
    "magento": "export.csv",
    "shopware": "orders.csv",
    "bigcommerce": "orders-2026.csv",
    "stripe": "payments.csv",
    "google-ads": "Kampagnenbericht.csv",
    "google-ads-api": "rows.ndjson",
    "meta-ads": "Bericht.csv",
    "tiktok-ads": "report.csv",
    "microsoft-ads": "Campaigns.csv",
    "ga4": "events_20261101.json",
    "snowplow": "enriched.tsv",
    "matomo": "visits.csv",
}
"""What each exporter calls its file."""
EXPORTS = {
    "shopify": shopify,
    "woocommerce": woocommerce,
    "woocommerce-export": woocommerce_export,
    "magento": magento,
    "shopware": shopware,
    "bigcommerce": bigcommerce,
    "stripe": stripe,
    "google-ads": google_ads,
    "google-ads-api": google_ads_api,
    "meta-ads": meta_ads,
    "tiktok-ads": tiktok_ads,
    "microsoft-ads": microsoft_ads,
    "ga4": ga4,
    "snowplow": snowplow,
    "matomo": matomo,
}
"""The content of a file of each preset."""
