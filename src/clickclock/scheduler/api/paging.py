"""Lists in pages: a cursor that knows its list, and the filters that it was made with.

Never counts and never skips rows: a cursor is the key of the last row told. Invariant: a cursor works only with the
list and the filters that it came from.

>>> key_in(cursor_of("job", {"application": "shop"}, ["shop", "export"]), "job", {"application": "shop"})
['shop', 'export']
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeVar

from clickclock.foundation.problem import BadCursor
from clickclock.scheduler.api.reading import Page
from clickclock.scheduler.store import Found

T = TypeVar("T")
Find = Callable[[Mapping[str, Any], Sequence[str] | None, int], Awaitable[Sequence[T]]]


def cursor_of(resource: str, filters: Mapping[str, Any], key: Sequence[str]) -> str:
    """An opaque word that says where to go on."""
    where = json.dumps(list(key), separators=(",", ":")).encode()
    return f"{urlsafe_b64encode(where).decode().rstrip('=')}.{_seal(resource, filters, where)}"


def key_in(cursor: str | None, resource: str, filters: Mapping[str, Any]) -> list[str] | None:
    """The key after which to go on; None for the beginning. Raises `BadCursor`."""
    if cursor is None:
        return None
    encoded, _, seal = cursor.partition(".")
    try:
        where = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except ValueError as error:
        raise BadCursor from error
    if seal != _seal(resource, filters, where):
        raise BadCursor
    key: list[str] = json.loads(where)
    return key


def columns(filters: Page) -> dict[str, Any]:
    """The filters that were given, by column."""
    return {name: value for name, value in filters if value is not None and name not in {"limit", "cursor"}}


async def listed(
    resource: str,
    asked: Page,
    find: Find[T],
    key: Callable[[T], Sequence[str]],
    within: frozenset[str] | None = None,
) -> tuple[Sequence[T], str | None]:
    """The page that is asked for, and where to go on. `find` takes filters, the key to go on after, and a limit.

    `within` are the applications of which the caller may see anything; None is all.
    """
    filters = columns(asked)
    after = key_in(asked.cursor, resource, filters)
    seen = seen_by(filters, within)
    if seen is None:
        return [], None
    return page(resource, filters, await find(seen, after, asked.limit + 1), asked.limit, key)


def seen_by(filters: Mapping[str, Any], within: frozenset[str] | None) -> dict[str, Any] | None:
    """The filters of a caller who may see these applications alone, or all of them; None where that leaves nothing.

    >>> seen_by({"job_name": "a"}, frozenset({"shop", "crm"}))
    {'job_name': 'a', 'application': ['crm', 'shop']}
    >>> seen_by({"application": "crm"}, frozenset({"shop"})) is None
    True
    """
    if within is None:
        return dict(filters)
    named = filters.get("application")
    left = sorted(within if named is None else within & {named})
    return {**filters, "application": left[0] if len(left) == 1 else left} if left else None


def page(
    resource: str,
    filters: Mapping[str, Any],
    found: Sequence[T],
    limit: int,
    key: Callable[[T], Sequence[str]],
) -> tuple[Sequence[T], str | None]:
    """At most `limit` of the rows `found` (of which there is one more, if there is one), and where to go on.

    There may be fewer, even none, and more where to go on: not all of a long history is looked at for one page.
    """
    if len(found) <= limit:
        reached = found.reached if isinstance(found, Found) else None
        return found, None if reached is None else cursor_of(resource, filters, [str(reached)])
    told = found[:limit]
    return told, cursor_of(resource, filters, key(told[-1]))


def _seal(resource: str, filters: Mapping[str, Any], where: bytes) -> str:
    """Not a secret, and it need not be: who makes one up learns only what a filter would tell."""
    bound = json.dumps([resource, sorted(filters.items())], default=str).encode()
    return blake2b(where + b"\0" + bound, digest_size=8).hexdigest()
