"""Files as people have them, recognised before anything is kept: what each is, how it is read, and what it lacks.

Never keeps anything. Invariants: whatever was recognised can be said, column by column, with examples; what nobody can
know from the file is a question and no guess; a mapping that somebody gave counts before one that was kept, and that
before a preset.

>>> seen = recognised(config, [Path("orders_export.csv")], Told(client_id="shop-1"))   # doctest: +SKIP
>>> seen[0].kind, seen[0].mapping.name   # doctest: +SKIP
('orders', 'shopify')
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from clickclock.attribution.files.archive import Archive, Format, Rows, format_of, readable
from clickclock.attribution.files.grid import Grid, open_grid
from clickclock.attribution.files.mapped_archive import MappedArchive
from clickclock.attribution.files.mapping_files import kept, mapping_of, preset_text, presets
from clickclock.attribution.files.unpacked import unpacked
from clickclock.attribution.importing.cells import Unclear
from clickclock.attribution.importing.columns import folded
from clickclock.attribution.importing.file_mapping import COLUMNS, REQUIRED, FileMapping, Kind
from clickclock.attribution.importing.guess import NAMES, guess
from clickclock.attribution.importing.historical import Unusable
from clickclock.attribution.importing.log_line import LogReader
from clickclock.attribution.importing.readers import text_of, value_of
from clickclock.attribution.importing.recognition import recognise
from clickclock.attribution.orders.amendment import KIND
from clickclock.foundation.config import Config
from clickclock.foundation.errors import Fault, Malformed

MAPPINGS: Final = "mappings"
"""The folder of the data folder with the mappings that were kept."""
LOG: Final = "log"
EXAMPLES: Final = 3
EXAMPLE_CHARS_MAX: Final = 60
_LOG_LINES: Final = 20
_OPTION: Final = re.compile(r"--(client-id|currency|zone|dates|decimal)\b")
_OF_CLICKS: Final = frozenset({"atag", "asvt", "event_time", "cli_ubid", "device_id", "utm_source", "gclid", "query"})
_LACKS: Final = {
    Kind.ORDERS: (
        (("cli_ubid", "device_id", "customer_id"), "no order names who ordered, so none can be credited to a click"),
        (("cli_ubid", "device_id"), "orders name a customer and no browser: clicks count where something ties the two"),
        (("refunded_amount", "status"), "refunds and cancellations are unknown, so revenue is what was paid at first"),
        (("sku_id", "items"), "articles are unknown, so reports cannot be cut by seller or article"),
    ),
    Kind.COSTS: (
        (("campaign",), "campaigns are unknown, so cost and return are those of the whole channel"),
        (("ad",), "ads are unknown, so cost and return stop at the level above"),
    ),
    Kind.CLICKS: ((("cli_ubid", "device_id", "url", "query"), "clicks name no browser, so no order can be credited"),),
}


class Told(msgspec.Struct, frozen=True):
    """What somebody said of the files."""

    client_id: str | None = None
    currency: str | None = None
    zone: str | None = None
    dates: str | None = None
    decimal: str | None = None
    preset: str | None = None
    mapping: Path | None = None
    encoding: str | None = None
    sheet: str | None = None


@dataclass(slots=True)
class Seen:
    """One file, and what it was recognised as."""

    path: Path
    kind: str
    rows: Rows
    how: str
    """By what: `preset shopify`, `kept mapping`, `our own columns`, `server log`, a guess, or a mapping file's name."""
    mapping: FileMapping | None = None
    grid: Grid | None = None
    columns: list[dict[str, Any]] = field(default_factory=list)
    """For each of our columns the file's, and examples."""
    ignored: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Columns that the mapping does not know, which are ignored, too."""
    lacks: list[str] = field(default_factory=list)
    """What a report will lack."""
    questions: dict[str, str] = field(default_factory=dict)
    """What cannot be known, by the option that says it, with the sentence that asks."""


def recognised(config: Config, paths: Sequence[Path], told: Told) -> list[Seen]:
    """What each file is. Raises `Malformed` with a fault for each file that is not recognised, `Invalid`."""
    seen: list[Seen] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            seen.append(_recognised(config, path, told))
        except Malformed as error:
            faults.append(Fault(str(path), str(error).removeprefix(f"{path} ").removeprefix(f"{path}, ")))
    if faults:
        raise Malformed("Not every file can be imported, so nothing was.", faults)
    return seen


def _recognised(config: Config, path: Path, told: Told) -> Seen:
    Archive(path, Format.CSV).version()  # which says why a file is not there
    if told.preset is None and told.mapping is None and _is_log(path):
        return Seen(path, LOG, Archive(path, Format.LOG), "lines of a server's log")
    given = None if told.mapping is None else mapping_of(told.mapping)
    if told.preset is not None:
        preset_text(told.preset)
    known = [*presets(), *([] if given is None else [given])]
    names = {folded(name.partition("{")[0]) for mapping in known for name in mapping.names}
    names |= {name for columns in COLUMNS.values() for name in columns or ()} | _OF_CLICKS | {"date"} | NAMES
    widths = {len(mapping.header) for mapping in known if mapping.header}
    grid = open_grid(path, names, widths, told.encoding, told.sheet)
    mapping, how = given, str(told.mapping)
    if mapping is None:
        mapping, how = _chosen(config, grid, told)
    mapping = _with(mapping, told, config)
    try:
        archive = MappedArchive(grid, mapping)
    except Unclear as unclear:
        raise Malformed(f"{path}: {unclear}.") from unclear
    seen = Seen(path, mapping.kind, archive, how, mapping, grid)
    _describe(seen, archive)
    if mapping.kind is Kind.CLICKS and how == PLAIN and _is_plain(grid, told):
        seen.rows = Archive(path, format_of(path) or Format(grid.how.form))
    return seen


PLAIN: Final = "our own columns"
_OF_ORDERS: Final = ("amount", KIND)
"""One of these beside the order's id makes a file one of orders: a lead may have no amount."""
GUESS: Final = "a guess from the names of its columns"
"""Nobody described such a file, so nothing is kept of it unless somebody agrees to the guess."""


