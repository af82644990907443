"""The audit log."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.access.authn.union import Credentials
from kvestigate.cluster.plane.access.authz.rbac import Rbac
from kvestigate.cluster.plane.front.audit_log import AuditLog
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.errors import UsageError
from tests.cluster.plane.conftest import JANE, USERS, Api

SECRETS = "/api/v1/namespaces/default/secrets"


@pytest.fixture
async def audited(issuer: TokenIssuer, tmp_path: Path) -> AsyncIterator[Api]:
    async with Store(MemoryBackend()) as store:
        with closing(AuditLog(tmp_path / "audit")) as log:
            credentials = Credentials(USERS, issuer)
            server = ApiServer(store, credentials, Rbac(), random=Random(1), audit=log)
            yield Api(server)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_every_request_is_a_line(audited: Api, tmp_path: Path) -> None:
    await audited.get("/apis/apps/v1/namespaces/default/deployments/d/scale?a=b", user_agent="me/1")

    (event,) = lines(tmp_path / "audit")
    assert len(event.pop("auditID")) == 36
    assert event.pop("requestReceivedTimestamp") <= event.pop("stageTimestamp")
    assert event == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": "/apis/apps/v1/namespaces/default/deployments/d/scale?a=b",
        "verb": "get",
        "user": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "userAgent": "me/1",
        "objectRef": {
            "resource": "deployments",
            "namespace": "default",
            "name": "d",
            "apiGroup": "apps",
            "apiVersion": "v1",
            "subresource": "scale",
        },
        "responseStatus": {
            "metadata": {},
            "status": "Failure",
            "message": 'deployments.apps "d" not found',
            "reason": "NotFound",
            "code": 404,
        },
        "annotations": {"authorization.k8s.io/decision": "allow"},
    }


async def test_the_refused_are_noted_too(audited: Api, tmp_path: Path) -> None:
    await audited.get(SECRETS, authorization="Bearer nonsense")
    await audited.get(SECRETS, **JANE)
    await audited.get(SECRETS, impersonate_user="bob")
    await audited.get("/clusters/A_/control-plane/api")

    stranger, jane, acting, lost = lines(tmp_path / "audit")
    assert (stranger["user"], stranger["responseStatus"]["code"]) == ({}, 401)
    assert "nonsense" not in json.dumps(stranger)
    assert (jane["user"]["username"], jane["responseStatus"]["code"]) == ("jane", 403)
    assert jane["annotations"] == {"authorization.k8s.io/decision": "forbid"}
    assert acting["user"]["username"] == "admin"
    assert acting["impersonatedUser"]["username"] == "bob"
    assert lost["responseStatus"]["code"] == 404


@pytest.mark.parametrize(
    ("obj", "status"),
    [
        ({"metadata": {"name": "s"}, "stringData": {"key": "hunter2"}}, 201),
        ({"metadata": {"name": "hunter2 hunter2"}}, 422),
        (b'{"metadata": hunter2', 400),
    ],
)
async def test_secrets_stay_secret(audited: Api, tmp_path: Path, obj: Any, status: int) -> None:
    assert (await audited.post(SECRETS, obj)).status == status

    (event,) = lines(tmp_path / "audit")
    assert event["responseStatus"]["code"] == status
    assert "hunter2" not in json.dumps(event)


async def test_a_full_file_makes_way(tmp_path: Path, issuer: TokenIssuer) -> None:
    path = tmp_path / "small"
    async with Store(MemoryBackend()) as store:
        with closing(AuditLog(path, largest=1000, kept=2)) as log:
            server = ApiServer(store, Credentials(USERS, issuer), Rbac(), audit=log)
            for n in range(12):
                await Api(server).get(f"/version?n={n}")

    files = ["small", "small.1", "small.2"]
    assert names(tmp_path) == files
    order = [each["requestURI"] for name in reversed(files) for each in lines(tmp_path / name)]
    assert order == [f"/version?n={n}" for n in range(12 - len(order), 12)]
    assert all((tmp_path / name).stat().st_size <= 1000 for name in files)
    assert path.stat().st_mode & 0o077 == 0


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--audit-log: .* cannot be written"):
        AuditLog(tmp_path / "none" / "audit")


async def test_what_policies_want_noted_is_noted(audited: Api, tmp_path: Path) -> None:
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["configmaps"]}]},
        "matchConditions": [{"name": "mine", "expression": "object.metadata.name != 'skipped'"}],
        "validations": [{"expression": "true"}, {"expression": "false", "message": "no"}],
        "auditAnnotations": [
            {"key": "name", "valueExpression": "'made ' + object.metadata.name"},
            {"key": "nothing", "valueExpression": "null"},
        ],
    }
    policy = {"metadata": {"name": "p"}, "spec": spec}
    bound = {"policyName": "p", "validationActions": ["Audit"]}
    await audited.post(f"{group}/validatingadmissionpolicies", policy)
    binding = {"metadata": {"name": "b"}, "spec": bound}
    await audited.post(f"{group}/validatingadmissionpolicybindings", binding)
    for name in ("x", "skipped"):
        made = await audited.post(
            "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}}
        )
        assert made.status == 201
    *_, noted, skipped = lines(tmp_path / "audit")
    failure = noted["annotations"].pop("validation.policy.admission.k8s.io/validation_failure")
    assert json.loads(failure) == [
        {
            "message": "no",
            "policy": "p",
            "binding": "b",
            "expressionIndex": 1,
            "validationActions": ["Audit"],
        }
    ]
    decision = {"authorization.k8s.io/decision": "allow"}
    assert noted["annotations"] == {**decision, "p/name": "made x"}
    assert skipped["annotations"] == decision


async def test_pod_security_violations_are_noted(audited: Api, tmp_path: Path) -> None:
    prefix = "pod-security.kubernetes.io"
    labels = {f"{prefix}/audit": "baseline", f"{prefix}/enforce": "privileged"}
    await audited.post("/api/v1/namespaces", {"metadata": {"name": "n", "labels": labels}})
    await audited.post("/api/v1/namespaces/n/serviceaccounts", {"metadata": {"name": "default"}})
    spec = {"hostPID": True, "containers": [{"name": "c", "image": "x"}]}
    made = await audited.post(
        "/api/v1/namespaces/n/pods", {"metadata": {"name": "p"}, "spec": spec}
    )
    assert made.status == 201
    *_, noted = lines(tmp_path / "audit")
    assert noted["annotations"] == {
        "authorization.k8s.io/decision": "allow",
        "pod-security.kubernetes.io/enforce-policy": "privileged:latest",
        "pod-security.kubernetes.io/audit-violations": (
            'would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)'
        ),
    }
