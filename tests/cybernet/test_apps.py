"""Apps within a cyberspace: by its rules, and in its record."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kvestigate.app import status
from kvestigate.app.compile import APP_LABEL, KINDS, compile_to_k8s
from kvestigate.app.fence import HOLDER, Fence
from kvestigate.app.load import parse_app
from kvestigate.app.manage import AppOptions
from kvestigate.app.model import Action
from kvestigate.app.operations import DOWN, UP
from kvestigate.app.spec import AppSpec
from kvestigate.client.access import Access
from kvestigate.client.api import Propagation
from kvestigate.client.call import Selection
from kvestigate.client.connect import connect
from kvestigate.cybernet.apps import Gate
from kvestigate.cybernet.quotas import holder_of
from kvestigate.cybernet.refusals import (
    Conflicting,
    ConstraintViolated,
    NoSuchThing,
    NotAllowed,
    QuotaExceeded,
)
from kvestigate.cybernet.rendering import accounts_blocks
from kvestigate.cybernet.serving import accounts, identity_of
from kvestigate.errors import Conflict, NotFound, UsageError
from kvestigate.kube import builtins
from kvestigate.render.encode import to_yaml
from kvestigate.render.plain import to_text
from tests.bed import Bed
from tests.contexts import acting, planning
from tests.cybernet.conftest import Document, changed, load, recorded


@pytest.fixture(autouse=True)
def status_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvestigate.app.status.APP_STATUS_DIR", tmp_path / "apps")


@pytest.fixture(autouse=True)
async def swept(access: Access) -> AsyncIterator[None]:
    """No App is left behind: there are no controllers here to finish a deletion."""
    yield
    async with connect(access) as api:
        for kind in map(builtins.resource, KINDS):
            for it in (await api.list(kind, Selection(labels=APP_LABEL))).items:
                name = it["metadata"]["name"]
                with suppress(NotFound):
                    await api.delete(kind, name, propagation=Propagation.BACKGROUND)
                    await api.patch(kind, name, {"metadata": {"finalizers": None}})


def app(**fields: Any) -> AppSpec:
    return parse_app(to_yaml({"app": {"metadata": {"name": "agent-web"}, **fields}}))


IN_PODS: dict[str, Any] = {"target": "k8s", "k8s": {"image": "web:1", "ports": [80]}}


def on_host(**fields: Any) -> AppSpec:
    workspace = {"node": "node-1", "cordon_node": False, "storage": {"tmpfs_size": "1Gi"}}
    return app(target="workspace", command=["run"], workspace={**workspace, **fields})


async def test_an_app_in_pods_is_recorded(document: Document, access: Access) -> None:
    gate = Gate(load(document), "ada")
    spec = app(**IN_PODS)
    done = await gate.run(UP, acting(access), AppOptions(spec))
    assert [it.action for it in done.steps] == [Action.CREATE, Action.CREATE]
    await gate.run(DOWN, acting(access), AppOptions(spec, timeout=0.01))
    records = recorded(document)
    assert [(it["operation"], it["identity"], it["tags"]) for it in records] == [
        ("app.up", "ada", ["gpu"]),
        ("app.down", "ada", ["gpu"]),
    ]
    assert records[0]["parameters"]["app"] == "default/agent-web"
    assert (records[0]["decision"], records[0]["outcome"]) == ("allow", "ok")


async def test_steps_that_fail_are_recorded_as_such(document: Document, access: Access) -> None:
    spec = app(metadata={"name": "agent-own"}, **IN_PODS)
    theirs = compile_to_k8s(spec, Fence("research-agents/ada"))[0]
    theirs["spec"]["type"] = "NodePort"
    async with connect(access) as api:
        await Bed(api).create("services", theirs)
    done = await Gate(load(document), "ada").run(UP, acting(access), AppOptions(spec))
    assert done.failed
    [record] = recorded(document)
    assert (record["decision"], record["outcome"]) == ("allow", "error")
    assert "Service agent-own" in record["reason"]


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        (on_host(node="node-9"), "constraints.hosts.allow_names"),
        (on_host(root="/srv"), "workspace.root"),
        (on_host(storage={"mode": "disk"}), "constraints.workspace.storage.allowed_modes"),
        (on_host(storage={"tmpfs_size": "1Ti"}), "constraints.workspace.storage.max_tmpfs_size"),
        (on_host(cordon_node=True), "constraints.workspace.gpu.cordon_node_forbidden"),
        (on_host(gpu_indices=[0, 1, 2, 3, 4]), "constraints.workspace.gpu.max_per_workspace"),
        (app(metadata={"name": "web"}, **IN_PODS), "constraints.workspace.name_pattern"),
        (app(resources={"gpu": 5}, **IN_PODS), "constraints.workspace.gpu.max_per_workspace"),
    ],
)
@pytest.mark.parametrize("apply", [True, False])
async def test_an_app_against_the_rules_is_refused(
    document: Document, access: Access, spec: AppSpec, rule: str, apply: bool
) -> None:
    context = acting(access) if apply else planning(access)
    with pytest.raises(ConstraintViolated) as caught:
        await Gate(load(document), "ada").run(UP, context, AppOptions(spec))
    assert caught.value.reason == rule
    if apply:  # a plan is nothing that was done
        [record] = recorded(document)
        assert (record["decision"], record["outcome"]) == ("deny", "denied")


def replicated(name: str, count: int, **resources: Any) -> AppSpec:
    k8s = {"image": "web:1", "replicas": count}
    return app(metadata={"name": f"agent-{name}"}, target="k8s", k8s=k8s, resources=resources)


@pytest.mark.parametrize(
    ("quota", "limit", "fits", "exceeds"),
    [
        ("max_active_workspaces_per_identity", 3, ({}, 2), ({}, 2)),
        ("max_total_active_workspaces", 3, ({}, 1), ({}, 3)),
        ("max_total_active_gpu", 4, ({"gpu": 1}, 2), ({"gpu": 3}, 1)),
        ("max_total_active_memory", "4Gi", ({"memory": "1Gi"}, 3), ({"memory": "2Gi"}, 1)),
    ],
)
async def test_pods_count_as_workspaces_do(
    document: Document,
    access: Access,
    quota: str,
    limit: Any,
    fits: tuple[dict[str, Any], int],
    exceeds: tuple[dict[str, Any], int],
) -> None:
    gate = Gate(load(changed("quotas", {quota: limit}, document)), "ada")
    first, more = replicated("one", fits[1], **fits[0]), replicated("two", exceeds[1], **exceeds[0])
    await gate.run(UP, acting(access), AppOptions(first))
    with pytest.raises(QuotaExceeded) as caught:
        await gate.run(UP, acting(access), AppOptions(more))
    assert caught.value.reason == f"quotas.{quota}"
    await gate.run(UP, acting(access), AppOptions(first))  # it is one of those that are counted
    assert [it["outcome"] for it in recorded(document)] == ["ok", "denied", "ok"]


async def test_pods_stay_on_the_nodes_of_the_cyberspace(document: Document, access: Access) -> None:
    gate = Gate(load(document), "ada")
    for spec in (replicated("fenced", 1), app(lifecycle="batch", **IN_PODS)):
        kind = "jobs" if spec.lifecycle == "batch" else "deployments"
        await gate.run(UP, acting(access), AppOptions(spec))
        async with connect(access) as api:
            [made] = [
                it
                for it in (await api.list(builtins.resource(kind))).items
                if it["metadata"]["name"].startswith(spec.metadata.name)
            ]
        assert made["metadata"]["annotations"][HOLDER] == "research-agents/ada"
        affinity = made["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
        [terms] = affinity["requiredDuringSchedulingIgnoredDuringExecution"].values()
        assert [it["matchFields"][0]["values"] for it in terms] == [["node-1"], ["node-2"]]


async def test_pods_of_another_are_left_alone(document: Document, access: Access) -> None:
    ada, bob = (Gate(load(document), it) for it in ("ada", "bob"))
    spec = replicated("mine", 1)
    await ada.run(UP, acting(access), AppOptions(spec))
    forget()
    for operation in (UP, DOWN):
        with pytest.raises((Conflicting, NotAllowed)):
            await bob.run(operation, acting(access), AppOptions(spec))
        with pytest.raises(Conflict, match="in the name of research-agents/ada"):
            await operation.run(acting(access), AppOptions(spec))


def forget() -> None:
    """As on another machine, which has no record of the App."""
    for path in status.APP_STATUS_DIR.rglob("*"):
        if path.is_file():
            path.unlink()


async def test_what_cannot_be_counted_is_not_made(document: Document, access: Access) -> None:
    with pytest.raises(NoSuchThing, match="does not exist"):
        await Gate(load(document), "ada").run(UP, acting(access), AppOptions(on_host()))
    [record] = recorded(document)
    assert record["outcome"] == "error"


@pytest.mark.parametrize(
    ("owner", "holder"),
    [
        ("pool/ada", "pool/ada"),
        ("pool/ada app default/web", "pool/ada"),
        ("app default/web", "app default/web"),
        ("", ""),
    ],
)
def test_what_an_app_has_is_its_identitys(owner: str, holder: str) -> None:
    assert holder_of(owner) == holder


def test_in_whose_name_has_to_be_clear(document: Document) -> None:
    loaded = load(document)
    assert identity_of(loaded, "bob") == "bob"
    for wanted in ("", "eve"):
        with pytest.raises(UsageError, match="--identity"):
            identity_of(loaded, wanted)


async def test_what_cannot_be_counted_is_told(document: Document, access: Access) -> None:
    """A cluster without a way to its hosts does not look like one where nobody holds anything."""
    found = await accounts(load(document), access)
    [unknown] = found.unknown
    assert unknown.startswith("no host was asked: ")
    [line] = [it for it in to_text(accounts_blocks(found)).splitlines() if "not counted" in it]
    assert "DaemonSet 'direct-node-access' does not exist" in line
