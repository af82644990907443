"""Bodies that are no JSON: Go's words for the mistake, in bounded time."""

from __future__ import annotations

import pytest

from tests.cluster.plane.conftest import Api

MAPS = "/api/v1/namespaces/default/configmaps"
LONG = b'{"data":{"a":"' + b"x" * 100_000 + b'"'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"data":{"a" 1}}', "invalid character '1' after object key"),
        (b'{"data":{"a" 1}' + b" " * 100_000, "invalid character '1' after object key"),
        (b'{"data":', "unexpected end of JSON input"),
        (LONG, "unexpected end of JSON input"),
        (b'{"data":' + b"[" * 20_000, "invalid character '[' exceeded max depth"),
        (LONG + b" 1}}", "JSON is malformed: expected ',' or '}' (byte 100016)"),
    ],
    ids=["short", "near the beginning", "ended", "ended late", "deep", "far from the beginning"],
)
async def test_the_mistake_is_named(api: Api, body: bytes, words: str) -> None:
    refused = await api.post(MAPS, body)

    assert refused.status == 400
    assert f"json parse error: {words}" in refused.body["message"]
