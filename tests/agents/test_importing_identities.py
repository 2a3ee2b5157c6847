"""Identifications from files: they are what the call would have brought, and once is enough."""

from pathlib import Path

from clickclock.attribution.lake import EVENTS, REJECTIONS
from tests.agents.test_importing_orders import NOW_MS, World


async def test_identifications_of_files_are_kept_once_and_bad_ones_with_their_faults(tmp_path: Path) -> None:
    world = World(tmp_path)
    rows = [
        {"client_id": "shop", "customer_id": "c-7", "cli_ubid": "phone", "event_time": str(NOW_MS - 5)},
        {"client_id": "shop", "customer_id": "c-7", "cli_ubid": "laptop"},
        {"client_id": "shop", "customer_id": "null", "cli_ubid": "x"},
    ]
    report = await world.identify(world.csv(rows))
    assert (report.rows, report.accepted, report.refused) == (3, 2, 1)
    assert dict(report.kept) == {"events": 2, "rejections": 1}
    assert report.refused_rows[0].message.startswith("customer_id: ")
    again = await world.identify(world.ndjson(rows))
    assert (dict(again.kept), again.known) == ({}, 3)
    await world.compact()
    found = [(row["name"], row["parameters"]) for row in world.rows(EVENTS.name)]
    assert {name for name, _ in found} == {"identify"}
    assert {dict(parameters)["cli_ubid"] for _, parameters in found} == {"phone", "laptop"}
    (rejected,) = world.rows(REJECTIONS.name)
    assert (rejected["what"], rejected["client_id"]) == ("identification", "shop")
