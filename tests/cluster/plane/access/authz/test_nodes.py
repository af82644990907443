"""What kubelets may read, by what the pods on their node name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import Api

CORE = "/api/v1/namespaces/default"
KUBELET = {"impersonate_user": "system:node:n", "impersonate_group": "system:nodes"}
OTHER = {"impersonate_user": "system:node:o", "impersonate_group": "system:nodes"}


async def bind(api: Api, node: str, name: str = "p", **spec: Any) -> None:
    await api.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
    containers = [{"name": "c", "image": "i"}]
    pod = {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": containers, **spec}}
    assert (await api.post(f"{CORE}/pods", pod)).status == 201


@pytest.mark.parametrize(
    ("plural", "volume"),
    [
        ("secrets", {"secret": {"secretName": "x"}}),
        ("secrets", {"azureFile": {"secretName": "x", "shareName": "s"}}),
        ("secrets", {"csi": {"driver": "d", "nodePublishSecretRef": {"name": "x"}}}),
        ("secrets", {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2000-01.a:b", "lun": 0}}),
        ("secrets", {"projected": {"sources": [{"secret": {"name": "x"}}]}}),
        ("configmaps", {"configMap": {"name": "x"}}),
        ("configmaps", {"projected": {"sources": [{"configMap": {"name": "x"}}]}}),
        ("persistentvolumeclaims", {"persistentVolumeClaim": {"claimName": "x"}}),
    ],
)
async def test_a_kubelet_reads_what_its_pods_mount(
    guarded: Api, plural: str, volume: dict[str, Any]
) -> None:
    if "iscsi" in volume:
        volume["iscsi"] |= {"secretRef": {"name": "x"}, "chapAuthSession": True}
    path = f"{CORE}/{plural}/x"
    assert (await guarded.get(path, **KUBELET)).status == 403

    await bind(guarded, "n", volumes=[{"name": "v", **volume}])

    assert (await guarded.get(path, **KUBELET)).status == 404
    assert (await guarded.get(path, **OTHER)).status == 403
    assert (await guarded.get(f"{path}y", **KUBELET)).status == 403


async def test_what_a_pod_gave_goes_with_it(guarded: Api) -> None:
    path = f"{CORE}/secrets/x"
    for name in ("a", "b"):
        await bind(guarded, "n", name, imagePullSecrets=[{"name": "x"}])
    seen = []
    for name in ("a", "b"):
        seen.append((await guarded.get(path, **KUBELET)).status)
        await guarded.delete(f"{CORE}/pods/{name}?gracePeriodSeconds=0")

    assert seen == [404, 404]
    assert (await guarded.get(path, **KUBELET)).status == 403


async def test_a_role_may_give_kubelets_more(guarded: Api) -> None:
    group = "rbac.authorization.k8s.io"
    assert (await guarded.get("/api/v1/nodes", **KUBELET)).status == 403

    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:node"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}],
    }
    await guarded.post(f"/apis/{group}/v1/clusterrolebindings", binding)

    assert (await guarded.get("/api/v1/nodes", **KUBELET)).status == 200


async def test_a_claim_of_devices_is_known_once_it_was_made(guarded: Api) -> None:
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    wanted = [{"name": "d", "resourceClaimTemplateName": "t"}]
    await bind(guarded, "n", resourceClaims=wanted)
    assert (await guarded.get(f"{claims}/made", **KUBELET)).status == 403

    status = {"resourceClaimStatuses": [{"name": "d", "resourceClaimName": "made"}]}
    await guarded.patch(f"{CORE}/pods/p/status", {"status": status})

    assert (await guarded.get(f"{claims}/made", **KUBELET)).status == 404


async def test_what_a_pod_of_one_plane_gives_is_nothing_in_another(guarded: Api) -> None:
    other = Api(guarded.server, "/clusters/other/control-plane")
    await bind(guarded, "n", imagePullSecrets=[{"name": "x"}])
    await bind(other, "n")
    path = f"{CORE}/secrets/x"

    seen = [(await api.get(path, **KUBELET)).status for api in (guarded, other, guarded)]

    assert seen == [404, 403, 404]


async def test_a_mirror_pod_gives_nothing(guarded: Api) -> None:
    source = [{"configMapRef": {"name": "x"}}]
    containers = [{"name": "c", "image": "i", "envFrom": source}]
    mirror = {"name": "p", "annotations": {"kubernetes.io/config.mirror": "h"}}
    spec = {"nodeName": "n", "containers": containers}

    made = await guarded.post(f"{CORE}/pods", {"metadata": mirror, "spec": spec})

    assert made.status == 201
    assert (await guarded.get(f"{CORE}/pods/p", **KUBELET)).status == 200
    assert (await guarded.get(f"{CORE}/configmaps/x", **KUBELET)).status == 403
