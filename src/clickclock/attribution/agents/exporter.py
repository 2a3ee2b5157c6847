"""The exporter: credits of the latest result → files for ad networks and partners, each conversion once.

Never sends anything. Invariants: every row of every file is in the lake's table `uploads`, and every row there is in a
file that is there, or will be when the next export into its folder begins; a second export of the same result writes
nothing.

A step writes all its files hidden and makes them durable, commits all their rows to `uploads` at once, and then gives
the files their names. The commit decides. If we die before it, no network knows anything: the next step deletes the
hidden files, and tells the same. If we die after it, the next step finds that the names of the hidden files are in
`uploads`, and gives them their names. Of two that export at once into two folders, the lake refuses the commit of one;
in one folder, a lock lets one in.

>>> exporter = Exporter(lake, policies, SystemClock(), Outbox(Path("exports")))   # doctest: +SKIP
>>> exporter.step(Wanted("last")).files   # doctest: +SKIP
[]
"""

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.clicks import consent
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.files.export_files import client_name
from clickclock.attribution.files.outbox import Outbox
from clickclock.attribution.lake import CLICKS, ORDER_MONTH, UPLOADS, Lake, of_clients
from clickclock.attribution.orders.amendment import KIND, Status
from clickclock.attribution.orders.money import is_current
from clickclock.attribution.reporting.result import Result
from clickclock.attribution.uploads import google_upload, meta_upload, upload
from clickclock.attribution.uploads.export import Exported, File, Wanted
from clickclock.attribution.uploads.google_upload import IDS as GOOGLE_IDS
from clickclock.attribution.uploads.google_upload import ROWS_MAX as GOOGLE_MAX
from clickclock.attribution.uploads.meta_upload import EVENTS_MAX as META_MAX
from clickclock.attribution.uploads.meta_upload import Change, fitting
from clickclock.attribution.uploads.postback import POSTBACKS_MAX, Partner, click_values, postbacks
from clickclock.attribution.uploads.upload import Conversion, Credited, Fate, Kind, Memory, Network, Recipient, Upload
from clickclock.attribution.uploads.upload_form import is_click_id, is_order_id
from clickclock.foundation.advance import tell
from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import Invalid
from clickclock.foundation.instant import instant_of, ms_of

NOTE: Final = "export"
"""The note of `uploads` that counts the exports."""
MEMORY_DAYS: Final = 180
"""Older uploads are about clicks that no network takes any more."""
CLICKS_AT_A_TIME: Final = 2**16
_CREDIT_COLUMNS: Final = (
    *("client_id", "order_id", "placed_at", "currency", "click_id", "click_at", "channel", KIND),
    *("amount_minor", "status"),
)
_CLICK_COLUMNS: Final = {
    Network.GOOGLE: ["id", *GOOGLE_IDS, "other"],
    Network.META: ["id", "event_time", "cli_ubid", "device_id", "gaid", "idfa", "user_agent", "referer", "other"],
}
VIEW: Final = ""
"""In the place of a click's id, where a view earned the credit: no click is found by it."""
_NUMBERS: Final = ("credit", "refund", "share")


