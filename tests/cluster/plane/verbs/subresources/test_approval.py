"""certificatesigningrequests: approval and status."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from kvestigate.http.certificates import CertificateAuthority
from tests.cluster.plane.conftest import Api

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
PEM = "-----BEGIN {0}-----\nMAA=\n-----END {0}-----\n"
CERTIFICATE = base64.b64encode(
    CertificateAuthority.create("test", now=datetime.now(UTC)).pair.certificate
).decode()
APPROVED = {"type": "Approved", "status": "True", "reason": "Known", "message": "ours"}


def pem(what: str) -> str:
    return base64.b64encode(PEM.format(what).encode()).decode()


def asking(**spec: Any) -> dict[str, Any]:
    request = {"request": pem("CERTIFICATE REQUEST"), "usages": ["client auth"]}
    signer = {"signerName": "kubernetes.io/kube-apiserver-client"}
    return {"metadata": {"name": "bob"}, "spec": {**request, **signer, **spec}}


def conditions(*each: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"status": {"conditions": list(each), **status}}


@pytest.fixture
async def path(api: Api) -> str:
    made = await api.post(REQUESTS, asking(username="root", groups=["system:masters"]))
    assert made.status == 201, made.body
    return f"{REQUESTS}/bob"


async def test_who_asks_is_on_record_whatever_they_claim(api: Api, path: str) -> None:
    spec = (await api.get(path)).body["spec"]

    assert spec["username"] == "admin"
    assert spec["groups"] == ["system:masters", "system:authenticated"]


async def test_an_approval_decides_and_issues_nothing(api: Api, path: str) -> None:
    change = conditions(APPROVED, certificate=CERTIFICATE)

    approved = await api.patch(f"{path}/approval", change)

    assert approved.status == 200
    [condition] = approved.body["status"]["conditions"]
    assert {name: condition[name] for name in APPROVED} == APPROVED
    assert condition["lastUpdateTime"] == condition["lastTransitionTime"] != ""
    assert "certificate" not in approved.body["status"]


async def test_a_signer_issues_and_decides_nothing(api: Api, path: str) -> None:
    failed = {"type": "Failed", "status": "True"}
    change = conditions(APPROVED, failed, certificate=CERTIFICATE)

    signed = await api.patch(f"{path}/status", change)

    assert signed.status == 200
    assert signed.body["status"]["certificate"] == CERTIFICATE
    assert [each["type"] for each in signed.body["status"]["conditions"]] == ["Failed"]


@pytest.mark.parametrize("subresource", ["approval", "status", ""])
async def test_what_is_asked_for_never_changes(api: Api, path: str, subresource: str) -> None:
    target = f"{path}/{subresource}".rstrip("/")

    await api.patch(target, {"spec": {"signerName": "example.com/other", "username": "eve"}})

    spec = (await api.get(path)).body["spec"]
    assert (spec["signerName"], spec["username"]) == (
        "kubernetes.io/kube-apiserver-client",
        "admin",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            conditions({"type": "Denied", "status": "True"}),
            'status.conditions: Forbidden: updates may not remove a condition of type "Approved"',
        ),
        (
            conditions(APPROVED, {"type": "Denied", "status": "True"}),
            'status.conditions: Invalid value: "Denied": Approved and Denied conditions are '
            "mutually exclusive",
        ),
        (
            conditions(APPROVED | {"status": "False"}),
            'status.conditions[0].status: Unsupported value: "False": supported values: "True"',
        ),
    ],
)
async def test_a_decision_stands(api: Api, path: str, change: Any, message: str) -> None:
    assert (await api.patch(f"{path}/approval", conditions(APPROVED))).status == 200

    refused = await api.patch(f"{path}/approval", change)

    assert refused.status == 422
    assert refused.body["message"] == (
        f'CertificateSigningRequest.certificates.k8s.io "bob" is invalid: {message}'
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"request": base64.b64encode(b"hello").decode()},
            'spec.request: Invalid value: "aGVsbG8=": PEM block type must be CERTIFICATE REQUEST',
        ),
        ({"usages": []}, "spec.usages: Required value"),
        ({"usages": ["client auth", "foo"]}, 'spec.usages[1]: Unsupported value: "foo"'),
        ({"signerName": ""}, "spec.signerName: Required value"),
        ({"signerName": "x"}, "must be a fully qualified domain and path of the form"),
    ],
)
async def test_what_cannot_be_asked_for(api: Api, spec: Any, message: str) -> None:
    refused = await api.post(REQUESTS, asking(**spec))

    assert refused.status == 422
    assert message in refused.body["message"]


async def test_a_certificate_is_one(api: Api, path: str) -> None:
    refused = await api.patch(f"{path}/status", {"status": {"certificate": "aGVsbG8="}})

    assert refused.status == 422
    assert "must contain at least one CERTIFICATE PEM block" in refused.body["message"]
