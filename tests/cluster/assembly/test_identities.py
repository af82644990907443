"""The parts of an embedded cluster act under names of their own, with rights of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvestigate.client.api import PODS, Api
from kvestigate.cluster.assembly.directory import Shape
from kvestigate.errors import Invalid
from kvestigate.kube import builtins
from tests.cluster.assembly.conftest import Object, all_running, cluster, until_pods

DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "x"}]},
        },
    },
}
POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    **DEPLOYMENT["spec"]["template"],
    "metadata": {"name": "x"},
}


RULES = {
    "pods": (
        "request.userInfo.username == 'system:serviceaccount:kube-system:replicaset-controller' "
        "&& !('system:masters' in request.userInfo.groups)"
    ),
    "pods/status": (
        "request.userInfo.username == 'system:node:node-1' "
        "&& 'system:nodes' in request.userInfo.groups"
    ),
    "nodes/status": "request.userInfo.username == 'system:node:node-1'",
    "pods/binding": (
        "request.userInfo.username == 'system:kube-scheduler' "
        "&& !('system:masters' in request.userInfo.groups)"
    ),
}


async def test_no_part_acts_as_the_owner(tmp_path: Path) -> None:
    """A policy lets nobody else make, bind and run pods: what should run still runs."""
    async with cluster(tmp_path, Shape(nodes=1, host="simulated")) as api:
        for resource, expression in RULES.items():
            await _allow_only(api, resource, expression)
        with pytest.raises(Invalid):
            await api.create(PODS, POD)
        await api.create(builtins.resource("deployments"), DEPLOYMENT)
        await until_pods(api, all_running(1))


async def _allow_only(api: Api, resource: str, expression: str) -> None:
    name = resource.replace("/", "-")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"]}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{**rule, "resources": [resource]}]},
            "validations": [{"expression": expression}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    await api.create(builtins.resource("validatingadmissionpolicies"), policy)
    await api.create(builtins.resource("validatingadmissionpolicybindings"), binding)
