"""The collector's kit in a cluster: its own rights, its own checkpoint, probes and logs."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live.conftest import Kubectl, Live

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

KIT = Path(__file__).parents[2] / "deploy" / "collect"


def manifests(name: str, namespace: str) -> list[dict[str, Any]]:
    text = (KIT / name).read_text().replace("observability", namespace)
    return list(yaml.safe_load_all(text))


def test_the_kit_collects_its_cluster(ours: Live) -> None:
    kubectl = Kubectl(ours.kubeconfig, "kit")
    kubectl("create", "namespace", "kit")
    claim, deployment = manifests("deployment.yaml", "kit")
    spec = deployment["spec"]["template"]["spec"]
    # No image is pulled here, so its entry point is this machine's, which is not for everybody.
    spec["containers"][0]["command"] = [sys.executable, "-m", "kvestigate", "collect"]
    spec["securityContext"] = {}
    kubectl.apply(*manifests("rbac.yaml", "kit"), claim, deployment)
    kubectl("rollout", "status", "deployment/k8s-collect", "--timeout=60s")
    with closing(kubectl.lines("deploy/k8s-collect")) as lines:
        records = (json.loads(line) for line in lines if line.startswith("{"))
        assert any(record["workload_name"] == "k8s-collect" for record in records)
    kubectl("delete", "namespace", "kit", "--wait=false")
