"""Statements that are compiled once, and then run on the driver's own cursor.

Never writes SQL: a statement is SQLAlchemy Core, one for SQLite and PostgreSQL, and so are its types. But SQLAlchemy's
way from a statement to its rows takes 19 to 32 µs where this takes 5 to 9, and the engine runs ten of them for each
trigger: a third of the service's processor time (ADR 48). Invariants: values and rows go through the statement's types;
it runs in the transaction of the connection that it is given; what the driver raises is SQLAlchemy's `DBAPIError`, as
everywhere; many rows are written at once on PostgreSQL, in no order.

>>> jobs = Prepared(sa.select(job.c.job_name).where(job.c.application == sa.bindparam("application")))  # doctest: +SKIP
>>> [row.job_name for row in jobs.rows(connection, application="shop")]                                 # doctest: +SKIP
"""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler

from clickclock.scheduler.store.arrays import Kinds, arrays_of, as_array, over_arrays, word_of
from clickclock.scheduler.store.rows import among, insert_of

Statement = sa.Select[Any] | sa.Insert | sa.Update | sa.sql.dml.ReturningInsert[Any]


class Prepared:
    """One statement. Its parameters are `bindparam`s; none of them expands (for lists there is `rows.among`)."""

    def __init__(self, statement: Statement | Callable[[str], Statement]) -> None:
        """A statement, or how to make it for the dialect of that name."""
        self._statement = statement
        self._compiled: dict[str, _Compiled] = {}
        self._at_once: _AtOnce | None = None

    def rows(self, connection: sa.Connection, **values: Any) -> list[Any]:
        """All rows, as named tuples."""
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection)
        return compiled.run(connection, compiled.arguments(values))

    def scalar(self, connection: sa.Connection, **values: Any) -> Any:
        """The first value of the first row, where there is always one."""
        return self.rows(connection, **values)[0][0]

    def inserted(self, connection: sa.Connection, values: Mapping[str, Any]) -> list[Any]:
        """The rows that an INSERT of these columns returns, always the same ones."""
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection, list(values))
        return compiled.run(connection, compiled.arguments(values))

    def run(self, connection: sa.Connection, each: Sequence[Mapping[str, Any]]) -> None:
        """Run it for each of these mappings of names to values; an INSERT has the columns that the first names.

        On PostgreSQL it is one statement for all of them, so no two may be about the same row.
        """
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection, list(each[0]))
        if len(each) == 1:
            compiled.run(connection, compiled.arguments(each[0]))
        elif connection.dialect.name == "sqlite":
            compiled.run(connection, [compiled.arguments(values) for values in each], many=True)
        else:
            at_once = self._at_once or self._compile_at_once(connection, compiled.asked)
            at_once.run(connection, at_once.arguments_of(each))

    def _compile(self, connection: sa.Connection, columns: Sequence[str] | None = None) -> "_Compiled":
        name = connection.dialect.name
        return self._compiled.setdefault(name, _Compiled(self._in(name), connection.dialect, columns))

    def _compile_at_once(self, connection: sa.Connection, asked: Kinds) -> "_AtOnce":
        self._at_once = _AtOnce(self._over_arrays(connection.dialect.name, asked), connection.dialect, asked)
        return self._at_once

    def _in(self, dialect: str) -> Statement:
        return self._statement(dialect) if callable(self._statement) else self._statement

    def _over_arrays(self, dialect: str, asked: Kinds) -> Statement:
        statement: Statement = over_arrays(self._in(dialect), asked)
        return statement


class Inserting(Prepared):
    """An INSERT that leaves alone what is there; `same` is in the statement once, and not a value of each row."""

    def __init__(self, table: sa.Table, same: Mapping[str, sa.ColumnElement[Any]] | None = None) -> None:
        self._table, self._same = table, dict(same or {})
        super().__init__(lambda dialect: self._insert(dialect).values(self._same).on_conflict_do_nothing())

    def _insert(self, dialect: str) -> Any:
        return insert_of(dialect, self._table)

    def _over_arrays(self, dialect: str, asked: Kinds) -> Statement:
        found = sa.select(*arrays_of(asked).c, *self._same.values())
        insert: Statement = self._insert(dialect).from_select([*asked, *self._same], found).on_conflict_do_nothing()
        return insert


