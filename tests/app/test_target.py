"""Host or pods: the rules, one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from kvestigate.app import AppSpec, Target, pick_target
from kvestigate.errors import InputError
from tests.app.conftest import FEW, SPECS, app

NODE = {"node": "gpu-node-7"}


@pytest.mark.parametrize("target", ["workspace", "k8s"])
@pytest.mark.parametrize(
    "fields", [{}, {"workspace": NODE, "resources": {"gpu": 8}}, {"lifecycle": "batch"}]
)
def test_what_the_app_says_counts(target: str, fields: dict[str, Any]) -> None:
    chosen = pick_target(app(target=target, **fields))
    assert (chosen.target, chosen.reasons) == (target, (f"target: {target}",))


@pytest.mark.parametrize(
    ("fields", "target", "reason"),
    [
        ({}, "k8s", "workspace.node is not set"),
        ({"resources": {"gpu": 8}}, "k8s", "workspace.node is not set"),
        ({"lifecycle": "batch"}, "k8s", "workspace.node is not set"),
        ({"workspace": {"storage": {"tmpfs_size": "500G"}}}, "k8s", "workspace.node is not set"),
        ({"workspace": NODE}, "k8s", "nothing but workspace.node speaks for a host"),
        ({"workspace": NODE, "lifecycle": "service"}, "k8s", "nothing but workspace.node"),
        ({"workspace": NODE, "resources": {"gpu": 1}}, "workspace", "resources.gpu: 1"),
        ({"workspace": NODE, "lifecycle": "batch"}, "workspace", "lifecycle: batch"),
        ({"workspace": NODE, "lifecycle": "interactive"}, "workspace", "lifecycle: interactive"),
        (
            {"workspace": NODE | {"storage": {"tmpfs_size": "64G"}}},
            "workspace",
            "workspace.storage.tmpfs_size: 64G, 64 GiB or more",
        ),
        ({"workspace": NODE | {"storage": {"tmpfs_size": "65535M"}}}, "k8s", "nothing but"),
        (
            {"workspace": NODE | {"storage": {"mode": "all-tmpfs", "tmpfs_size": "64Gi"}}},
            "workspace",
            "workspace.storage.tmpfs_size: 64Gi, 64 GiB or more",
        ),
        (
            {"workspace": NODE | {"storage": {"mode": "disk", "tmpfs_size": "500G"}}},
            "k8s",
            "nothing but",
        ),
        # The 500G that workspaces have by default are nobody's wish.
        ({"workspace": NODE | {"storage": {"mode": "all-tmpfs"}}}, "k8s", "nothing but"),
        (
            {"distributed": {"shards": 2, "nodes": ["a", "b"]}, "lifecycle": "batch"},
            "workspace",
            "distributed.nodes: a, b",
        ),
        ({"distributed": {"shards": 2}, "lifecycle": "batch"}, "k8s", "workspace.node is not set"),
    ],
)
def test_auto(fields: dict[str, Any], target: str, reason: str) -> None:
    chosen = pick_target(app(target="auto", **fields))
    assert chosen.target == target
    assert any(reason in it for it in chosen.reasons)


def test_all_that_speaks_for_a_host_is_told() -> None:
    spec = app(
        workspace=NODE | {"storage": {"tmpfs_size": "1T"}},
        resources={"gpu": 2},
        lifecycle="batch",
    )
    assert pick_target(spec).reasons == (
        "workspace.node: gpu-node-7",
        "workspace.storage.tmpfs_size: 1T, 64 GiB or more",
        "resources.gpu: 2",
        "lifecycle: batch",
    )


@pytest.mark.parametrize("workspace", [{}, NODE])
def test_a_contradiction_is_refused_before_anything_else(workspace: dict[str, Any]) -> None:
    spec = app(workspace=workspace | {"storage": {"mode": "all-tmpfs"}}, restart="always")
    with pytest.raises(InputError, match="restart: 'always' contradicts") as caught:
        pick_target(spec)
    assert "storage.mode: hybrid" in (caught.value.hint or "")


@pytest.mark.parametrize("restart", ["on-failure", "never", None])
def test_other_restarts_are_no_contradiction(restart: str | None) -> None:
    workspace = NODE | {"storage": {"mode": "all-tmpfs"}}
    chosen = pick_target(app(workspace=workspace, restart=restart, lifecycle="batch"))
    assert chosen.target is Target.WORKSPACE


@pytest.mark.parametrize(
    ("fields", "caveat"),
    [
        ({"resources": {"memory": "64Gi"}}, "kept by what the host has"),
        ({"k8s": {"replicas": 3}}, "k8s.replicas: 3 means nothing on a host"),
        ({"k8s": {"ports": [80]}}, "k8s.ports are not exposed"),
        ({"k8s": {"volumes": {"/data": "claim"}}}, "k8s.volumes are not there"),
        (
            {"restart": "always", "workspace": {"storage": {"mode": "all-tmpfs"}}},
            "restart: always lasts until the node restarts",
        ),
    ],
)
def test_what_a_host_does_not_do_is_told(fields: dict[str, Any], caveat: str) -> None:
    [said] = pick_target(app(target="workspace", **fields)).caveats
    assert caveat in said


def test_what_pods_do_not_have_is_told() -> None:
    spec = app(target="k8s", workspace={"sources": [{"local": "."}]})
    [said] = pick_target(spec).caveats
    assert "workspace.sources are not copied" in said


@FEW
@given(SPECS)
def test_no_app_goes_to_a_host_that_nobody_named(spec: AppSpec) -> None:
    try:
        chosen = pick_target(spec)
    except InputError:
        return
    assert chosen.reasons
    assert chosen.target is not Target.AUTO
    if spec.target is Target.AUTO and not spec.nodes:
        assert chosen.target is Target.K8S
