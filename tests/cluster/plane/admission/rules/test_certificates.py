"""Who may approve and sign certificates."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kvestigate.http.certificates import CertificateAuthority
from tests.cluster.plane.admission.rules.conftest import made, refusal
from tests.cluster.plane.conftest import JANE, Api

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
CLIENTS = "kubernetes.io/kube-apiserver-client"
APPROVED = {"type": "Approved", "status": "True", "reason": "r", "message": "m"}


def request(organization: str, signer: str = CLIENTS) -> dict[str, Any]:
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
            x509.NameAttribute(NameOID.COMMON_NAME, "x"),
        ]
    )
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    text = b64encode(pem).decode()
    spec = {"request": text, "signerName": signer, "usages": ["client auth"]}
    return {"metadata": {"name": "r"}, "spec": spec}


async def let_jane(api: Api, *rules: dict[str, Any]) -> None:
    writes = {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests/approval", "certificatesigningrequests/status"],
        "verbs": ["patch"],
    }
    await made(api, f"{RBAC}/clusterroles", {"metadata": {"name": "r"}, "rules": [writes, *rules]})
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "r"},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "jane"}],
    }
    await made(api, f"{RBAC}/clusterrolebindings", binding)


def on_signers(verb: str, name: str) -> dict[str, Any]:
    return {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["signers"],
        "resourceNames": [name],
        "verbs": [verb],
    }


async def test_nobody_gets_a_certificate_of_the_masters(api: Api) -> None:
    assert await refusal(api, REQUESTS, request("system:masters")) == (
        f"use of {CLIENTS} signer with system:masters group is not allowed"
    )
    await made(api, REQUESTS, request("dev"))


async def test_another_signer_may_think_otherwise(api: Api) -> None:
    await made(api, REQUESTS, request("system:masters", "example.com/any"))


@pytest.mark.parametrize(
    ("name", "status"),
    [("example.com/one", 200), ("example.com/*", 200), ("example.com/two", 403)],
)
async def test_approving_takes_a_permission_for_the_signer(
    guarded: Api, name: str, status: int
) -> None:
    await made(guarded, REQUESTS, request("dev", "example.com/one"))
    await let_jane(guarded, on_signers("approve", name))

    change = {"status": {"conditions": [APPROVED]}}
    answer = await guarded.patch(f"{REQUESTS}/r/approval", change, **JANE)
    assert answer.status == status, answer.body
    if status == 403:
        assert answer.body["message"].endswith(
            'user not permitted to approve requests with signerName "example.com/one"'
        )


async def test_signing_does_too(guarded: Api) -> None:
    await made(guarded, REQUESTS, request("dev", "example.com/one"))
    await let_jane(guarded, on_signers("approve", "example.com/one"))
    pem = CertificateAuthority.create("test", now=datetime.now(UTC)).pair.certificate
    change = {"status": {"certificate": b64encode(pem).decode()}}

    refused = await guarded.patch(f"{REQUESTS}/r/status", change, **JANE)
    assert refused.status == 403
    assert refused.body["message"].endswith(
        'user not permitted to sign requests with signerName "example.com/one"'
    )
    assert (await guarded.patch(f"{REQUESTS}/r/status", change)).status == 200
