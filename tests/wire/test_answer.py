"""Long answers are sent in parts that suit TLS, whatever pieces they are made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.wire.answer import slices

_FIRST, _SIZE = 64, 240


@given(st.lists(st.binary(max_size=900), min_size=1).filter(any))
def test_the_parts_are_the_pieces(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    assert b"".join(slices(pieces, len(whole), _FIRST, _SIZE)) == whole


@pytest.mark.parametrize(
    ("pieces", "lengths"),
    [
        ([30], [30]),
        ([64], [64]),
        ([65], [64, 1]),
        ([1] * 1000, [64, 240, 240, 240, 216]),
        ([200] * 5, [64, 240, 240, 240, 216]),
        ([1000], [64, 240, 240, 240, 216]),
        ([0, 70, 0], [64, 6]),
    ],
)
def test_all_but_the_first_and_the_last_are_of_one_size(
    pieces: list[int], lengths: list[int]
) -> None:
    made = list(map(bytes, pieces))
    assert list(map(len, slices(made, sum(pieces), _FIRST, _SIZE))) == lengths


def test_long_pieces_are_not_copied() -> None:
    head, body = b"head", bytes(3 * 2**20)
    first, *others = slices([head, body], len(head) + len(body), 2**16, 2**18)
    assert bytes(first) == head
    assert all(part.obj is body for part in others)
