"""Long answers are sent in parts that suit TLS, whatever pieces they are made of."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.http.answer import slices

K = 1024
_SIZE = 64 * K


_NOISE = Random(1).randbytes(301 * K)


@given(st.lists(st.integers(0, 300 * K), min_size=1, max_size=20))
def test_the_parts_are_the_pieces(lengths: list[int]) -> None:
    pieces = [_NOISE[start : start + length] for start, length in enumerate(lengths)]
    assert b"".join(slices(pieces, _SIZE)) == b"".join(pieces)


@pytest.mark.parametrize(
    ("pieces", "parts"),
    [
        ([30 * K], [30 * K]),
        ([16 * K] * 10, [64 * K, 64 * K, 32 * K]),
        ([160 * K], [64 * K, 64 * K, 32 * K]),
        ([1 * K, 60 * K, 60 * K, 1 * K], [1 * K, 60 * K, 60 * K, 1 * K]),
        ([0, 60 * K, 0], [60 * K]),
        ([], []),
    ],
)
def test_short_pieces_are_sent_together_and_long_ones_by_themselves(
    pieces: list[int], parts: list[int]
) -> None:
    made = list(map(bytes, pieces))
    assert [len(part) for part in slices(made, _SIZE) if part] == parts


def test_long_pieces_are_not_copied() -> None:
    head, body = b"head", bytes(3 * 2**20)
    first, *others = slices([head, body], _SIZE)
    assert bytes(first) == head
    assert all(part.obj is body for part in others)