class Among:
    """A statement about the rows whose column is in a list.

    On SQLite a list is a virtual table, which costs more than all the rest: there a list of one is a value.
    """

    def __init__(self, column: sa.ColumnElement[str], statement: Callable[[sa.ColumnElement[bool]], Statement]) -> None:
        """`statement` is made with the condition that the column is in the list."""
        self._of_many = Prepared(lambda dialect: statement(among(dialect, column, "listed")))
        self._of_one = Prepared(statement(column == sa.bindparam("listed")))

    def rows(self, connection: sa.Connection, listed: Sequence[str], **values: Any) -> list[Any]:
        """All rows, as named tuples; none, if it changes rows and returns nothing."""
        if len(listed) == 1 and connection.dialect.name == "sqlite":
            return self._of_one.rows(connection, listed=listed[0], **values)
        return self._of_many.rows(connection, listed=list(listed), **values)


class _Compiled:
    """A statement in one dialect: its SQL, and the conversions that its types ask for."""

    def __init__(self, statement: Statement, dialect: Dialect, columns: Sequence[str] | None) -> None:
        compiled = statement.compile(dialect=dialect, column_keys=columns)
        assert isinstance(compiled, SQLCompiler)
        self.text = str(compiled)
        self._dialect = dialect
        self._positional = compiled.positional
        places = compiled.positiontup or list(compiled.params)
        kinds = [compiled.binds[name].type.dialect_impl(dialect) for name in places]
        self.asked = {name: compiled.binds[name].type for name in places if compiled.binds[name].required}
        self._places = [(name, kind.bind_processor(dialect)) for name, kind in zip(places, kinds, strict=True)]
        self._constants = {name: compiled.params[name] for name in places if not compiled.binds[name].required}
        self._kinds = [column.type.dialect_impl(dialect) for column in statement.exported_columns]
        self._fetching: tuple[Callable[[Sequence[Any]], Any], list[tuple[int, Callable[[Any], Any]]]] | None = None

    def arguments(self, values: Mapping[str, Any]) -> Any:
        """What the driver takes for these values: a tuple or a mapping."""
        if self._constants:
            values = {**self._constants, **values}
        if self._positional:
            return tuple([values[name] if process is None else process(values[name]) for name, process in self._places])
        return {name: values[name] if process is None else process(values[name]) for name, process in self._places}

    def run(self, connection: sa.Connection, arguments: Any, *, many: bool = False) -> list[Any]:
        """Execute it, and fetch what it finds; whoever listens to the engine hears of it, as of any other statement."""
        driver: Any = connection.connection.dbapi_connection
        try:
            cursor = driver.cursor()
            if listeners := connection.engine.dispatch.before_cursor_execute:
                listeners(connection, cursor, self.text, arguments, None, many)
            if self._positional:
                (cursor.executemany if many else cursor.execute)(self.text, arguments)
            else:
                cursor.execute(self.text, arguments, prepare=True)
            found = cursor.fetchall() if cursor.description else []
        except connection.dialect.loaded_dbapi.Error as error:
            raise _as_everywhere(connection, self.text, error) from error
        return self._rows(found, cursor.description) if found else []

    def _rows(self, found: Sequence[Any], description: Sequence[Any]) -> list[Any]:
        make, processes = self._fetching or self._learn(description)
        rows = []
        for each in found:
            values = list(each)
            for place, process in processes:
                values[place] = process(values[place])
            rows.append(make(values))
        return rows

    def _learn(self, description: Sequence[Any]) -> Any:
        """How to convert a row: some types need to know what the driver makes of them."""
        row = namedtuple("row", [name for name, *_ in description], rename=True)  # type: ignore[misc]  # known only now
        asked = [
            kind.result_processor(self._dialect, told[1]) for kind, told in zip(self._kinds, description, strict=True)
        ]
        self._fetching = row._make, [(place, process) for place, process in enumerate(asked) if process is not None]
        return self._fetching


class _AtOnce(_Compiled):
    """A statement over arrays."""

    def __init__(self, statement: Statement, dialect: Dialect, asked: Kinds) -> None:
        super().__init__(statement, dialect, None)
        self._words = [(name, word_of(kind, dialect)) for name, kind in asked.items()]
        self._same = {
            name: self._constants[name] if process is None else process(self._constants[name])
            for name, process in self._places
            if name in self._constants
        }

    def arguments_of(self, each: Sequence[Mapping[str, Any]]) -> Any:
        """What the driver takes for all of these."""
        return self._same | {name: as_array([word(values[name]) for values in each]) for name, word in self._words}


def command(connection: sa.Connection, text: str) -> None:
    """Run what has no values and no rows, such as `SAVEPOINT a`."""
    driver: Any = connection.connection.dbapi_connection
    try:
        driver.execute(text)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _as_everywhere(connection, text, error) from error


def _as_everywhere(connection: sa.Connection, text: str, error: Exception) -> BaseException:
    """What SQLAlchemy would raise, but without the values: they can be confidential."""
    return DBAPIError.instance(text, None, error, connection.dialect.loaded_dbapi.Error, dialect=connection.dialect)
