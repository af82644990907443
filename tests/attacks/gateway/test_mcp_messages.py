"""Messages of MCP, and wishes about answers, that would pass something by or hold it up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.access import Access, AccessOptions, resolve
from kvestigate.cybernet.gateway import MOST_AT_ONCE, MOST_OF_ONE
from kvestigate.cybernet.leaving import redacted_text
from kvestigate.cybernet.loading import Loaded
from kvestigate.cybernet.spec import read_cyberspace
from kvestigate.http.message import Request, Response
from kvestigate.http.server import serve
from kvestigate.operation import Context, Effect, Operation, touches_nothing
from tests.attacks.gateway.acting import Act
from tests.cybernet.conftest import TOKENS, Document, Front, audited, changed, fronted, fronted_by
from tests.cybernet.test_mcp import ask, post

SMUGGLED = [
    b'{"name": "nodes", "namespace": NaN}',
    b'{"name": "nodes", "namespace": -Infinity}',
    b'{"name": "nodes", "namespace": ' + b"[" * 63 + b"]" * 63 + b"}",
]


@pytest.mark.parametrize("arguments", SMUGGLED)
async def test_what_is_recorded_as_refused_is_not_carried_out_after_all(
    front: Front, document: Document, arguments: bytes
) -> None:
    """Two parsers read a message, and the second is not as strict as the first."""
    call = json.dumps(ask("tools/call", name="report_run", arguments="HERE")).encode()
    answer = await post(front, call.replace(b'"HERE"', arguments))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)
    lines = [(line["stage"], line["outcome"]) for line in audited(document)]
    assert lines == [("outcome", "denied")]


WISHES: list[dict[str, Any]] = [
    {"cursor": "a=1;" * 200_000},
    {"cursor": "." * 900_000 + "=1"},
    {"fields": [f"f{number}" for number in range(3_000)]},
    {"budget": 0},
    {"budget": -1},
    {"budget": 1 << 40},
]


@pytest.mark.parametrize("wish", WISHES, ids=[str(wish)[:30] for wish in WISHES])
async def test_wishes_that_would_take_long_are_refused(front: Front, wish: dict[str, Any]) -> None:
    answer = await front.call("report.run", {"name": "nodes", "answer": wish})
    assert answer.status_code == 422, answer.text[:300]
    assert len(answer.content) < 1_000


async def test_one_identity_cannot_keep_all_others_waiting(
    document: Document, access: Access
) -> None:
    """Whatever makes an operation wait, a part of the gateway is left for others."""
    free = asyncio.Event()

    async def wait(_: Context, given: Act) -> Act:
        if given.number == "slow":
            await free.wait()
        return given

    operation = Operation(
        name="act", summary="Wait.", input=Act, output=Act, effect=Effect.READ,
        touches=touches_nothing, handler=wait, for_agents=True,
    )  # fmt: skip
    space = read_cyberspace(changed("operations.allow", ["act"], document))
    loaded = Loaded(space, {"act": operation})
    async with fronted_by(loaded, access) as front, asyncio.timeout(PATIENCE):
        slow = [
            asyncio.ensure_future(front.call("act", {"number": "slow"}))
            for _ in range(MOST_AT_ONCE)
        ]
        refused, waiting = set[Any](), set(slow)
        while len(refused) < MOST_AT_ONCE - MOST_OF_ONE:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            refused |= done
        assert {task.result().status_code for task in refused} == {503}
        other = await front.call("act", {"number": "1"}, token=TOKENS["bob"])
        assert other.status_code == 200
        free.set()
        answers = await asyncio.gather(*waiting)
        assert [answer.status_code for answer in answers] == [200] * MOST_OF_ONE
        again = await front.call("act", {"number": "1"})
        assert again.status_code == 200


PATIENCE = 30.0
KEY_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
LOG = f"started\npassword=hunter2\n-----BEGIN PRIVATE KEY-----\n{KEY_LINE}\n{'a' * 300_000}\n"


@asynccontextmanager
async def logging_cluster(home: Path) -> AsyncIterator[Access]:
    """An API server that has one pod, and its log."""
    body = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}, "status": {},
    }  # fmt: skip

    async def handle(request: Request) -> Response:
        if request.path.endswith("/pods/web/log"):
            return Response(200, [("content-type", "text/plain")], LOG.encode())
        return Response(200, [("content-type", "application/json")], json.dumps(body).encode())

    async with await serve(handle, host="127.0.0.1", port=0) as server:
        config = home / "kubeconfig"
        url = f"http://127.0.0.1:{server.address[1]}"
        config.write_text(json.dumps({"clusters": [{"name": "c", "cluster": {"server": url}}]}))
        yield resolve(AccessOptions(kubeconfig=str(config), cluster="c"), {}, None)


async def test_a_search_in_logs_does_not_tell_what_is_masked(
    document: Document, tmp_path: Path
) -> None:
    """Each pattern asks whether a secret begins so; the answer must not depend on that."""
    document = changed("operations.allow", ["logs"], document)
    async with logging_cluster(tmp_path) as cluster, fronted(document, cluster) as front:

        async def found(pattern: str) -> list[str]:
            answer = await front.call("logs", {"target": "web", "grep": pattern})
            assert answer.status_code == 200, answer.text[:300]
            return [line["text"] for line in answer.json()["lines"]]

        assert await found("started") == ["started"]
        assert await found("password=") == ["password=***"]
        for guess in ("password=h", "hunter2", "^MIIE", "9w0BAQ"):
            assert await found(guess) == []
        right, wrong = await found(r"hunter2|\*\*\*"), await found(r"hunter3|\*\*\*")
        assert right == wrong
        assert not any("hunter2" in line or KEY_LINE in line for line in right)


async def test_a_pattern_that_is_too_much_for_a_line_is_refused(
    document: Document, tmp_path: Path
) -> None:
    document = changed("operations.allow", ["logs"], document)
    async with logging_cluster(tmp_path) as cluster, fronted(document, cluster) as front:
        answer = await front.call("logs", {"target": "web", "grep": "(b|c|d){900}"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "constraint_violated")


def test_digests_and_names_are_no_lines_of_keys() -> None:
    digest = "0123456789abcdef" * 4
    for text in (digest, f"sha256:{digest}", "a" * 70, f"registry.example/x/Y1{'z' * 60}:v1"):
        assert redacted_text(text) == text


async def test_schemas_are_not_made_for_whoever_asks(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take 30 to 100 ms of the loop, and `/info` is for strangers, too."""
    assert (await post(front, ask("tools/list"))).status_code == 200

    def made(*_: Any) -> Any:
        raise AssertionError("a schema is made again")

    monkeypatch.setattr("kvestigate.cybernet.gateway.schema", made)
    assert (await front.http.get("/info")).status_code == 200
    assert '"tools"' in (await post(front, ask("tools/list"))).text
