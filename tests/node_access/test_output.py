"""What is kept of a command's output."""

from __future__ import annotations

import pytest

from kvestigate.client.streams import Channel
from kvestigate.node_access.remote import Output


@pytest.mark.parametrize(
    ("pieces", "kept", "truncated"),
    [
        ([b""], b"", False),
        ([b"abc", b"de"], b"abcde", False),
        ([b"abc", b"def"], b"abcde", True),
        ([b"abcdef", b"", b"g"], b"abcde", True),
    ],
)
def test_each_output_is_kept_up_to_the_limit(
    pieces: list[bytes], kept: bytes, truncated: bool
) -> None:
    output = Output(limit=5)
    output.add(Channel.STDERR, b"other")
    for piece in pieces:
        output.add(Channel.STDOUT, piece)
    assert (output.stdout, output.stderr, output.truncated) == (kept, b"other", truncated)
