"""What must be as it was."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate_client import Snapshot
from kvestigate_client.guards import (
    Guard,
    only,
    pods_as_described,
    same,
    same_admission,
    same_nodes,
    untouched,
)

CONTAINER = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}


def snapshot(**resources: list[dict[str, Any]]) -> Snapshot:
    return Snapshot("a", "", "7", {("", name): items for name, items in resources.items()})


def named(name: str, uid: str = "1", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", "uid": uid}, **fields}


def web(uid: str = "1", **spec: Any) -> Snapshot:
    described = {"replicas": 2, "template": templated(CONTAINER), **spec}
    return snapshot(deployments=[named("web", uid, spec=described)])


def templated(*containers: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"metadata": metadata, "spec": {"containers": list(containers)}}


def node(name: str, **capacity: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"capacity": capacity, "conditions": []}}


def leaving(name: str) -> Snapshot:
    found = named(name, spec={})
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return snapshot(deployments=[found])


@pytest.mark.parametrize(
    ("guard", "start", "now", "harm"),
    [
        (only("deployments", "web"), web(), web(), ""),
        (only("deployments", "web", "replicas"), web(), web(replicas=3), ""),
        (only("deployments", "web"), web(), web(replicas=3), "web: spec.replicas has changed"),
        (only("deployments", "web", "repl"), web(), web(replicas=3), "spec.replicas has changed"),
        (only("deployments", "web"), web(), web(uid="2"), ""),
        (only("deployments", "web"), web(), snapshot(), "deployments web is gone"),
        (only("deployments", "web"), web(), leaving("web"), "deployments web is gone"),
        (
            only("deployments", "web", "template.spec.containers.0.resources"),
            web(),
            web(template=templated({"name": "main", "image": "app:1"})),
            "",
        ),
        (
            only("deployments", "web", "template.spec.containers.0.resources"),
            web(),
            web(template=templated({**CONTAINER, "image": "app:2"})),
            "spec.template.spec.containers.0.image has changed",
        ),
        (
            only("deployments", "web", "template.spec.containers.0"),
            web(),
            web(template=templated(CONTAINER, {"name": "second"})),
            "spec.template.spec.containers has changed",
        ),
        (
            only("deployments", "web"),
            web(template=templated(CONTAINER)),
            web(template=templated(CONTAINER, annotations={"restartedAt": "now"})),
            "",
        ),
        (same("deployments", "web"), web(), web(replicas=3), ""),
        (same("deployments", "web"), web(), web(uid="2"), "deployments web was made anew"),
        (same("deployments", "web"), web(), snapshot(), "deployments web is gone"),
        (same("deployments", "web"), snapshot(), web(), ""),
        (untouched("deployments"), web(), web(uid="2"), ""),
        (untouched("deployments"), web(), web(replicas=3), "deployments web has come, gone"),
        (untouched("deployments"), web(), snapshot(), "deployments web has come, gone"),
        (untouched("deployments"), snapshot(), web(), "deployments web has come, gone"),
        (untouched("deployments", but=["web"]), snapshot(), web(), ""),
        (
            same_nodes,
            snapshot(nodes=[node("a", cpu="4")]),
            snapshot(nodes=[{**node("a", cpu="4"), "spec": {"unschedulable": True}}]),
            "",
        ),
        (
            same_nodes,
            snapshot(nodes=[node("a", cpu="4")]),
            snapshot(nodes=[node("a", cpu="8")]),
            "nodes have",
        ),
        (same_nodes, snapshot(), snapshot(nodes=[node("a")]), "nodes have"),
        (
            same_admission,
            snapshot(),
            snapshot(mutatingwebhookconfigurations=[named("hook", webhooks=[])]),
            "mutatingwebhookconfigurations hook has come",
        ),
    ],
)
def test_guards(guard: Guard, start: Snapshot, now: Snapshot, harm: str) -> None:
    told = guard(start, now)

    assert harm in told
    assert bool(harm) == bool(told)


@pytest.mark.parametrize(
    ("running", "harm"),
    [
        ([CONTAINER], ""),
        ([CONTAINER, {"name": "sidecar"}], ""),
        ([{**CONTAINER, "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}], ""),
        ([{**CONTAINER, "resources": {}}], "pods a is not as set describes it"),
        ([{**CONTAINER, "image": "pause"}], "pods a is not as set describes it"),
        ([{"name": "sidecar"}], "pods a is not as set describes it"),
    ],
)
def test_pods_are_as_described(running: list[dict[str, Any]], harm: str) -> None:
    described = named("set", "1", spec={"template": templated(CONTAINER)})
    pod = named("a", "2", spec={"containers": running})
    pod["metadata"]["ownerReferences"] = [{"uid": "1", "name": "set", "kind": "ReplicaSet"}]
    now = snapshot(replicasets=[described], pods=[pod, named("alone", spec={"containers": []})])

    assert pods_as_described(now, now) == harm
