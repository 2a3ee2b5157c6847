"""Codes are found among sorted ones as a dictionary would find them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.crediting.columns.codes import among, places

CODES = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.integers(-3, 3).map(lambda code: code << 40)
"""Many that differ in high bits alone, which the marks do not tell apart."""


@given(st.sets(CODES), st.lists(CODES))
def test_each_code_is_found_where_it_is_and_no_other_is_found(known: set[int], asked: list[int]) -> None:
    place = {code: at for at, code in enumerate(sorted(known))}
    codes, wanted = (np.array(each, np.int64) for each in (sorted(known), asked))
    assert places(codes, wanted).tolist() == [place.get(code, -1) for code in asked]
    assert among(codes, wanted).tolist() == [code in known for code in asked]
