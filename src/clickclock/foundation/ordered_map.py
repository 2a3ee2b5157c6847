"""Work abreast: several pieces of one kind at once, on threads, whose results come in the order of the pieces.

Never makes more ahead than there are threads, so that memory has a bound. Invariant: what a piece raises is raised to
whoever takes its result, and none after it is given.

>>> list(in_turn(str, [3, 1, 2], threads=2))
['3', '1', '2']
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


def in_turn(make: Callable[[Given], Made], given: Iterable[Given], threads: int) -> Iterator[Made]:
    """The results for the given items, in their order, by so many threads: no more are made than are taken."""
    if threads == 1:
        yield from map(make, given)
        return
    making: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(threads, "abreast") as pool:
        for each in given:
            making.append(pool.submit(make, each))
            if len(making) == threads:
                yield making.popleft().result()
        while making:
            yield making.popleft().result()