def _chosen(config: Config, grid: Grid, told: Told) -> tuple[FileMapping, str]:
    if told.preset is None:
        before = kept(config.data_dir / MAPPINGS, grid.header, _client_of(config, told) or "")
        if before is not None:
            return before, "the mapping that was kept"
    candidates = [each for each in presets() if told.preset in (None, each.name)]
    found = recognise(grid.header, candidates)
    if found.mapping is not None:
        return found.mapping, f"preset {found.mapping.name}: {found.mapping.title}"
    plain = None if told.preset is not None else _plain(grid)
    if plain is not None:
        return plain, PLAIN
    shown = ", ".join(grid.header)[:200]
    if found.almost:
        sentences = "; ".join(each.sentence for each in found.almost[:2])
        raise Malformed(
            f"{grid.path} is not recognised: {sentences}. Copy the preset ({found.almost[0].mapping.name}), change its "
            "columns, and give the copy as --mapping."
        )
    if told.preset is not None:
        lacks = recognise(grid.header, candidates)
        raise Malformed(f"{grid.path} is not of preset {told.preset}{'' if lacks.almost else f': it has {shown}'}.")
    guessed = guess(grid.header, [row for _, rows in grid.sample for row in rows])
    if guessed is not None:
        return guessed, GUESS
    raise Malformed(f"{grid.path} is not recognised: it has {shown}. Say what its columns are: --mapping FILE.")


def _plain(grid: Grid) -> FileMapping | None:
    """The mapping of a table that has our own names, if it is one."""
    names = {folded(name): name for name in grid.header if name}
    if "order_id" in names and not names.keys().isdisjoint(_OF_ORDERS):
        kind = Kind.ORDERS
    elif {"amount", "channel"} <= names.keys() and names.keys() & {"day", "date"}:
        kind = Kind.COSTS
    elif "query" in names or ("client_id" in names and names.keys() & _OF_CLICKS):
        kind = Kind.CLICKS
    else:
        return None
    ours = COLUMNS[kind] or tuple(names)
    columns: dict[str, tuple[str, ...]] = {name: (names[name],) for name in ours if name in names}
    if kind is Kind.COSTS and "day" not in columns:
        columns["day"] = (names["date"],)
    return FileMapping(kind=kind, columns=columns, optional=tuple(columns), amends=kind is Kind.ORDERS)


def _is_plain(grid: Grid, told: Told) -> bool:
    """Whether an archive reads it as it is, with the ids that `import-clicks` gives."""
    how = grid.how
    is_text = how.form == "csv" and how.encoding in ("utf-8", "utf-8-sig") and how.header_line == 1
    return (is_text or how.form in ("ndjson", "parquet")) and not (told.client_id or told.zone or told.dates)


