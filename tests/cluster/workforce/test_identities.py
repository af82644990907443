"""Who the API server sees when the workers of a plane act."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvestigate.cluster.controllers.registry import CONTROLLERS
from kvestigate.cluster.plane.access.authz.default_roles import default_roles
from kvestigate.cluster.plane.front.audit_log import AuditLog
from kvestigate.cluster.plane.model.user import MASTERS
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.workforce.identities import (
    KUBELETS,
    MANAGER,
    METRICS,
    SCHEDULER,
    SERVER,
    controller,
    kubelet,
)
from kvestigate.cluster.workforce.signers import SIGNER
from kvestigate.kube import builtins
from tests.cluster.workforce.conftest import DEPLOYMENTS, JOBS, deployment, job, world

ACCOUNT = "system:serviceaccount:kube-system:"
NAMES = [*CONTROLLERS, SIGNER, "root-ca-certificate-publisher-controller"]
WRITERS = {
    "create pods": {f"{ACCOUNT}replicaset-controller", f"{ACCOUNT}job-controller"},
    "create replicasets": {f"{ACCOUNT}deployment-controller"},
    "create pods/binding": {"system:kube-scheduler"},
    "patch pods/status": {"system:node:node-1", "system:node:node-2"},
    "create nodes": {"system:node:node-1", "system:node:node-2"},
    "create leases": {"system:node:node-1", "system:node:node-2"},
    "create endpointslices": {f"{ACCOUNT}endpointslice-controller"},
    "create endpoints": {f"{ACCOUNT}endpoint-controller"},
    "patch deployments/status": {f"{ACCOUNT}deployment-controller"},
    "patch jobs/status": {f"{ACCOUNT}job-controller"},
}
SERVICE = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}


async def test_every_write_is_made_by_the_part_that_it_belongs_to(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path / "audit.log")
    async with world(MemoryBackend(), audit=audit) as planes:
        plane, api = await planes.virtual("a")
        await api.create(DEPLOYMENTS, deployment("web", 2))
        await api.create(builtins.resource("services"), SERVICE)
        await api.create(JOBS, job("once", "true"))
        await planes.workers.step(plane)
    audit.close()
    writers: dict[str, set[str]] = defaultdict(set)
    for line in _written(tmp_path / "audit.log"):
        reference, user = line["objectRef"], line["user"]
        assert user["username"] in ("admin", SERVER.user.name) or MASTERS not in user["groups"]
        assert line["responseStatus"]["code"] != 403, line
        place = "/".join(filter(None, [reference["resource"], reference.get("subresource")]))
        if user["username"] != "admin":
            writers[f"{line['verb']} {place}"].add(user["username"])
    assert {act: writers[act] for act in WRITERS} == WRITERS


def _written(log: Path) -> Iterator[dict[str, Any]]:
    for text in log.read_text().splitlines():
        line = json.loads(text)
        if line["verb"] not in ("get", "list", "watch"):
            yield line


@pytest.mark.parametrize("name", NAMES)
def test_a_controller_has_an_account_that_kubernetes_gives_rights_to(name: str) -> None:
    if name == "apiservice-availability-controller":
        return  # a part of the API server
    accounts = {
        f"{ACCOUNT}{subject['name']}"
        for plural, _, role in default_roles()
        if plural == "clusterrolebindings"
        for subject in role.get("subjects") or ()
    }
    assert controller(name).user.name in accounts


def test_nobody_but_the_server_is_a_master() -> None:
    parts = [MANAGER, SCHEDULER, KUBELETS, METRICS, kubelet("node-1")]
    parts += [controller(name) for name in NAMES]
    masters = {part.user.name for part in parts if MASTERS in part.user.groups}
    assert masters <= {SERVER.user.name}
