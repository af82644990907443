"""Commands of findings: people paste them into a shell, and tenants choose names and messages."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from kvestigate.health.cluster import Cluster
from kvestigate.health.registry import RULES
from tests.health.cluster_of import cluster_of

NAMES = ["$(touch pwned)", "x; touch pwned", "a|b", "--server=evil"]
QUOTA = (
    'pods "api" is forbidden: exceeded quota: {}, requested: pods=1, used: pods=2, limited: pods=2'
)
UNSET = "failed quota: {}: must specify cpu"
POLICY = "ValidatingAdmissionPolicy '{}' with binding 'b' denied request: no"


def binding(name: str) -> list[dict[str, Any]]:
    return [
        {
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "shop"}],
        }
    ]


def refused(message: str) -> list[dict[str, Any]]:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
               "message": message}  # fmt: skip
    meta = {"name": "api", "namespace": "shop"}
    return [{"kind": "Deployment", "metadata": meta, "status": {"conditions": [failure]}}]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", ["binding", QUOTA, UNSET, POLICY])
def test_a_name_is_one_word_of_a_command(case: str, name: str) -> None:
    objects = binding(name) if case == "binding" else refused(case.format(name))
    cluster = Cluster(cluster_of(objects))
    commands = [fault.command for rule in RULES for fault in rule.faults(cluster)]
    named = [command for command in commands if name in command]
    assert named
    for command in named:
        words = list(shlex.shlex(command, posix=True, punctuation_chars=True))
        assert words[-1].endswith(f"/{name}"), command
