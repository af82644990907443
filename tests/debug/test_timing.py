"""Representative calls are made as often as asked, on new and on kept connections."""

from __future__ import annotations

from collections import Counter

from kvestigate.debug.rendering import timing_blocks
from kvestigate.debug.timing import CALLS, TimingOptions, collect
from kvestigate.http.message import Request, Response
from kvestigate.render.plain import to_text
from tests.debug.conftest import Reach, as_json


async def test_every_call_is_sampled(reach: Reach) -> None:
    asked: Counter[str] = Counter()
    peers: dict[str, set[str]] = {}

    async def handle(request: Request) -> Response:
        asked[request.path] += 1
        peers.setdefault(request.path, set()).add(request.peer.address)
        return as_json({"items": []})

    report = await collect(await reach(handle), TimingOptions(samples=3))

    # New connections, the one that warms the kept one up, and the kept one.
    assert asked.pop("/version") == 3 + 1 + 3
    assert len(peers["/version"]) == 3 + 1
    assert asked == {path: 3 for _, path, _, _ in CALLS[1:]}
    assert [sample.name for sample in report.calls] == [name for name, *_ in CALLS]
    for sample in (report.connecting, *report.calls):
        assert 0 < sample.fastest <= sample.p50 <= sample.slowest
        assert sample.size == len(b'{"items": []}')


async def test_a_refused_call_is_a_row_not_a_failure(reach: Reach) -> None:
    async def handle(request: Request) -> Response:
        if request.path == "/api/v1/nodes":
            return as_json({"kind": "Status", "reason": "Forbidden", "message": "no nodes"}, 403)
        return as_json({})

    report = await collect(await reach(handle), TimingOptions(samples=1))
    assert [sample.problem for sample in report.calls] == ["", "", "", "no nodes", ""]
    shown = to_text(timing_blocks(report))
    assert "no nodes" in shown
    assert shown.splitlines()[-1].startswith("verdict: ")
