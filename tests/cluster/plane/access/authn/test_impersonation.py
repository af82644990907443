"""Acting as somebody else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import JANE, Answer, Api

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def whoami(api: Api, **headers: str) -> dict[str, Any]:
    answer = await api.post(WHO, {}, **headers)
    assert answer.status == 201, answer.body
    found: dict[str, Any] = answer.body["status"]["userInfo"]
    return found


async def allow(api: Api, *rules: dict[str, Any]) -> None:
    """Give rules to jane."""
    role = {"metadata": {"name": "given"}, "rules": list(rules)}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "given"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}
    binding = {"metadata": {"name": "given"}, "roleRef": reference, "subjects": [subject]}
    assert (await api.post(f"{RBAC}/clusterroles", role)).status == 201
    assert (await api.post(f"{RBAC}/clusterrolebindings", binding)).status == 201


def rule(group: str, resource: str, verb: str, *names: str) -> dict[str, Any]:
    found: dict[str, Any] = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
    return {**found, "resourceNames": list(names)} if names else found


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        (
            {"impersonate_user": "bob"},
            {"username": "bob", "groups": ["system:authenticated"]},
        ),
        (
            {"impersonate_user": "bob", "impersonate_group": "dev", "impersonate_uid": "9"},
            {"username": "bob", "uid": "9", "groups": ["dev", "system:authenticated"]},
        ),
        (
            {"impersonate_user": "bob", "impersonate_extra_example.com%2fTeam": "a"},
            {
                "username": "bob",
                "groups": ["system:authenticated"],
                "extra": {"example.com/team": ["a"]},
            },
        ),
        (
            {"impersonate_user": "system:serviceaccount:ns:sa"},
            {
                "username": "system:serviceaccount:ns:sa",
                "groups": [
                    "system:serviceaccounts",
                    "system:serviceaccounts:ns",
                    "system:authenticated",
                ],
            },
        ),
        (
            {"impersonate_user": "system:node:n1"},
            {"username": "system:node:n1", "groups": ["system:nodes", "system:authenticated"]},
        ),
        (
            {"impersonate_user": "bob", "impersonate_group": "system:masters"},
            {"username": "bob", "groups": ["system:masters", "system:authenticated"]},
        ),
    ],
)
async def test_an_administrator_may_be_anybody(
    guarded: Api, headers: dict[str, str], user: dict[str, Any]
) -> None:
    assert await whoami(guarded, **headers) == user


async def test_what_is_done_is_judged_as_the_other_user(guarded: Api) -> None:
    refused = await guarded.get("/api/v1/nodes", impersonate_user="bob")

    assert refused.status == 403
    assert 'User "bob" cannot list resource "nodes"' in refused.body["message"]


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (
            {"impersonate_user": "bob"},
            'pods is forbidden: User "jane" cannot impersonate-on:user-info:list resource "pods" '
            'in API group "" in the namespace "default"',
        ),
        (
            {"impersonate_user": "system:serviceaccount:a:b", "impersonate_group": "x"},
            'serviceaccounts "b" is forbidden: User "jane" cannot impersonate resource '
            '"serviceaccounts" in API group "" in the namespace "a"',
        ),
        (
            {"impersonate_user": "system:node:a", "impersonate_group": "x"},
            'users "system:node:a" is forbidden: User "jane" cannot impersonate resource "users" '
            'in API group "" at the cluster scope',
        ),
        (
            {"impersonate_user": "bob", "impersonate_group": "system:masters"},
            'users "bob" is forbidden: User "jane" cannot impersonate resource "users" in API '
            'group "" at the cluster scope',
        ),
    ],
)
async def test_others_may_be_nobody_else(
    guarded: Api, headers: dict[str, str], message: str
) -> None:
    refused = await guarded.get("/api/v1/namespaces/default/pods", **JANE, **headers)

    assert (refused.status, refused.body["message"]) == (403, message)


async def test_the_plain_verb_covers_one_part_at_a_time(guarded: Api) -> None:
    await allow(guarded, rule("", "users", "impersonate", "bob"))

    assert (await whoami(guarded, **JANE, impersonate_user="bob"))["username"] == "bob"
    for more in ({"impersonate_group": "dev"}, {"impersonate_uid": "1"}):
        refused = await guarded.post(WHO, {}, **JANE, impersonate_user="bob", **more)
        assert refused.status == 403
    assert (await guarded.post(WHO, {}, **JANE, impersonate_user="eve")).status == 403


async def test_a_constrained_impersonation_is_for_one_thing(guarded: Api) -> None:
    await allow(
        guarded,
        rule("authentication.k8s.io", "users", "impersonate:user-info", "bob"),
        rule("", "pods", "impersonate-on:user-info:list"),
    )

    async def ask(path: str) -> Answer:
        return await guarded.get(path, **JANE, impersonate_user="bob")

    pods = await ask("/api/v1/namespaces/default/pods")
    assert 'User "bob" cannot list resource "pods"' in pods.body["message"]
    nodes = await ask("/api/v1/nodes")
    assert 'User "jane" cannot impersonate-on:user-info:list' in nodes.body["message"]


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        (
            {"impersonate_group": "g"},
            'Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)',
        ),
        (
            {"impersonate_extra_a": "g"},
            'Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"g"}}',
        ),
    ],
)
async def test_a_group_alone_is_nobody(guarded: Api, headers: dict[str, str], shown: str) -> None:
    refused = await guarded.get("/api/v1/nodes", **headers)

    assert refused.status == 400
    assert refused.body["message"] == (
        f"requested &user.DefaultInfo{{{shown}}} without impersonating a user name"
    )
