"""One GET, and everything the answer says."""

from __future__ import annotations

import pytest

from kvestigate.debug.api import RequestOptions, collect, indented, near_path
from kvestigate.debug.rendering import answer_blocks
from kvestigate.errors import Forbidden, InputError
from kvestigate.http.message import Request, Response
from kvestigate.render.plain import to_text
from tests.debug.conftest import Reach, as_json


@pytest.mark.parametrize(
    ("asked", "path", "query"),
    [
        ("/version", "/version", ""),
        ("/api/v1/pods?limit=1&labelSelector=a=b", "/api/v1/pods", "limit=1&labelSelector=a=b"),
        ("/api/v1/pods?fieldSelector=a b", "/api/v1/pods", "fieldSelector=a%20b"),
        ("/a%2Fb", "/a%2Fb", ""),
        ("/größe", "/gr%C3%B6%C3%9Fe", ""),
    ],
)
async def test_the_path_arrives_encoded_once(
    reach: Reach, asked: str, path: str, query: str
) -> None:
    seen: list[tuple[str, str, str]] = []

    async def handle(request: Request) -> Response:
        seen.append((request.method, request.path, request.query))
        return as_json({"ok": True})

    answer = await collect(await reach(handle), RequestOptions(asked))
    assert seen == [("GET", path, query)]
    assert (answer.status, answer.path, answer.failure()) == (200, asked, None)


async def test_a_refusal_is_an_answer(reach: Reach) -> None:
    async def handle(request: Request) -> Response:
        refused = as_json({"kind": "Status", "reason": "Forbidden", "message": "no"}, 403)
        refused.headers.append(("audit-id", "a-1"))
        return refused

    answer = await collect(await reach(handle), RequestOptions("/api/v1/nodes"))
    assert (answer.status, answer.headers["audit-id"]) == (403, "a-1")
    failure = answer.failure()
    assert isinstance(failure, Forbidden)
    assert failure.message == "no"


async def test_a_relative_path_is_refused(reach: Reach) -> None:
    with pytest.raises(InputError, match="'version' does not start with /"):
        await collect(await reach(lambda request: pytest.fail("called")), RequestOptions("version"))


async def test_the_answer_is_shown_with_its_head_and_body(reach: Reach) -> None:
    async def handle(request: Request) -> Response:
        return as_json({"a": [1]})

    shown = to_text(answer_blocks(await collect(await reach(handle), RequestOptions("/x"))))
    assert "request:        GET /x\nstatus:         200\n" in shown
    assert "size:           10 B\ncontent-type:   application/json\n" in shown
    assert shown.endswith('\n\n{\n  "a": [\n    1\n  ]\n}\n')


@pytest.mark.parametrize(("body", "shown"), [('{"a":1}', '{\n  "a": 1\n}'), ("ok", "ok"), ("", "")])
def test_only_json_is_indented(body: str, shown: str) -> None:
    assert indented(body) == shown


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/api/v1/podz", "did you mean /api/v1/pods?"),
        ("/api/v1/node/", "did you mean /api/v1/nodes?"),
        ("/apis/apps/v1/deploymnets?limit=5", "did you mean /apis/apps/v1/deployments?"),
        (
            "/api/v1/namespaces/shop/srevices",
            "did you mean /api/v1/namespaces/shop/services?",
        ),
        ("/versoin", "did you mean /version?"),
        ("/nothing/like/it", "`kvestigate debug api /apis` lists the API groups of the server"),
        ("/version", "`kvestigate debug api /apis` lists the API groups of the server"),
    ],
)
def test_a_mistyped_path_finds_the_right_one(path: str, hint: str) -> None:
    assert near_path(path) == hint