class Exporter:
    """What one command does."""

    def __init__(self, lake: Lake, policies: Policies, clock: Clock, outbox: Outbox) -> None:
        self._lake = lake
        self._policies = policies
        self._clock = clock
        self._outbox = outbox

    def step(self, wanted: Wanted) -> Exported:
        """Export what networks do not know yet.

        Raises `Invalid` if the result has no such model or the folder cannot be written, `Conflict` and `RunOvertaken`
        if another exports, `LakeUnreachable`; then the same call later does what is left.
        """
        with self._outbox.alone():
            exported = Exported(finished=self._finish())
            results = self._lake.results()
            if results:
                exported.version = results[-1].version
                self._export(wanted, results[-1], exported)
            return exported

    def _finish(self) -> list[str]:
        """Complete what an export left that was cut off."""
        hidden = self._outbox.hidden()
        if not hidden:
            return []
        committed: set[str] = set()
        for batch in self._lake.scan(UPLOADS.name, None, ["file"]):
            committed |= set(hidden) & set(batch["file"].to_pylist())
        self._outbox.drop(set(hidden) - committed)
        self._outbox.publish(sorted(committed))
        return sorted(committed)

    def look(self, wanted: Wanted) -> Exported:
        """What a step would do now; nothing is written. Raises `Invalid` if the result has no such model."""
        exported, results = Exported(), self._lake.results()
        if results:
            exported.version = results[-1].version
            made = self._made(*self._begun(wanted, 0), results[-1], exported)
            exported.files = [file for file, _ in made]
        return exported

    def size_of(self, name: str) -> int | None:
        """How long a file is, in bytes; None if it is not in the folder (any more)."""
        return self._outbox.size_of(name)

    def _export(self, wanted: Wanted, result: Result, exported: Exported) -> None:
        ledger = self._lake.ledger(UPLOADS)  # before anything is read: another's commit after this refuses ours
        number = (ledger.noted(NOTE) or 0) + 1
        export, told = self._begun(wanted, number)
        for file, content in self._made(export, told, result, exported):
            self._outbox.write(file.name, content)
            exported.files.append(file)
        if exported.files:
            self._outbox.sync()
            parts = ledger.parts(f"export-{export.mark}", export.exported_ms)
            rows = [row for file in exported.files for row in _rows(file, export.exported_ms)]
            parts.write(pa.Table.from_pylist(rows, UPLOADS.whole))
            ledger.commit(parts.close(), export.exported_ms, notes={NOTE: number})
            self._outbox.publish([file.name for file in exported.files])

    def _begun(self, wanted: Wanted, number: int) -> tuple["_Export", dict[str, list[Upload]]]:
        """The export with this number, and the earlier uploads to its recipients."""
        told = {each.name: self._told(each.name, wanted.clients_of(each)) for each in wanted.recipients}
        now_ms = self._clock.epoch_ms()
        # Later than all earlier uploads: by that order, memory gives conversions their names.
        latest_ms = max((each.exported_ms for uploads in told.values() for each in uploads), default=0)
        return _Export(wanted, now_ms, max(now_ms, latest_ms + 1), f"{number:06}-{uuid.uuid4().hex[:8]}"), told

    def _made(
        self, export: "_Export", told: Mapping[str, list[Upload]], result: Result, exported: Exported
    ) -> Iterator[tuple[File, bytes]]:
        """Every file with its content; credits that are in no file are counted in `exported`."""
        for to in export.wanted.recipients:
            name = to.name
            tell(f"Reading credits for {name}")
            memories = upload.by_client(told[name])
            found, orders = self._credited(export, to, result, {each.order_id for each in told[name]})
            credited = upload.by_client(found)
            clients = sorted(memories.keys() | credited.keys())
            for place, client_id in enumerate(clients):
                tell(f"Writing conversions of clients for {name}", place, len(clients))
                known = Memory(memories.get(client_id, ()))
                of_client = credited.get(client_id, ())
                made = upload.plan(of_client, known, orders.get(client_id, ()), to.rules, export.now_ms)
                if isinstance(to, Partner):
                    yield from self._calls(export, to, client_id, made, known)
                elif isinstance(to, Conversion):
                    yield from self._files(export, to, client_id, made, known, exported.changes[name])
                exported.fates[name].update(made.fates)

    def _told(self, name: str, clients: Sequence[str] | None) -> list[Upload]:
        since = self._clock.now() - timedelta(days=MEMORY_DAYS)
        where = pc.field("exported_at") >= since
        if clients is not None:
            where &= of_clients(clients)
        return [
            Upload(
                Kind(row["kind"]),
                row["client_id"],
                row["order_id"],
                row["click_id"],
                row["value_minor"],
                row["currency"],
                row["conversion_ms"],
                ms_of(row["exported_at"]),
            )
            for batch in self._lake.scan(UPLOADS.name, where)
            for row in _chosen(batch, pc.field("network") == str(name))
        ]

    def _credited(
        self, export: "_Export", to: Recipient, result: Result, told: Collection[str]
    ) -> tuple[list[Credited], Mapping[str, set[str]]]:
        """What the model gives the recipient's clicks, of all orders that it can be told of.

        And by client the ids of those of the orders `told` that the result still has.
        """
        model, models = export.wanted.model_of(to), sorted(chain(*self._lake.models(result)))
        if model not in models:
            raise Invalid(f"The latest result has no model {model}; give one of {', '.join(models)}.")
        since = instant_of(export.now_ms - to.rules.order_age_ms_max)
        # Months are those of the account's zone, which may be behind.
        month = f"{since - timedelta(days=1):%Y-%m}"
        where = pc.field(ORDER_MONTH) >= month
        if (clients := export.wanted.clients_of(to)) is not None:
            where &= of_clients(clients)
        own = pc.field(KIND).isin(list(to.kinds)) & (pc.field("placed_at") >= since)
        own &= pc.field("channel").isin([*map(str, to.channels)]) if to.channels else pc.field("channel").is_valid()
        is_told = pc.field("order_id").isin(pa.array(told, pa.string()))
        credited: list[Credited] = []
        orders: dict[str, set[str]] = defaultdict(set)
        credit_of, refund_of, share_of = (f"{model}_{each}" for each in _NUMBERS)
        for rows in self._lake.credits(result, where, _CREDIT_COLUMNS, [model]):
            for row in rows.filter(is_told).select(["client_id", "order_id"]).to_pylist():
                orders[row["client_id"]].add(row["order_id"])
            for row in rows.filter(own).to_pylist():
                credit = Credited(
                    row["client_id"],
                    row["order_id"],
                    row["click_id"] or VIEW,
                    ms_of(row["placed_at"]),
                    ms_of(row["click_at"]),
                    row[credit_of] - row[refund_of],
                    row["currency"],
                    is_free=not row["amount_minor"] and row[share_of] > 0 and row["status"] != Status.CANCELLED,
                )
                credited.append(credit)
        return credited, orders

    def _files(
        self,
        export: "_Export",
        to: Conversion,
        client_id: str,
        made: upload.Plan,
        memory: Memory,
        changes: Counter[Change],
    ) -> Iterator[tuple[File, bytes]]:
        """The files of one conversion and client, hidden ones to be, each with its content."""
        network = to.network
        found = dict(self._clicks(_CLICK_COLUMNS[network], made.conversions))
        files = partial(export.files, to.name, client_id)
        if network is Network.META:
            fits = {click_id: fitting(meta_upload.click_of(row), export.now_ms) for click_id, row in found.items()}
            clicks = {click_id: click for click_id, (click, _) in fits.items() if click is not None}
            conversions = _fitting(made, memory, found, clicks, Fate.NOBODY, partial(is_order_id, network))
            for each in conversions:
                changes.update(fits[each.click_id][1])
            write = partial(meta_upload.events, clicks=clicks, called=to.called)
            yield from files("events.json", conversions, META_MAX, write)
            return
        has_id = {click_id: row for click_id, row in found.items() if google_upload.ids_of(row)}
        ids = {click_id: google_upload.id_of(row) for click_id, row in has_id.items()}
        gclids = {click_id: value for click_id, (name, value) in ids.items() if name == "gclid" and is_click_id(value)}
        braids = {
            click_id: (value, "") if name == "gbraid" else ("", value)
            for click_id, (name, value) in ids.items()
            if name != "gclid" and is_click_id(value)
        }
        is_name = partial(is_order_id, network)
        conversions = _fitting(made, memory, has_id, gclids | braids, Fate.BAD_CLICK_ID, is_name)
        google = google_upload.Account(to.called, self._policies.find(client_id).zone)
        consented = {click_id for click_id, row in has_id.items() if consent.is_said(dict(row["other"] or ()))}
        write = partial(google.conversions, gclids=gclids, braids=braids, consented=consented)
        yield from files("conversions.csv", conversions, GOOGLE_MAX, write)
        yield from files(
            "adjustments.csv", made.adjustments, GOOGLE_MAX, lambda part: google.adjustments(part, export.exported_ms)
        )

    def _calls(
        self, export: "_Export", partner: Partner, client_id: str, made: upload.Plan, memory: Memory
    ) -> Iterator[tuple[File, bytes]]:
        """The files of calls to one partner about one client's orders."""
        columns = ["id", "event_time", "other", *(name for name in partner.fields if name in CLICKS.whole.names)]
        uploads = [*made.conversions, *made.adjustments]
        rows = dict(self._clicks(columns, uploads))
        clicks = {click_id for click_id, row in rows.items() if click_values(partner, row) is not None}
        conversions = _fitting(made, memory, rows, clicks, Fate.NO_CLICK_ID, lambda _: True)
        adjustments = [each for each in made.adjustments if each.click_id in clicks]
        made.fates.update(Fate.NO_CLICK_ID for _ in range(len(made.adjustments) - len(adjustments)))
        write = partial(
            postbacks,
            partner,
            clicks=rows,
            model=export.wanted.model_of(partner),
            exported_ms=export.exported_ms,
            before=memory.last,
        )
        yield from export.files(
            partner.name, client_id, "postbacks.json", [*conversions, *adjustments], POSTBACKS_MAX, write
        )

    def _clicks(self, columns: list[str], uploads: Sequence[Upload]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The clicks of uploads, by their ids."""
        ids = sorted({each.click_id for each in uploads})
        for start in range(0, len(ids), CLICKS_AT_A_TIME):
            part = ids[start : start + CLICKS_AT_A_TIME]
            entry_id = pc.field("id")
            where = (entry_id >= part[0]) & (entry_id <= part[-1]) & entry_id.isin(part)
            for batch in self._lake.scan(CLICKS.name, where, columns):
                for row in batch.to_pylist():
                    yield row["id"], row


@dataclass(frozen=True)
class _Export:
    """The facts that all files of one step share."""

    wanted: Wanted
    now_ms: int
    """By which ages are judged."""
    exported_ms: int
    """The recorded time of the export: `now_ms`, or later."""
    mark: str
    """In the name of every file, and in that of no other export."""

    def files(
        self,
        name: str,
        client_id: str,
        ending: str,
        uploads: Sequence[Upload],
        count_max: int,
        write: Callable[[Sequence[Upload]], bytes],
    ) -> Iterator[tuple[File, bytes]]:
        """Files of so many uploads at most, each with what `write` makes of them."""
        client = client_name(client_id)
        for number, start in enumerate(range(0, len(uploads), count_max), start=1):
            part = uploads[start : start + count_max]
            yield File(f"{name}-{client}-{self.mark}-{number:04}-{ending}", name, client_id, part), write(part)


def _fitting(
    made: upload.Plan,
    memory: Memory,
    found: Container[str],
    fitting_clicks: Container[str],
    unfit: Fate,
    is_name: Callable[[str], bool],
) -> list[Upload]:
    """The conversions that the recipient can read, with their names; the fates of the others are counted."""

    def fate(each: Upload) -> Fate | None:
        if each.click_id not in found:
            return Fate.NO_CLICK_ID
        if each.click_id not in fitting_clicks:
            return unfit
        return None if is_current(each.currency) else Fate.BAD_CURRENCY

    fates = {each.key: fate(each) for each in made.conversions}
    named = memory.named(each for each in made.conversions if fates[each.key] is None)
    # Later names of an order are never shorter, so a name that fits never follows one that is left out.
    told = [each for each in named if is_name(each.name)]
    made.fates.update(each for each in fates.values() if each is not None)
    made.fates.update(Fate.BAD_ORDER_ID for _ in range(len(named) - len(told)))
    return told


def _rows(file: File, exported_ms: int) -> Iterator[dict[str, Any]]:
    for each in file.uploads:
        yield {
            "network": file.recipient,
            "client_id": each.client_id,
            "order_id": each.order_id,
            "click_id": each.click_id,
            "kind": str(each.kind),
            "value_minor": each.value_minor,
            "currency": each.currency,
            "conversion_ms": each.conversion_ms,
            "exported_at": instant_of(exported_ms),
            "file": file.name,
        }


def _chosen(batch: pa.RecordBatch, where: pc.Expression) -> list[dict[str, Any]]:
    """The rows that fit. A scan is asked only about columns whose bounds files tell, so that it can pass over files."""
    rows: list[dict[str, Any]] = pa.Table.from_batches([batch]).filter(where).to_pylist()
    return rows
