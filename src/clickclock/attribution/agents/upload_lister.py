"""Lists the uploads to ad networks, file by file.

Never writes a file and never tells a network. Invariant: each row of `uploads` is counted in one file.

>>> UploadLister(lake, exporter.size_of).files(Files(), now)["files"]   # doctest: +SKIP
[]
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.lake import UPLOADS, Lake, of_clients
from clickclock.attribution.orders.money import to_text
from clickclock.attribution.reporting.uploads import Files
from clickclock.attribution.uploads.upload import kind_of, network_of
from clickclock.foundation.record import rfc3339

DAYS: Final = 180
"""How far back files are listed: older uploads are about clicks that no network takes any more."""
_OF_FILE: Final = ["file", "network", "client_id", "exported_at"]


class UploadLister:
    """Over one lake; `size_of` gives the bytes of a file in the folder of exports, None if it is not there."""

    def __init__(self, lake: Lake, size_of: Callable[[str], int | None]) -> None:
        self._lake = lake
        self._size_of = size_of

    def files(self, asked: Files, now: datetime) -> dict[str, Any]:
        """The newest files, as JSON. Raises `LakeUnreachable`."""
        sums = self._sums(asked, now - timedelta(days=DAYS))
        files: dict[str, dict[str, Any]] = {}
        for row in sorted(sums, key=lambda each: (each["exported_at"], each["file"]), reverse=True):
            told = files.setdefault(row["file"], _file(row, self._size_of(row["file"])))
            told["kinds"][row["kind"]] = told["kinds"].get(row["kind"], 0) + row["rows"]
            told["values"][row["currency"]] = told["values"].get(row["currency"], 0) + row["value_minor"]
        shown = list(files.values())[: asked.limit]
        for each in shown:
            each["values"] = {currency: to_text(minor, currency) for currency, minor in each["values"].items()}
        return {"files": shown, "hasMore": len(files) > len(shown)}

    def _sums(self, asked: Files, since: datetime) -> list[dict[str, Any]]:
        where = pc.field("exported_at") >= since
        if asked.clients is not None:
            where &= of_clients(asked.clients)
        keys = [*_OF_FILE, "kind", "currency"]
        schema = pa.schema([UPLOADS.whole.field(name) for name in [*keys, "value_minor"]])
        batches = [*self._lake.scan(UPLOADS.name, where, schema.names)]
        rows = pa.Table.from_batches([batch.select(schema.names) for batch in batches], schema)
        network = pc.replace_substring_regex(rows["network"], r"\..*", "")
        mine = rows.filter(pc.is_in(network, pa.array(map(str, asked.networks))))
        summed = mine.group_by(keys).aggregate([("value_minor", "sum"), ("kind", "count")])
        names = {"value_minor_sum": "value_minor", "kind_count": "rows"}
        told: list[dict[str, Any]] = summed.rename_columns(
            [names.get(name, name) for name in summed.column_names]
        ).to_pylist()
        return told


def _file(row: Mapping[str, Any], size: int | None) -> dict[str, Any]:
    return {
        "file": row["file"],
        "network": network_of(row["network"]),
        "orderKind": kind_of(row["network"]),
        "clientId": row["client_id"],
        "exportedAt": rfc3339(row["exported_at"]),
        "bytes": size,
        "kinds": {},
        "values": {},
    }
