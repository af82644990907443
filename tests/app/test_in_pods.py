"""What Apps compile to is taken by API servers, ours and the real one."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given

from kvestigate.app import AppSpec, Target, compile_to_k8s, load_app
from kvestigate.app.manage import AppOptions, down, up
from kvestigate.app.model import Action
from kvestigate.client.access import Access, AccessOptions, resolve
from kvestigate.errors import InputError
from kvestigate.kube import builtins
from tests.app.conftest import EXAMPLES, FEW, SPECS, app
from tests.bed import plane
from tests.conftest import Cluster
from tests.contexts import acting, planning

EVERYTHING = app(
    metadata={"name": "everything", "labels": {"team": "a"}, "annotations": {"note": "x"}},
    command=["sh", "-c", "echo $(HOME)"],
    env={"A": "$(B)"},
    restart="always",
    resources={"gpu": 2, "cpu": 4, "memory": "64Gi"},
    k8s={
        "kind": "statefulset",
        "replicas": 2,
        "ports": [{"port": 80, "target_port": 8080}, {"port": 53, "protocol": "UDP"}],
        "expose": "node-port",
        "health_path": "/ok",
        "node_selector": {"disk": "ssd"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}, {"operator": "Exists"}],
        "service_account": "runner",
        "env_from_secrets": ["tokens"],
        "volumes": {"/data": "claim", "/other": "second"},
    },
    shared_config_files=[{"name": "a.toml", "content": "x = 1\n"}],
)


@pytest.fixture
def access(cluster: Cluster, namespace: str) -> Access:
    options = AccessOptions(kubeconfig=str(cluster.admin_kubeconfig()), namespace=namespace)
    return resolve(options, {}, None)


@pytest.mark.parametrize(
    "spec",
    [
        EVERYTHING,
        load_app(EXAMPLES / "web-service.yaml"),
        load_app(EXAMPLES / "batch.yaml"),
        load_app(EXAMPLES / "distributed.yaml"),
        app(metadata={"name": "shell"}, lifecycle="interactive"),
    ],
    ids=lambda spec: spec.metadata.name,
)
async def test_an_app_that_is_up_is_left_alone(
    spec: AppSpec, access: Access, namespace: str
) -> None:
    spec = replace(spec, metadata=replace(spec.metadata, namespace=namespace))
    done = await up(acting(access), AppOptions(spec))
    assert {it.action for it in done.steps} == {Action.CREATE}, done
    again = await up(planning(access), AppOptions(spec))
    assert {it.action for it in again.steps} == {Action.UNCHANGED}, again
    # There is no garbage collector here that would let it go.
    gone = await down(acting(access), AppOptions(spec, timeout=0.01))
    assert {it.action for it in gone.steps} == {Action.LEAVE}
    assert len(gone.steps) == len(done.steps)


@FEW
@given(SPECS)
def test_any_app_that_loads_is_taken(spec: AppSpec) -> None:
    """What we let pass, the server must not refuse."""
    spec = replace(spec, target=Target.K8S, metadata=replace(spec.metadata, namespace="default"))
    try:
        manifests = compile_to_k8s(spec)
    except InputError:
        return

    async def apply() -> None:
        async with plane() as api:
            for it in manifests:
                resource = builtins.registry().for_kind(it["apiVersion"], it["kind"])
                assert resource is not None
                await api.apply(resource, it, namespace="default", dry_run=True)

    asyncio.run(apply())
