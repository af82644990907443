"""Questions about users and permissions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import JANE, Api

AUTHORIZATION = "/apis/authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
SELF = f"{AUTHORIZATION}/selfsubjectaccessreviews"
LOCAL = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"
PODS = {"verb": "list", "resource": "pods", "namespace": "default"}
URL = {"verb": "get", "path": "/metrics"}
EITHER = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
SOMEBODY = "at least one of user or group must be specified"


async def test_who_am_i(guarded: Api) -> None:
    answer = await guarded.post(f"{AUTHENTICATION}/selfsubjectreviews", {}, **JANE)

    user = {"username": "jane", "uid": "7", "groups": ["dev", "system:authenticated"]}
    assert (answer.status, answer.body["status"]) == (201, {"userInfo": user})


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"resourceAttributes": PODS}, False),
        ({"nonResourceAttributes": URL}, False),
        ({"nonResourceAttributes": {"verb": "get", "path": "/version"}}, True),
    ],
)
async def test_may_i(guarded: Api, spec: dict[str, Any], allowed: bool) -> None:
    mine = await guarded.post(SELF, {"spec": spec}, **JANE)
    administrators = await guarded.post(SELF, {"spec": spec})

    assert (mine.status, mine.body["spec"]) == (201, spec)
    assert mine.body["status"]["allowed"] is allowed
    assert administrators.body["status"]["allowed"] is True


@pytest.mark.parametrize(
    ("who", "allowed"),
    [
        ({"user": "jane"}, False),
        ({"groups": ["system:masters"]}, True),
        ({"user": "system:kube-scheduler"}, True),
    ],
)
async def test_may_they(guarded: Api, who: dict[str, Any], allowed: bool) -> None:
    for path in (f"{AUTHORIZATION}/subjectaccessreviews", LOCAL):
        answer = await guarded.post(path, {"spec": {**who, "resourceAttributes": PODS}})
        assert answer.body["status"]["allowed"] is allowed


@pytest.mark.parametrize(
    ("user", "question", "source"),
    [
        (
            "system:kube-scheduler",
            {"verb": "list", "resource": "pods"},
            'ClusterRoleBinding "system:kube-scheduler" of ClusterRole "system:kube-scheduler" to '
            'User "system:kube-scheduler"',
        ),
        (
            "system:serviceaccount:kube-system:kube-scheduler",
            {
                "verb": "create",
                "group": "coordination.k8s.io",
                "resource": "leases",
                "namespace": "kube-system",
            },
            'RoleBinding "system::leader-locking-kube-scheduler/kube-system" of Role '
            '"system::leader-locking-kube-scheduler" to ServiceAccount '
            '"kube-scheduler/kube-system"',
        ),
    ],
)
async def test_the_reason_is_a_binding(
    api: Api, user: str, question: dict[str, str], source: str
) -> None:
    spec = {"user": user, "resourceAttributes": question}
    answer = await api.post(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": spec})

    status = {"allowed": True, "reason": f"RBAC: allowed by {source}"}
    assert answer.body["status"] == status


@pytest.mark.parametrize(
    ("path", "spec", "message"),
    [
        (SELF, {}, f"spec.resourceAttributes: Invalid value: null: {EITHER}"),
        (
            SELF,
            {"resourceAttributes": PODS, "nonResourceAttributes": URL},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/metrics","Verb":"get"}: cannot '
            "be specified in combination with resourceAttributes",
        ),
        (
            f"{AUTHORIZATION}/subjectaccessreviews",
            {},
            f"[spec.resourceAttributes: Invalid value: null: {EITHER}, "
            f'spec.user: Invalid value: "": {SOMEBODY}]',
        ),
        (
            LOCAL,
            {"user": "a", "resourceAttributes": {**PODS, "namespace": "other"}},
            'spec.resourceAttributes.namespace: Invalid value: "other": must match '
            "metadata.namespace",
        ),
        (
            LOCAL,
            {"user": "a", "nonResourceAttributes": URL},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/metrics","Verb":"get"}: '
            "disallowed on this kind of request",
        ),
    ],
)
async def test_what_cannot_be_asked(
    api: Api, path: str, spec: dict[str, Any], message: str
) -> None:
    answer = await api.post(path, {"spec": spec})

    assert answer.status == 422
    assert answer.body["message"] == f'.authorization.k8s.io "" is invalid: {message}'


async def test_what_may_i_do(guarded: Api) -> None:
    path = f"{AUTHORIZATION}/selfsubjectrulesreviews"
    mine = await guarded.post(path, {"spec": {"namespace": "default"}}, **JANE)
    administrators = await guarded.post(path, {"spec": {"namespace": "default"}})

    reviews = [rule for rule in mine.body["status"]["resourceRules"] if "create" in rule["verbs"]]
    assert reviews
    urls = [rule["nonResourceURLs"] for rule in mine.body["status"]["nonResourceRules"]]
    assert any("/version" in each for each in urls)
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    assert everything in administrators.body["status"]["resourceRules"]
    assert (await guarded.post(path, {"spec": {}})).status == 400


async def test_whose_token_is_this(guarded: Api) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    made = await guarded.post(path, {"spec": {"audiences": ["vault", "other"]}})
    token = made.body["status"]["token"]

    async def review(**spec: Any) -> Any:
        answer = await guarded.post(f"{AUTHENTICATION}/tokenreviews", {"spec": spec})
        return answer.body["status"]

    known = await review(token=token, audiences=["vault", "third"])
    assert known["authenticated"] is True
    assert known["audiences"] == ["vault"]
    assert known["user"]["username"] == "system:serviceaccount:default:default"
    handed_out = await review(token="jane")
    assert handed_out["user"] == {
        "username": "jane",
        "uid": "7",
        "groups": ["dev", "system:authenticated"],
    }
    for spec in ({"token": token}, {"token": token, "audiences": ["third"]}, {"token": "x"}):
        assert "authenticated" not in await review(**spec)
    nothing = await guarded.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {}})
    assert nothing.status == 400