def _with(mapping: FileMapping, told: Told, config: Config) -> FileMapping:
    """The mapping with what somebody said besides."""
    constants = dict(mapping.constants)
    client_id = _client_of(config, told)
    if told.client_id is not None:
        constants["client_id"] = told.client_id
    elif client_id is not None and "client_id" not in mapping.columns:
        constants.setdefault("client_id", client_id)
    if told.currency is not None:
        constants["currency"] = told.currency
    said = {"order": told.dates, "zone": told.zone}
    times = mapping.times.model_copy(update={name: value for name, value in said.items() if value is not None})
    numbers = mapping.numbers.model_copy(update={} if told.decimal is None else {"decimal": told.decimal})
    return FileMapping.model_validate(
        mapping.model_dump() | {"constants": constants, "times": times.model_dump(), "numbers": numbers.model_dump()}
    )


def _client_of(config: Config, told: Told) -> str | None:
    """The client that somebody said, or else the only one that there is."""
    return told.client_id or (config.accounts[0].client_id if len(config.accounts) == 1 else None)


def _is_log(path: Path) -> bool:
    """Whether its first lines are requests, as a server logs them."""
    reader = LogReader()
    requests = lines = 0
    with suppress(Malformed), readable(path), unpacked(path) as text:
        for _ in range(_LOG_LINES):
            line = text.readline(64 * 1024)
            if not line.strip():
                continue
            if reader.heeds(line):
                requests += 1
                lines += 1
                continue
            lines += 1
            with suppress(Unusable):
                reader.read(line)
                requests += 1
    return lines > 0 and requests * 2 > lines


def _describe(seen: Seen, archive: MappedArchive) -> None:
    mapping, grid, mapper = archive.mapping, archive.grid, archive.mapper
    sample = [row for _, rows in grid.sample for row in rows]
    for column, source in mapper.sources.items():
        cells = (row[source.place] for row in sample if len(row) > source.place)
        found = (cell if source.key is None else value_of(cell, source.key) for cell in cells)
        values = dict.fromkeys(text_of(cell).strip()[:EXAMPLE_CHARS_MAX] for cell in found)
        examples = [value for value in values if value][:EXAMPLES]
        name = source.name if source.key is None else f"{source.name}[{source.key}]"
        seen.columns.append({"column": column, "from": name, "examples": examples})
    for column, value in mapping.constants.items():
        if column not in mapper.sources:
            seen.columns.append({"column": column, "from": "", "examples": [value]})
    used = {source.place for source in mapper.sources.values()}
    known = {folded(name) for name in mapping.names}
    for place, name in enumerate(archive.header):
        if place not in used:
            is_known = folded(name) in known or folded(name).partition(".")[0] in known
            # Of an object of JSON that is used in part, each part is a column, too.
            is_known = is_known or any(each.startswith(f"{folded(name)}.") for each in known)
            (seen.ignored if is_known else seen.unknown).append(name)
    for columns, sentence in _LACKS[mapping.kind]:
        if not any(column in mapper.sources or column in mapping.constants for column in columns):
            seen.lacks.append(sentence)
            if len(columns) > 1:
                break
    _ask(seen, archive)


def _ask(seen: Seen, archive: MappedArchive) -> None:
    """What the first rows leave open."""
    mapping, mapper = archive.mapping, archive.mapper
    found: list[dict[str, Any]] = []
    for numbers, rows in archive.grid.sample:
        for number, record in mapper.read(numbers, rows):
            if isinstance(record, dict):
                found.append(record)
            elif isinstance(record, Unusable) and (option := _OPTION.search(str(record))):
                seen.questions.setdefault(option[1], f"line {number:,}, {record}")
    mapper.left_out.clear()
    for column in REQUIRED[mapping.kind]:
        is_there = column in mapper.sources or column in mapping.constants
        if is_there or (mapping.kind is Kind.CLICKS and "query" in mapper.sources):
            continue
        if column == "currency" and any(column in record for record in found):
            continue  # its sign stands beside the amounts
        if column == "amount" and (KIND in mapper.sources or KIND in mapping.constants):
            continue  # a lead may have none
        name = {"client_id": "client-id", "currency": "currency"}.get(column, "mapping")
        seen.questions.setdefault(name, f"the file does not say the {column}")
