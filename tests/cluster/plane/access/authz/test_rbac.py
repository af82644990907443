"""RBAC over the objects of a plane."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.plane.access.authz import rbac
from kvestigate.cluster.plane.model.request_info import parse
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.plane.tenancy.bootstrap import template
from tests.cluster.plane.conftest import JANE, Api

RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
GROUP = "rbac.authorization.k8s.io"
STATE = template(0.0)
VIEWER = {"kind": "ClusterRole", "name": "view"}


def binding(role: dict[str, str], name: str = "b") -> dict[str, Any]:
    subject = {"apiGroup": GROUP, "kind": "User", "name": "jane"}
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, **role},
        "subjects": [subject],
    }


@pytest.mark.parametrize(
    ("user", "method", "path", "allowed"),
    [
        (User("x", (MASTERS,)), "DELETE", "/api/v1/nodes/n", True),
        (User("x", (AUTHENTICATED,)), "GET", "/apis", True),
        (User("x", (AUTHENTICATED,)), "GET", "/version", True),
        (User("x", (AUTHENTICATED,)), "GET", "/metrics", False),
        (User("x", (AUTHENTICATED,)), "GET", "/api/v1/namespaces", False),
        (User("x", ("system:monitoring",)), "GET", "/metrics", True),
        (User("system:kube-scheduler"), "GET", "/api/v1/nodes", True),
        (User("system:kube-scheduler"), "DELETE", "/api/v1/nodes/n", False),
        (User("x", ("system:unauthenticated",)), "GET", "/healthz", True),
        (User("x", ("system:unauthenticated",)), "GET", "/apis", False),
    ],
)
def test_what_users_may_from_the_start(user: User, method: str, path: str, allowed: bool) -> None:
    assert rbac.allowed(STATE, user, parse(method, path, "")) is allowed


async def test_a_binding_holds_in_its_namespace(guarded: Api) -> None:
    assert (await guarded.get(PODS, **JANE)).status == 403

    await guarded.post(f"{RBAC}/namespaces/default/rolebindings", binding(VIEWER))

    assert (await guarded.get(PODS, **JANE)).status == 200
    assert (await guarded.get("/api/v1/namespaces/kube-system/pods", **JANE)).status == 403
    assert (await guarded.get("/api/v1/pods", **JANE)).status == 403
    assert (await guarded.get("/api/v1/namespaces/default/secrets", **JANE)).status == 403


async def test_a_cluster_binding_holds_everywhere_until_it_is_gone(guarded: Api) -> None:
    await guarded.post(f"{RBAC}/clusterrolebindings", binding(VIEWER))
    assert (await guarded.get("/api/v1/pods", **JANE)).status == 200

    await guarded.delete(f"{RBAC}/clusterrolebindings/b")
    assert (await guarded.get("/api/v1/pods", **JANE)).status == 403


async def test_a_binding_to_a_role_that_comes_later(guarded: Api) -> None:
    roles = f"{RBAC}/namespaces/default/roles"
    role = {"kind": "Role", "name": "late"}
    await guarded.post(f"{RBAC}/namespaces/default/rolebindings", binding(role))
    assert (await guarded.get(PODS, **JANE)).status == 403

    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    await guarded.post(roles, {"metadata": {"name": "late"}, "rules": rules})
    assert (await guarded.get(PODS, **JANE)).status == 200


async def test_a_labelled_role_widens_those_that_aggregate_it(guarded: Api) -> None:
    await guarded.post(f"{RBAC}/namespaces/default/rolebindings", binding(VIEWER))
    gadgets = "/apis/example.com/v1/namespaces/default/gadgets"
    assert (await guarded.get(gadgets, **JANE)).status == 403

    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    rules = [{"apiGroups": ["example.com"], "resources": ["gadgets"], "verbs": ["list"]}]
    role = {"metadata": {"name": "gadgets", "labels": labels}, "rules": rules}
    await guarded.post(f"{RBAC}/clusterroles", role)

    assert (await guarded.get(gadgets, **JANE)).status == 404


async def test_roles_that_aggregate_each_other_end_somewhere(guarded: Api) -> None:
    selector = {"matchLabels": {"a": "b"}}
    for name in ("one", "two"):
        role = {
            "metadata": {"name": name, "labels": {"a": "b"}},
            "aggregationRule": {"clusterRoleSelectors": [selector]},
        }
        assert (await guarded.post(f"{RBAC}/clusterroles", role)).status == 201
    role_ref = {"kind": "ClusterRole", "name": "one"}
    await guarded.post(f"{RBAC}/clusterrolebindings", binding(role_ref))

    assert (await guarded.get(PODS, **JANE)).status == 403


@pytest.mark.parametrize(
    ("path", "message", "details"),
    [
        (
            PODS,
            'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the '
            'namespace "default"',
            {"kind": "pods"},
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments/d/scale",
            'deployments.apps "d" is forbidden: User "jane" cannot get resource '
            '"deployments/scale" in API group "apps" in the namespace "default"',
            {"name": "d", "group": "apps", "kind": "deployments"},
        ),
        (
            "/api/v1/nodes",
            'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the '
            "cluster scope",
            {"kind": "nodes"},
        ),
        ("/metrics", 'forbidden: User "jane" cannot get path "/metrics"', {}),
    ],
)
async def test_a_refusal_says_what_was_missing(
    guarded: Api, path: str, message: str, details: dict[str, str]
) -> None:
    refused = await guarded.get(path, **JANE)

    assert refused.status == 403
    assert refused.body["message"] == message
    assert refused.body["details"] == details


async def test_planes_do_not_share_permissions(guarded: Api) -> None:
    other = Api(guarded.server, "/clusters/other/control-plane")
    await other.post(f"{RBAC}/clusterrolebindings", binding(VIEWER))

    assert (await other.get(PODS, **JANE)).status == 200
    assert (await guarded.get(PODS, **JANE)).status == 403


async def test_who_may_not_do_anything_makes_no_plane(guarded: Api) -> None:
    other = Api(guarded.server, "/clusters/other/control-plane")

    assert (await other.get(PODS, authorization="Bearer nonsense")).status == 401
    assert (await other.get(PODS, **JANE)).status == 403
    assert guarded.server.planes.store.planes() == []
