"""Work abreast: at once, and in its order."""

from threading import Barrier

import pytest

from clickclock.foundation.ordered_map import in_turn


def test_as_many_pieces_are_made_at_once_as_there_are_threads_and_come_in_their_order() -> None:
    both = Barrier(2, timeout=60)

    def meet(number: int) -> int:
        both.wait()
        return number

    assert list(in_turn(meet, range(4), threads=2)) == [0, 1, 2, 3]


def test_what_is_raised_while_a_piece_is_made_is_raised_to_whoever_takes_its_result() -> None:
    taken = in_turn(lambda number: 1 // number, [1, 0, 1], threads=2)
    assert next(taken) == 1
    with pytest.raises(ZeroDivisionError):
        next(taken)
