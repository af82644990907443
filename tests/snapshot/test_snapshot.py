"""Each collection is listed once, and what cannot be listed is told, not fatal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvestigate.errors import (
    ApiError,
    Forbidden,
    InternalError,
    NotFound,
    ServiceUnavailable,
    Unauthorized,
)
from kvestigate.kube import builtins
from kvestigate.snapshot.collect import take
from kvestigate.snapshot.gaps import Cause
from kvestigate.snapshot.listings import (
    CUSTOM_OBJECTS,
    DEPRECATED_REQUESTS,
    GPU_READINGS,
    NODE_METRICS,
    NODES,
    PODS,
    SERVICES,
)
from kvestigate.snapshot.objects import Node
from kvestigate.snapshot.source import Listing
from tests.snapshot.conftest import Front
from tests.snapshot.objects import container, node, pod


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
    told: list[tuple[str, int, int]] = []
    await take(
        front.api, [NODES], lambda name, count, total=0, /: told.append((name, count, total))
    )
    assert told == [("nodes", 3, 3)]


async def test_figures_of_the_server_itself(front: Front) -> None:
    front.exposing["/metrics"] = b'apiserver_requested_deprecated_apis{version="v1"} 1\n'
    snapshot = await take(front.api, [DEPRECATED_REQUESTS])
    assert [it.labels for it in snapshot.of(DEPRECATED_REQUESTS)] == [{"version": "v1"}]


async def test_figures_that_may_not_be_read_are_a_gap(front: Front) -> None:
    front.refusing["/metrics"] = Forbidden("no")
    (gap,) = (await take(front.api, [DEPRECATED_REQUESTS])).missing([DEPRECATED_REQUESTS])
    assert (gap.verb, gap.resource, gap.cause) == ("get", "/metrics", Cause.DENIED)


async def exporters(front: Front, *names: str) -> None:
    for name in names:
        body = pod(name, container(), on=f"node-of-{name}")
        body["metadata"]["labels"] = {"app": "nvidia-dcgm-exporter"}
        await front.api.create(builtins.resource("pods"), body)
        await front.api.patch(
            builtins.resource("pods"),
            name,
            {"status": {"phase": "Running"}},
            subresource="status",
            namespace="default",
        )


PROXY = "/api/v1/namespaces/default/pods/{}:9400/proxy/metrics"


async def test_exporters_are_asked_through_the_server(front: Front) -> None:
    await exporters(front, "a", "silent")
    front.exposing[PROXY.format("a")] = b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 7\n'
    front.refusing[PROXY.format("silent")] = ServiceUnavailable("no answer")
    found = (await take(front.api, [GPU_READINGS])).of(GPU_READINGS)
    assert [(it.uuid, it.node, it.utilization) for it in found] == [("GPU-1", "node-of-a", 7)]


async def test_without_the_right_to_ask_exporters_there_is_a_gap(front: Front) -> None:
    await exporters(front, "a")
    front.refusing[PROXY.format("a")] = Forbidden("no")
    (gap,) = (await take(front.api, [GPU_READINGS])).missing([GPU_READINGS])
    assert (gap.verb, gap.resource) == ("get", "pods/proxy")


async def test_one_namespace_and_what_is_in_none(front: Front) -> None:
    await front.api.create(builtins.resource("nodes"), node("a", cpu="2"))
    await front.api.create(builtins.resource("namespaces"), {"metadata": {"name": "other"}})
    for namespace in ("default", "other"):
        made = {"metadata": {"name": namespace}, "spec": {"ports": [{"port": 80}]}}
        await front.api.create(builtins.resource("services"), made, namespace=namespace)
    snapshot = await take(front.api, [NODES, SERVICES], namespace="other")
    assert [it.metadata.name for it in snapshot.of(NODES)] == ["a"]
    assert [it.metadata.name for it in snapshot.of(SERVICES)] == ["other"]
    assert snapshot.namespace == "other"


async def define(front: Front, *plurals: str) -> None:
    for plural in plurals:
        kind = plural.removesuffix("s").capitalize()
        await front.api.create(
            builtins.resource("customresourcedefinitions"),
            {
                "metadata": {"name": f"{plural}.example.com"},
                "spec": {
                    "group": "example.com",
                    "scope": "Namespaced",
                    "names": {"plural": plural, "kind": kind},
                    "versions": [
                        {
                            "name": "v1",
                            "served": True,
                            "storage": True,
                            "schema": {"openAPIV3Schema": {"type": "object"}},
                        }
                    ],
                },
            },
        )


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (InternalError("conversion webhook failed"), Cause.FAILED),
        (ServiceUnavailable("try later"), Cause.UNAVAILABLE),
        (Forbidden("no"), Cause.DENIED),
    ],
)
async def test_a_custom_kind_that_cannot_be_listed_is_a_gap(
    front: Front, error: ApiError, cause: Cause
) -> None:
    await define(front, "gadgets", "widgets")
    front.exposing["/apis/example.com/v1/gadgets"] = b'{"items": [{"metadata": {"name": "a"}}]}'
    front.refusing["/apis/example.com/v1/widgets"] = error
    snapshot = await take(front.api, [CUSTOM_OBJECTS])
    (gap,) = snapshot.missing([CUSTOM_OBJECTS])
    assert (gap.verb, gap.resource, gap.cause) == ("list", "widgets.example.com", cause)
    assert gap.message == error.message
    assert [custom.metadata.name for custom in snapshot.of(CUSTOM_OBJECTS)] == ["a"]


async def test_a_custom_kind_that_is_not_served_has_no_objects(front: Front) -> None:
    await define(front, "widgets")
    front.refusing["/apis/example.com/v1/widgets"] = NotFound("no such resource")
    assert not (await take(front.api, [CUSTOM_OBJECTS])).missing([CUSTOM_OBJECTS])


async def test_strangers_are_told_so_of_a_custom_kind(front: Front) -> None:
    await define(front, "widgets")
    front.refusing["/apis/example.com/v1/widgets"] = Unauthorized("who are you?")
    with pytest.raises(Unauthorized):
        await take(front.api, [CUSTOM_OBJECTS])


@pytest.mark.parametrize(
    ("listing", "counts"),
    [
        (replace(NODES, most=2), (2, 3)),
        (replace(NODES, most=3), None),
        (replace(NODES, most=2, fields="spec.unschedulable=false"), (2, None)),
    ],
)
async def test_a_list_that_stops_at_its_limit_says_how_much_it_read(
    front: Front, listing: Listing[Node], counts: tuple[int, int | None] | None
) -> None:
    for number in range(3):
        await front.api.create(builtins.resource("nodes"), node(f"n{number}"))
    gaps = (await take(front.api, [listing])).missing([listing])
    assert [(gap.cause, gap.read, gap.total) for gap in gaps] == (
        [(Cause.TRUNCATED, *counts)] if counts else []
    )
