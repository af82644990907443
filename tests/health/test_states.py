"""Every state of the bank is told with its cause, and nothing is said of what is healthy.

Written from what operators meet, without looking at the rules.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kvestigate.client.access import resolve
from kvestigate.client.choice import AccessOptions
from kvestigate.client.connect import connect
from kvestigate.health.registry import RULES, findings
from kvestigate.kube import builtins
from tests.health.cluster_of import NOW, Object, cluster_of
from tests.health.planting import OLD, STATES, Case, alarms, as_listed, cases, is_told, plant_state
from tests.health.test_bank import seen
from tests.upstream.cluster import UpstreamCluster

_TOGETHER = 8
"""Cases that are planted at a time."""
BANK = list(cases(STATES, now=NOW))
TOPICS = sorted({case.topic for case in BANK})


def node(name: str) -> Object:
    """A node that is well."""
    room = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": OLD}],
            "nodeInfo": {"kubeletVersion": "v1.36.4"},
        },
    }


STORAGE_CLASS: Object = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {
        "name": "standard",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    },
    "provisioner": "csi.example.com",
}
ADMIN: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "cluster-admin"},
    "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
}
NODES = [node(f"node-{index}") for index in (1, 2, 3)]


@pytest.mark.parametrize("topic", TOPICS)
def test_every_state_is_told_with_its_cause(topic: str) -> None:
    missed, said = [], {}
    for case in BANK:
        if case.topic != topic:
            continue
        snapshot = cluster_of([*NODES, STORAGE_CLASS, ADMIN, *as_listed(case)])
        if not case.healthy and not is_told(case, findings(snapshot, RULES)):
            missed.append(case.name)
        if case.healthy and (lines := alarms(case, findings(snapshot))):
            said[case.name] = lines
    assert not missed
    assert not said


@pytest.mark.real
@pytest.mark.timeout(240)
async def test_every_state_is_told_on_a_real_api_server(
    kubernetes: UpstreamCluster, tmp_path: Path
) -> None:
    """Without controllers and kubelets: what is planted stays as it is."""
    bank = [case for case in cases(STATES, now=datetime.now(UTC)) if not case.alone]
    environ = {"KUBECONFIG": str(kubernetes.admin_kubeconfig()), "PATH": "/usr/bin:/bin"}
    async with connect(resolve(AccessOptions(), environ, None)) as api:
        for one in NODES:
            await api.create(builtins.resource("nodes"), one)
        await api.create(builtins.resource("storageclasses"), STORAGE_CLASS)
        room = asyncio.Semaphore(_TOGETHER)

        async def planted(case: Case) -> None:
            async with room:
                await plant_state(api, case)

        async with asyncio.TaskGroup() as group:
            for case in bank:
                group.create_task(planted(case))
        snapshot = await seen(api)
    everything, by_default = findings(snapshot, RULES), findings(snapshot)
    missed = [case.name for case in bank if not case.healthy and not is_told(case, everything)]
    said = {case.name: alarms(case, by_default) for case in bank if case.healthy}
    assert not missed
    assert not {name: lines for name, lines in said.items() if lines}
