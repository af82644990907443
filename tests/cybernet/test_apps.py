"""Apps within a cyberspace: by its rules, and in its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvestigate.app.compile import compile_to_k8s
from kvestigate.app.load import parse_app
from kvestigate.app.manage import AppOptions
from kvestigate.app.model import Action
from kvestigate.app.spec import AppSpec
from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.cybernet.apps import Gate
from kvestigate.cybernet.quotas import holder_of
from kvestigate.cybernet.refusals import ConstraintViolated, NoSuchThing
from kvestigate.cybernet.serving import identity_of
from kvestigate.errors import UsageError
from kvestigate.render.encode import to_yaml
from tests.bed import Bed
from tests.cybernet.conftest import Document, load, recorded


@pytest.fixture(autouse=True)
def status_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvestigate.app.status.APP_STATUS_DIR", tmp_path / "apps")


def app(**fields: Any) -> AppSpec:
    return parse_app(to_yaml({"app": {"metadata": {"name": "agent-web"}, **fields}}))


def on_host(**fields: Any) -> AppSpec:
    workspace = {"node": "node-1", "cordon_node": False, "storage": {"tmpfs_size": "1Gi"}}
    return app(target="workspace", command=["run"], workspace={**workspace, **fields})


IN_PODS: dict[str, Any] = {"target": "k8s", "k8s": {"image": "web:1", "ports": [80]}}


async def test_an_app_in_pods_is_recorded(document: Document, access: Access) -> None:
    gate = Gate(load(document), "ada")
    spec = app(**IN_PODS)
    done = await gate.up(access, AppOptions(spec, apply=True))
    assert [it.action for it in done.steps] == [Action.CREATE, Action.CREATE]
    await gate.down(access, AppOptions(spec, apply=True, timeout=0.01))
    records = recorded(document)
    assert [(it["operation"], it["identity"], it["tags"]) for it in records] == [
        ("app.up", "ada", ["gpu"]),
        ("app.down", "ada", ["gpu"]),
    ]
    assert records[0]["parameters"]["app"] == "default/agent-web"
    assert (records[0]["decision"], records[0]["outcome"]) == ("allow", "ok")


async def test_steps_that_fail_are_recorded_as_such(document: Document, access: Access) -> None:
    spec = app(metadata={"name": "agent-own"}, **IN_PODS)
    theirs = compile_to_k8s(spec)[0]
    theirs["spec"]["type"] = "NodePort"
    async with connect(access) as api:
        await Bed(api).create("services", theirs)
    done = await Gate(load(document), "ada").up(access, AppOptions(spec, apply=True))
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
    ],
)
@pytest.mark.parametrize("apply", [True, False])
async def test_an_app_against_the_rules_is_refused(
    document: Document, access: Access, spec: AppSpec, rule: str, apply: bool
) -> None:
    with pytest.raises(ConstraintViolated) as caught:
        await Gate(load(document), "ada").up(access, AppOptions(spec, apply=apply))
    assert caught.value.reason == rule
    if apply:  # a plan is nothing that was done
        [record] = recorded(document)
        assert (record["decision"], record["outcome"]) == ("deny", "denied")


async def test_what_cannot_be_counted_is_not_made(document: Document, access: Access) -> None:
    with pytest.raises(NoSuchThing, match="no DaemonSet"):
        await Gate(load(document), "ada").up(access, AppOptions(on_host(), apply=True))
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
