"""Each collection is listed once, and what cannot be listed is told, not fatal."""

from __future__ import annotations

import pytest

from kvestigate.errors import ApiError, Forbidden, ServiceUnavailable, Unauthorized
from kvestigate.kube import builtins
from kvestigate.observe.listings import NODE_METRICS, NODES, PODS, SERVICES
from kvestigate.observe.snapshot import Cause, take
from tests.observe.conftest import Front
from tests.observe.objects import node


async def test_listed_once_and_only_if_needed(front: Front) -> None:
    await front.api.create(builtins.resource("nodes"), node("a", cpu="2"))
    front.asked.clear()
    snapshot = await take(front.api, [NODES, PODS, NODES])
    assert dict(front.asked) == {"/api/v1/nodes": 1, "/api/v1/pods": 1}
    assert [it.metadata.name for it in snapshot.of(NODES)] == ["a"]
    assert snapshot.of(PODS) == ()
    assert snapshot.knows(NODES, PODS)
    with pytest.raises(KeyError):
        snapshot.of(SERVICES)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (Forbidden("pods is forbidden"), Cause.DENIED),
        (ServiceUnavailable("try later"), Cause.UNAVAILABLE),
    ],
)
async def test_a_refusal_is_a_gap(front: Front, error: ApiError, cause: Cause) -> None:
    front.refusing["/api/v1/pods"] = error
    snapshot = await take(front.api, [NODES, PODS])
    (gap,) = snapshot.missing([NODES, PODS])
    assert (gap.verb, gap.resource, gap.cause) == ("list", "pods", cause)
    assert gap.message == error.message
    assert snapshot.of(PODS) == ()
    assert snapshot.knows(NODES)
    assert not snapshot.knows(NODES, PODS)


async def test_a_type_that_the_server_lacks_is_a_gap(front: Front) -> None:
    snapshot = await take(front.api, [NODE_METRICS])
    (gap,) = snapshot.missing([NODE_METRICS])
    assert (gap.resource, gap.cause) == ("nodes.metrics.k8s.io", Cause.ABSENT)


async def test_strangers_are_told_so(front: Front) -> None:
    front.refusing["/api/v1/pods"] = Unauthorized("who are you?")
    with pytest.raises(Unauthorized, match="who are you"):
        await take(front.api, [NODES, PODS])


async def test_progress_is_told_page_by_page(front: Front) -> None:
    for number in range(3):
        await front.api.create(builtins.resource("nodes"), node(f"n{number}"))
    told: list[tuple[str, int]] = []
    await take(front.api, [NODES], lambda *seen: told.append(seen))
    assert told == [("nodes", 3)]
