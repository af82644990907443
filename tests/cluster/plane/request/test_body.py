"""Bodies that are not JSON: what is wrong and where, in bounded time."""

from __future__ import annotations

import pytest

from tests.cluster.plane.conftest import Api

MAPS = "/api/v1/namespaces/default/configmaps"
LONG = b'{"data":{"a":"' + b"x" * 100_000 + b'"'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"data":{"a" 1}}', "JSON is malformed: expected ':' (byte 13)"),
        (b'{"data":{"a" 1}' + b" " * 100_000, "JSON is malformed: expected ':' (byte 13)"),
        (b'{"data":', "Input data was truncated"),
        (LONG, "Input data was truncated"),
        (b'{"data":' + b"[" * 20_000, "nested too deeply"),
        (LONG + b" 1}}", "JSON is malformed: expected ',' or '}' (byte 100016)"),
    ],
    ids=["short", "near the beginning", "ended", "ended late", "deep", "far from the beginning"],
)
async def test_the_mistake_is_named(api: Api, body: bytes, words: str) -> None:
    refused = await api.post(MAPS, body)

    assert refused.status == 400
    assert f"json parse error: {words}" in refused.body["message"]


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":', b'{"\\\\\\"[{": ["{",1],"a": '])
@pytest.mark.parametrize(("levels", "is_deep"), [(248, False), (260, True)])
async def test_so_many_levels_are_read(
    api: Api, opening: bytes, levels: int, is_deep: bool
) -> None:
    closing = bytes(opening.translate(bytes.maketrans(b"{[", b"}]"), BETWEEN)[::-1])
    closing = closing[-1:] if b'"\\' in opening else closing
    times, rest = divmod(levels, len(closing))
    value = opening * times + b"[" * rest + b"1" + b"]" * rest + closing * times
    refused = await api.post(MAPS, b'{"data":' + value + b"}")

    assert refused.status == 400
    assert ("nested too deeply" in refused.body["message"]) == is_deep


BETWEEN = bytes(set(range(256)) - set(b"{["))
"""What does not open a level."""
