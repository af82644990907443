from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kvestigate.client.lines import Lines


@given(
    text=st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\n\n", b"\xff"])).map(b"".join),
    cuts=st.lists(st.integers(min_value=0, max_value=60)),
)
def test_lines_do_not_depend_on_where_the_pieces_were_cut(text: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    lines = Lines()
    found = [
        line for start, end in itertools.pairwise(edges) for line in lines.feed(text[start:end])
    ]
    assert [*found, lines.rest()] == text.split(b"\n")
