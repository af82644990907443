"""Scenarios in planes, whose nodes are simulated."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.scenarios.library import Source, checked, find, names, objects_of
from kvestigate.cluster.scenarios.node_objects import node_objects
from kvestigate.cluster.scenarios.objects import resource_of
from kvestigate.errors import InputError
from kvestigate.kube import builtins, facts, schema
from tests.cluster.workforce.conftest import World, world

NODES = builtins.resource("nodes")
PODS = builtins.resource("pods")


@pytest.fixture
async def planes() -> AsyncIterator[World]:
    async with world(MemoryBackend(), on_wall_clock=False) as made:
        yield made


@pytest.mark.parametrize("name", names())
def test_every_node_of_a_shipped_scenario_fits_its_type(name: str) -> None:
    for made in node_objects(checked(find(name))):
        resource = resource_of(made)
        definition = facts.for_kind(resource.group, resource.version, resource.kind)
        assert definition is not None
        assert schema.problems(made, definition) == schema.FITS, made["metadata"]


@pytest.mark.parametrize("host", ["namespace", "directory"])
def test_nodes_that_run_processes_are_refused(host: str) -> None:
    text = (
        "apiVersion: kvestigate.dev/v1\nkind: Scenario\nmetadata: {name: mine}\n"
        f"spec: {{summary: of a test, nodes: [{{name: worker, host: {host}}}]}}\n"
    )
    with pytest.raises(InputError, match=f"node worker has host: {host}, but"):
        node_objects(checked(Source("mine.yaml", text)))


async def test_a_plane_has_the_nodes_of_its_scenario(planes: World) -> None:
    plane, api = await planes.virtual("a")
    for obj in objects_of("lost-node"):
        await api.apply(resource_of(obj), obj)
    await planes.workers.step(plane, seconds=120)
    found = {node["metadata"]["name"]: node for node in (await api.list(NODES)).items}
    ready = {
        name: next(c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready")
        for name, node in found.items()
    }
    assert ready == {"node-1": "True", "node-2": "True", "node-3": "Unknown"}
    assert found["node-1"]["status"]["allocatable"]["memory"] == "8Gi"
    pods = [pod["spec"].get("nodeName") for pod in (await api.list(PODS)).items]
    assert set(pods) == {"node-1", None}


async def test_images_are_missing_there_too(planes: World) -> None:
    plane, api = await planes.virtual("a")
    for obj in objects_of("broken-app"):
        await api.apply(resource_of(obj), obj)
    await planes.workers.step(plane, seconds=60)
    reasons = {
        status["state"]["waiting"]["reason"]
        for pod in (await api.list(PODS)).items
        for status in pod["status"].get("containerStatuses", ())
        if "waiting" in status["state"]
    }
    assert reasons & {"ErrImagePull", "ImagePullBackOff"}
