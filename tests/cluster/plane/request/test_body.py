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
