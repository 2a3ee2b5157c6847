"""A model on an analyst's table of paths: pandas, Polars, Arrow or a list of dicts in, the same kind out.

Never guesses: text counts only if it is a number, what is missing is not 0, and of two columns that could both be meant
neither is taken. Invariant: every fault of a table is named, with its row, before anything is computed.

>>> attribute([{"path": "google > mail", "total_conversions": 3, "total_conversion_value": 30}], "linear")
[{'channel': 'google', 'conversions': 1.5, 'value': 15.0}, {'channel': 'mail', 'conversions': 1.5, 'value': 15.0}]
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import chain, repeat
from math import inf, isnan, nan
from numbers import Real
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.models.journeys import Journeys, Numbering, offsets_of
from clickclock.attribution.models.registry import Model, choose, credit_table
from clickclock.attribution.models.table import BadPath, Paths
from clickclock.attribution.models.transform import transform_of, unique

NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "conversions": ("total_conversions", "conversions", "conversion", "conv"),
        "value": ("total_conversion_value", "conversion_value", "conv_value", "value", "revenue"),
        "nulls": ("total_null", "total_nulls", "nulls", "null", "conv_null", "null_conversions"),
    }
)
"""Default names of columns, in any case. A table that has the first, which libraries share,
means that one, whatever else is there."""
NUMBER_MAX = 1e150
"""Sums and parts of such numbers, of however many paths, are still numbers; of larger ones they might be infinite."""
TEXT_CHARS_MAX = 60
"""Enough of a fault to find it."""

Table = TypeVar("Table")
Column = Sequence[Any] | NDArray[np.float64]
Faults = list[tuple[int, str]]
"""Each with the place of its row."""


class NoColumn(ValueError):
    """The table lacks columns; the text says which, a line for each."""


def attribute(
    table: Table,
    model: str | Model = "markov",
    *,
    path: str = "path",
    conversions: str | None = None,
    value: str | None = None,
    nulls: str | None = None,
    separator: str = ">",
    transform: str = "unique",
    **settings: Any,
) -> Table:
    """What each channel is credited with: the columns `channel`, `conversions` and `value`, sorted by channel.

    `model` is a model, or the name of one that is built in, made with `settings`. The other arguments say how the table
    is read, see `read_paths`. Raises as that and `choose` do, and what the model refuses: each a `ValueError`.
    """
    chosen = choose(model, settings) if isinstance(model, str) else model
    paths = read_paths(
        table, path=path, conversions=conversions, value=value, nulls=nulls, separator=separator, transform=transform
    )
    shares = sorted(credit_table(chosen, paths).items())
    rows = [{"channel": channel, **share._asdict()} for channel, share in shares]
    return cast("Table", rows if isinstance(table, list) else _like(table, rows))


def read_paths(
    table: Any,
    *,
    path: str = "path",
    conversions: str | None = None,
    value: str | None = None,
    nulls: str | None = None,
    separator: str = ">",
    transform: str = "unique",
) -> Paths:
    """A table's rows: each a path, how often it converted, with what value, and how often it did not.

    `path`, `conversions`, `value` and `nulls` name columns. The last three, if not given, are found by their usual
    names (`NAMES`); without a column of values or of nulls, these are 0. Spaces around a channel do not count.
    Raises `NoColumn`, `BadPath`, `NoTransform`, and `TypeError` for what is no such table.
    """
    if not separator:
        raise ValueError("The separator is empty; give what stands between two channels, such as `>`.")
    change = transform_of(transform)
    names, column = _opened(table)
    wanted = _chosen({"path": path, "conversions": conversions, "value": value, "nulls": nulls}, names)
    faults: Faults = []
    journeys = _journeys(path, column(path), separator, faults)
    numbers = [
        np.zeros(len(journeys)) if name is None else _numbers(name, column(name), faults)
        for name in (wanted[what] for what in NAMES)
    ]
    if faults:
        raise BadPath([sentence for _, sentence in sorted(faults)])
    paths = Paths(journeys, *numbers)
    return paths if change is unique else Paths.of([row._replace(path=change(row.path)) for row in paths])


def _chosen(given: Mapping[str, str | None], names: Sequence[str]) -> dict[str, str | None]:
    """The column of each thing: as it is given, or as it is usually called. Raises `NoColumn`."""
    chosen: dict[str, str | None] = {}
    faults = []
    for what, asked in given.items():
        usual = NAMES.get(what, ())
        found = [each for each in names if str(each).strip().lower().replace(" ", "_") in usual]
        name = asked
        if asked is None and (usual[0] in names or (not found and what == "conversions")):
            name = usual[0]
        elif asked is None and found:
            name = found[0]
            if len(found) > 1:
                faults.append(f"Each of {', '.join(found)} may be the column for {what}; name the one that is meant.")
        if name is not None and name not in names:
            there = ", ".join(map(str, names)) or "none"
            faults.append(f"There is no column {name} for {what}; there are: {there}.")
        chosen[what] = name
    if faults:
        raise NoColumn("\n".join(faults))
    return chosen


def _opened(table: Any) -> tuple[Sequence[str], Callable[[str], Column]]:
    """The names of the columns, and what gives one of them: an array where it is of numbers, NaN what is missing."""
    if isinstance(table, list) and all(isinstance(row, Mapping) for row in table):
        return list(dict.fromkeys(name for row in table for name in row)), lambda name: [row.get(name) for row in table]
    # Here and not at the top: a run of attribution loads the models, too, and no table.
    import narwhals.stable.v2 as nw  # noqa: PLC0415 (see the line above)
    from narwhals.exceptions import DuplicateError  # noqa: PLC0415 (see the line above)

    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError as error:
        kind = "a list of something else" if isinstance(table, list) else type(table).__name__
        raise TypeError(f"Give a table of pandas, Polars or Arrow, or a list of dicts, and not {kind}.") from error
    except DuplicateError as error:
        raise NoColumn(f"A column's name has to be its own: {error}") from error

    def column(name: str) -> Column:
        series = frame.get_column(name)
        found: Column = series.cast(nw.Float64).to_numpy() if series.dtype.is_numeric() else series.to_list()
        return found

    return frame.columns, column


def _like(table: Any, rows: Sequence[dict[str, Any]]) -> Any:
    """The rows as a table of the same library."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415 (as above)

    schema = nw.Schema({"channel": nw.String(), "conversions": nw.Float64(), "value": nw.Float64()})
    columns = {name: [row[name] for row in rows] for name in schema}
    backend = nw.from_native(table, eager_only=True).implementation
    return nw.from_dict(columns, schema, backend=backend).to_native()


