"""What kubelets may write."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.cluster.plane.conftest import MERGE, Api

CORE = "/api/v1/namespaces/default"
KUBELET = {"impersonate_user": "system:node:n", "impersonate_group": "system:nodes"}


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("anything", True),
        ("example.com/a", True),
        ("kubernetes.io/hostname", True),
        ("kubernetes.io/other", False),
        ("k8s.io/a", False),
        ("a.k8s.io/a", False),
        ("notk8s.io/a", True),
        ("node.kubernetes.io/a", True),
        ("a.node.kubernetes.io/a", True),
        ("node-restriction.kubernetes.io/a", False),
        ("a.node-restriction.kubernetes.io/a", False),
    ],
)
async def test_labels_of_its_own_node(guarded: Api, label: str, allowed: bool) -> None:
    node = {"metadata": {"name": "n", "labels": {label: "x"}}}

    answer = await guarded.post("/api/v1/nodes", node, **KUBELET)

    assert answer.status == (201 if allowed else 403)


def certificate_request(name: str) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    request = x509.CertificateSigningRequestBuilder().subject_name(subject)
    pem = request.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode()


@pytest.mark.parametrize(
    ("signer", "name", "status"),
    [
        ("kubernetes.io/kube-apiserver-client-kubelet", "system:node:n", 201),
        ("kubernetes.io/kube-apiserver-client-kubelet", "system:node:o", 403),
        ("kubernetes.io/kubelet-serving", "system:node:o", 403),
        ("example.com/own", "system:node:o", 201),
    ],
)
async def test_certificates_are_for_its_own_name(
    guarded: Api, signer: str, name: str, status: int
) -> None:
    usages = ["digital signature", "client auth"]
    if signer.endswith("serving"):
        usages = ["digital signature", "server auth"]
    spec = {"request": certificate_request(name), "signerName": signer, "usages": usages}
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

    answer = await guarded.post(path, {"metadata": {"name": "c"}, "spec": spec}, **KUBELET)

    assert answer.status == status


DRIVER: dict[str, Any] = {"metadata": {"name": "d"}, "spec": {"tokenRequests": [{"audience": "a"}]}}
MOUNTED = {"projected": {"sources": [{"serviceAccountToken": {"path": "t", "audience": "a"}}]}}


@pytest.mark.parametrize(
    ("volume", "status"),
    [
        ({"emptyDir": {}}, 403),
        (MOUNTED, 201),
        ({"csi": {"driver": "d"}}, 201),
        ({"csi": {"driver": "unknown"}}, 403),
        ({"persistentVolumeClaim": {"claimName": "c"}}, 201),
        ({"persistentVolumeClaim": {"claimName": "unknown"}}, 403),
    ],
)
async def test_tokens_are_for_whom_the_pod_has_them(
    guarded: Api, volume: dict[str, Any], status: int
) -> None:
    modes = {"accessModes": ["ReadWriteOnce"]}
    source = {"csi": {"driver": "d", "volumeHandle": "h"}, "capacity": {"storage": "1Gi"}}
    claim = {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v"}
    pod = {
        "metadata": {"name": "p"},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", **volume}],
        },
    }
    made = [
        await guarded.post("/apis/storage.k8s.io/v1/csidrivers", DRIVER),
        await guarded.post(
            "/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": modes | source}
        ),
        await guarded.post(
            f"{CORE}/persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": modes | claim}
        ),
        await guarded.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}}),
        await guarded.post(f"{CORE}/pods", pod),
    ]
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    reference["uid"] = made[-1].body["metadata"]["uid"]
    spec = {"audiences": ["a"], "boundObjectRef": reference}

    answer = await guarded.post(f"{CORE}/serviceaccounts/default/token", {"spec": spec}, **KUBELET)

    assert answer.status == status, answer.body


async def let_kubelets_do_anything(api: Api) -> None:
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}],
    }
    await api.post(f"/apis/{group}/v1/clusterrolebindings", binding)


@pytest.mark.parametrize(
    ("method", "path", "why"),
    [
        ("POST", f"{CORE}/pods/p/binding", 'unexpected pod subresource "binding"'),
        ("PATCH", f"{CORE}/pods/p/resize", 'unexpected pod subresource "resize"'),
        ("PATCH", f"{CORE}/pods/p", 'unexpected operation "UPDATE"'),
        ("DELETE", f"{CORE}/pods/p", 'node "n" can only delete pods'),
        ("DELETE", f"{CORE}/pods", 'node "n" can only delete pods'),
    ],
)
async def test_no_role_lets_a_kubelet_write_beyond_its_node(
    guarded: Api, method: str, path: str, why: str
) -> None:
    await let_kubelets_do_anything(guarded)
    await guarded.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
    pod = {"nodeName": "o", "containers": [{"name": "c", "image": "i"}]}
    made = await guarded.post(f"{CORE}/pods", {"metadata": {"name": "p"}, "spec": pod})
    assert made.status == 201
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    sent = {"POST": body, "PATCH": {"spec": {"activeDeadlineSeconds": 9}}}.get(method)
    media = {"PATCH": {"content_type": MERGE}}.get(method, {})

    answer = await guarded.call(method, path, sent, **KUBELET, **media)

    assert answer.status == 403, answer.body
    assert why in answer.body["message"]


async def test_a_user_of_the_group_who_names_no_node_writes_nothing(guarded: Api) -> None:
    nobody = {"impersonate_user": "system:node:", "impersonate_group": "system:nodes"}
    await let_kubelets_do_anything(guarded)

    answer = await guarded.post("/api/v1/nodes", {"metadata": {"name": "n"}}, **nobody)

    assert answer.status == 403
    assert "could not determine node" in answer.body["message"]
