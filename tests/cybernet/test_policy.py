"""Everything is denied but what a rule allows, and the rule that denied it is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kvestigate import catalog
from kvestigate.cybernet import policy
from kvestigate.cybernet.refusals import ConstraintViolated, NotAllowed
from kvestigate.cybernet.registry import exposable
from kvestigate.cybernet.spec import HostRequirements, read_cyberspace
from kvestigate.operation import Effect, Operation, Use, WorkspaceUse
from kvestigate.snapshot.capacity import NodeCapacity
from kvestigate.workspace.lifecycle import Creation
from kvestigate.workspace.operations import CREATE, workspace_use
from kvestigate.workspace.options import CreateOptions
from kvestigate.workspace.spec import GpuSpec, SourceSpec, StorageMode, StorageSpec, WorkspaceSpec
from tests.cybernet.conftest import RESEARCH, changed

OPERATIONS = catalog.operations()

SPACE = read_cyberspace(RESEARCH)
GIB = 1024**3


def spec(**fields: Any) -> WorkspaceSpec:
    asked: dict[str, Any] = {
        "name": "agent-1",
        "node": "node-1",
        "storage": StorageSpec(StorageMode.ALL_TMPFS, "100Gi"),
        "gpu": GpuSpec(reserve=2, cordon_node=False),
    }
    return WorkspaceSpec(**{**asked, **fields})


def use(**fields: Any) -> WorkspaceUse:
    return workspace_use(spec(**fields), Use.CREATE)


def declared(
    name: str, *, effect: Effect = Effect.READ, for_agents: bool = False
) -> Operation[CreateOptions, Creation]:
    return replace(CREATE, name=name, effect=effect, consequence=None, for_agents=for_agents)


@pytest.mark.parametrize(
    "name",
    [
        "node.drain",
        "node.clear",
        "node.cordon",
        "node.uncordon",
        "evict",
        "scale",
        "deploy",
        "delete",
        "exec",
        "fanout.exec",
        "fanout.push",
        "optimize.apply",
        "optimize.analyze",
        "plane.delete",
        "fleet.create",
        "jobs.submit",
        "volumes.delete",
        "app.up",
        "debug.api",
        "workspace.cordon",
    ],
)
def test_the_operators_own_operations_are_dangerous_whatever_they_declare(name: str) -> None:
    operation = declared(name, for_agents=True)
    assert policy.is_dangerous(operation)
    with pytest.raises(NotAllowed) as caught:
        policy.allowed(name, {name: operation})  # even if somebody managed to list it
    assert caught.value.reason == "DANGEROUS_OPERATIONS"


@pytest.mark.parametrize("effect", Effect)
def test_an_operation_is_the_operators_until_it_says_otherwise(effect: Effect) -> None:
    assert policy.is_dangerous(declared("something.new", effect=effect))
    assert not policy.is_dangerous(declared("something.new", effect=effect, for_agents=True))


def test_of_the_catalog_only_workspaces_can_be_written() -> None:
    writes = {it.name for it in exposable(OPERATIONS).values() if it.effect is not Effect.READ}
    assert all(name.startswith("workspace.") for name in writes)
    assert "report.run" in exposable(OPERATIONS)


def test_what_agents_may_be_given() -> None:
    assert set(exposable(OPERATIONS)) == {
        "audit",
        "report.list",
        "report.run",
        "namespaces",
        "pods",
        "describe",
        "why",
        "logs",
        "plan",
        "workspace.status",
        "workspace.gpus",
        "workspace.diff",
        "workspace.ps",
        "workspace.logs",
        "workspace.fetch",
        "workspace.list_files",
        "workspace.get_text",
        "workspace.put_text",
        "workspace.edit",
        "workspace.create",
        "workspace.sync",
        "workspace.run",
        "workspace.kill",
        "workspace.destroy",
    }


@pytest.mark.parametrize("name", ["pods", "no.such", "", "../info", "report.run "])
def test_what_is_not_listed_is_not_allowed(name: str) -> None:
    with pytest.raises(NotAllowed) as caught:
        policy.allowed(name, exposable(OPERATIONS[:1]))
    assert caught.value.reason == "operations.allow"


def test_what_is_listed_is_allowed() -> None:
    assert policy.allowed("report.run", exposable(OPERATIONS)).name == "report.run"
    policy.check_touched(SPACE, CREATE.touches(CreateOptions(spec())))
    policy.check_new_workspace(SPACE.workspace, use())


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"node": "node-9"}, "constraints.hosts.allow_names"),
        ({"name": "mine"}, "constraints.workspace.name_pattern"),
        ({"name": "agent-" + "a" * 40}, "constraints.workspace.name_pattern"),
        ({"root": "/srv/elsewhere"}, "workspace.root"),
        ({"sources": (SourceSpec("/etc"),)}, "files"),
    ],
)
def test_a_workspace_that_agents_may_not_name(fields: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConstraintViolated) as caught:
        policy.check_touched(SPACE, CREATE.touches(CreateOptions(spec(**fields))))
    assert caught.value.reason == rule


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"storage": StorageSpec(StorageMode.DISK)}, "storage.allowed_modes"),
        ({"storage": StorageSpec(StorageMode.HYBRID, "501G")}, "storage.max_tmpfs_size"),
        ({"gpu": GpuSpec(reserve=5, cordon_node=False)}, "gpu.max_per_workspace"),
        ({"gpu": GpuSpec(indices=(0, 1, 2, 3, 4), cordon_node=False)}, "gpu.max_per_workspace"),
        ({"gpu": GpuSpec()}, "gpu.cordon_node_forbidden"),
    ],
)
def test_a_workspace_that_agents_may_not_create(fields: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConstraintViolated) as caught:
        policy.check_new_workspace(SPACE.workspace, use(**fields))
    assert caught.value.reason == f"constraints.workspace.{rule}"


def test_exactly_the_limit_is_allowed() -> None:
    most = use(
        storage=StorageSpec(StorageMode.HYBRID, "500Gi"), gpu=GpuSpec(reserve=4, cordon_node=False)
    )
    policy.check_new_workspace(SPACE.workspace, most)


def test_cordoning_can_be_allowed() -> None:
    path = "constraints.workspace.gpu.cordon_node_forbidden"
    rules = read_cyberspace(changed(path, False)).workspace
    policy.check_new_workspace(rules, use(gpu=GpuSpec()))


def capacity(cpu: int, memory: int, gpus: int, *, ready: bool = True) -> NodeCapacity:
    """A node on which so much is free."""
    allocatable = {"cpu": 100_000, "memory": 1000 * GIB, "nvidia.com/gpu": 8}
    requested = {
        "cpu": 100_000 - cpu * 1000,
        "memory": 1000 * GIB - memory * GIB,
        "nvidia.com/gpu": 8 - gpus,
    }
    return NodeCapacity("node-1", ready, True, allocatable, requested)


REQUIRED = HostRequirements(4, 80, 800 * GIB)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (capacity(79, 800, 4), "min_free_cpu_cores"),
        (capacity(80, 799, 4), "min_free_memory"),
        (capacity(80, 800, 3), "min_free_gpu: 3 is free, 4 is required"),
        (capacity(80, 800, 4, ready=False), "not ready"),
        (None, "there is no node"),
    ],
)
def test_a_node_with_too_little_left_is_refused(found: NodeCapacity | None, said: str) -> None:
    with pytest.raises(ConstraintViolated, match=said):
        policy.check_capacity(REQUIRED, "node-1", found)


def test_a_node_with_just_enough_left_will_do() -> None:
    policy.check_capacity(REQUIRED, "node-1", capacity(80, 800, 4))


@pytest.mark.parametrize(("owner", "allowed"), [("s/ada", True), ("s/bob", False), ("", False)])
def test_a_workspace_is_its_owners_alone(owner: str, allowed: bool) -> None:
    if allowed:
        policy.check_owner(owner, "s/ada", "agent-1")
    else:
        with pytest.raises(NotAllowed):
            policy.check_owner(owner, "s/ada", "agent-1")


def test_a_run_has_only_the_gpus_of_its_workspace() -> None:
    policy.check_gpus((1, 2), (1, 2, 3))
    with pytest.raises(ConstraintViolated, match="gpus: 0, 7"):
        policy.check_gpus((0, 1, 7), (1, 2, 3))