def _journeys(name: str, column: Column, separator: str, faults: Faults) -> Journeys:
    texts = [text if isinstance(text, str) else "" for text in column]
    touches = np.fromiter(map(str.count, texts, repeat(separator)), np.int64, len(texts)) + 1
    numbering = Numbering()
    words = chain.from_iterable(map(str.split, texts, repeat(separator)))
    channel = np.fromiter(map(numbering.__getitem__, words), np.int64, int(touches.sum()))
    journeys = Journeys(offsets_of(touches), channel, [word.strip() for word in numbering])
    is_empty = np.array([not word for word in journeys.channels], np.bool_)
    for place in np.flatnonzero(journeys.reduced(np.logical_or, is_empty[journeys.channel])).tolist():
        given = column[place]
        what = f"no {name}"
        if texts[place].strip():
            what = f"an empty channel in its {name} `{_shown(given)}`"
        elif not (given is None or isinstance(given, str) or (isinstance(given, float) and isnan(given))):
            what = f"`{_shown(given)}`, which is no text, as its {name}"
        faults.append((place, f"Row {place + 1} has {what}; give channels, oldest first, such as `google > mail`."))
    return journeys.tidied()


def _numbers(name: str, column: Column, faults: Faults) -> NDArray[np.float64]:
    numbers = column if isinstance(column, np.ndarray) else np.array([_number(each) for each in column], np.float64)
    for place in np.flatnonzero(~((numbers >= 0) & (numbers <= NUMBER_MAX))).tolist():
        given = column[place] if not np.isinf(numbers[place]) else numbers[place]
        what = f"no {name}" if given is None else f"`{_shown(given)}` as its {name}"
        wanted = f"at most {NUMBER_MAX:g}" if np.isfinite(numbers[place]) and numbers[place] > 0 else "at least 0"
        faults.append((place, f"Row {place + 1} has {what}; give a number of {wanted}, such as 1234.5."))
    return numbers


def _number(given: object) -> float:
    """A number of any kind, or text that is one; NaN for anything else."""
    if isinstance(given, bool) or not isinstance(given, Real | Decimal | str):
        return nan
    if isinstance(given, str) and "_" in given:  # Python's own way to write a number, and nobody else's
        return nan
    try:
        return float(given)
    except ValueError:
        return nan
    except OverflowError:
        return inf


def _shown(given: object) -> str:
    text = str(given)
    return text if len(text) <= TEXT_CHARS_MAX else f"{text[:TEXT_CHARS_MAX]}…"
