"""Nobody hands out what they do not have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import JANE, Api

RBAC = "/apis/rbac.authorization.k8s.io/v1"
HERE = f"{RBAC}/namespaces/default"
GROUP = "rbac.authorization.k8s.io"
WHO = 'user "jane" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions'
PLURALS = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"]


def rule(resource: str, *verbs: str, group: str = "", names: Any = None) -> dict[str, Any]:
    found: dict[str, Any] = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    return {**found, "resourceNames": names} if names else found


def role(*rules: dict[str, Any], name: str = "r") -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules)}


def binding(kind: str, name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "jane"}],
    }


@pytest.fixture
async def jane(guarded: Api) -> Api:
    """The server; jane may read config maps and write all of RBAC."""
    writes = {"apiGroups": [GROUP], "resources": PLURALS, "verbs": ["create", "update", "patch"]}
    given = role(writes, rule("configmaps", "get", "list"), name="given")
    await guarded.post(f"{RBAC}/clusterroles", given)
    await guarded.post(f"{RBAC}/clusterrolebindings", binding("ClusterRole", "given"))
    return guarded


async def test_what_one_has_can_be_given(jane: Api) -> None:
    made = await jane.post(f"{HERE}/roles", role(rule("configmaps", "get")), **JANE)
    bound = await jane.post(f"{HERE}/rolebindings", binding("Role", "r"), **JANE)

    assert (made.status, bound.status) == (201, 201)


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        (
            [rule("configmaps", "get", "delete"), rule("pods", "get", "list")],
            '{APIGroups:[""], Resources:["configmaps"], Verbs:["delete"]}\n'
            '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
        ),
        (
            [rule("pods", "get", names=["a", "b"])],
            '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get"]}\n'
            '{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}',
        ),
    ],
)
async def test_what_one_lacks_cannot(jane: Api, rules: list[dict[str, Any]], told: str) -> None:
    refused = await jane.post(f"{HERE}/roles", role(*rules), **JANE)

    assert refused.status == 403
    assert refused.body["message"] == (
        f'roles.{GROUP} "r" is forbidden: {WHO} not currently held:\n{told}'
    )


async def test_nor_by_binding_a_role(jane: Api) -> None:
    refused = await jane.post(
        f"{HERE}/rolebindings", binding("ClusterRole", "cluster-admin"), **JANE
    )
    missing = await jane.post(f"{HERE}/rolebindings", binding("Role", "none"), **JANE)

    assert (refused.status, missing.status) == (403, 404)
    assert refused.body["message"].endswith(
        '\n{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}'
    )


async def test_nor_by_widening_a_role(jane: Api) -> None:
    await jane.post(f"{HERE}/roles", role(rule("configmaps", "get")), **JANE)
    wider = {"rules": [rule("configmaps", "*")]}

    assert (await jane.patch(f"{HERE}/roles/r", wider, **JANE)).status == 403


async def test_nor_by_aggregation(jane: Api) -> None:
    aggregating = {
        "metadata": {"name": "r"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
    }
    refused = await jane.post(f"{RBAC}/clusterroles", aggregating, **JANE)

    assert refused.status == 403
    assert refused.body["message"].endswith(
        "must have cluster-admin privileges to use the aggregationRule"
    )


@pytest.mark.parametrize(
    ("verb", "path", "obj"),
    [
        ("escalate", f"{HERE}/roles", role(rule("pods", "get"))),
        ("bind", f"{HERE}/rolebindings", binding("ClusterRole", "cluster-admin")),
    ],
)
async def test_unless_one_may_do_just_that(
    jane: Api, verb: str, path: str, obj: dict[str, Any]
) -> None:
    assert (await jane.post(path, obj, **JANE)).status == 403
    allowed = {"apiGroups": [GROUP], "resources": ["roles", "clusterroles"], "verbs": [verb]}
    await jane.post(f"{RBAC}/clusterroles", role(allowed, name="more"))
    more = {**binding("ClusterRole", "more"), "metadata": {"name": "more"}}
    await jane.post(f"{RBAC}/clusterrolebindings", more)

    assert (await jane.post(path, obj, **JANE)).status == 201
