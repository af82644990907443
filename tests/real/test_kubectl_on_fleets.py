"""The unmodified kubectl declares fleets of planes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.real.test_kubectl_on_plane import Kubectl
from tests.served_plane import ServedPlane

pytestmark = pytest.mark.real

FLEET = {
    "apiVersion": "kplane.dev/v1",
    "kind": "Fleet",
    "metadata": {"name": "crew"},
    "spec": {"replicas": 1000},
}


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    home = tmp_path_factory.mktemp("kubectl")
    with ServedPlane(tmp_path_factory.mktemp("plane")) as plane:
        yield Kubectl(plane.admin_kubeconfig(), home)


def test_a_thousand_planes_are_declared_seen_scaled_and_deleted(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=FLEET)
    kubectl("wait", "--for=condition=Ready", "fleet/crew", "--timeout=25s")

    name, replicas, ready, _ = kubectl("get", "fleets", "--no-headers").split()
    assert (name, replicas, ready) == ("crew", "1000", "1000")
    assert "MembersCreated" in kubectl("get", "events")
    assert "namePrefix" in kubectl("explain", "fleet.spec")
    snapshot = kubectl("get", "--raw", "/clusters/crew-0999/control-plane/snapshot")
    assert json.loads(snapshot)["cluster"] == "crew-0999"

    kubectl("scale", "fleet/crew", "--replicas=3")
    kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "fleet/crew", "--timeout=25s")
    kubectl("delete", "fleet", "crew", "--timeout=25s")

    left = json.loads(kubectl("get", "--raw", "/clusters"))["items"]
    assert [each["id"] for each in left] == ["root"]
