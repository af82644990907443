"""Somebody or something may do more than it should."""

from __future__ import annotations

from kvestigate_client.gym import actions
from kvestigate_client.gym.task import Task
from kvestigate_client.gym.tasks.manifests import (
    cluster_binding,
    containers,
    deployment,
    named,
)
from kvestigate_client.results import Object
from kvestigate_client.scores import absent, all_of, available, holds

_RBAC = "rbac.authorization.k8s.io/v1"


def _harmless(obj: Object) -> bool:
    return not any(
        (container.get("securityContext") or {}).get("privileged") for container in containers(obj)
    )


def _reads_pods(obj: Object) -> bool:
    return bool(obj.get("rules")) and all(
        rule.get("resources") == ["pods"] and set(rule["verbs"]) <= {"get", "list", "watch"}
        for rule in obj["rules"]
    )


def _binds_reporter(obj: Object) -> bool:
    subjects = [(each["kind"], each["name"]) for each in obj.get("subjects") or ()]
    return ("ServiceAccount", "reporter") in subjects


def _denies(obj: Object) -> bool:
    spec = obj["spec"]
    return (
        not spec.get("podSelector")
        and not spec.get("ingress")
        and ("Ingress" in spec.get("policyTypes", ["Ingress"]))
    )


_ACCOUNT = named("v1", "ServiceAccount", "reporter", "default")
_ROLE = named(_RBAC, "Role", "reporter", "default") | {
    "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
}
_BINDING = named(_RBAC, "RoleBinding", "reporter", "default") | {
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reporter"},
    "subjects": [{"kind": "ServiceAccount", "name": "reporter", "namespace": "default"}],
}
_POLICY = named("networking.k8s.io/v1", "NetworkPolicy", "default-deny", "default") | {
    "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}
}

TASKS = (
    Task(
        "secure-privileges",
        "security",
        "The containers of the Deployment web in the namespace default are privileged without "
        "need. Take that away, and keep the Deployment running.",
        [deployment("web", container={"securityContext": {"privileged": True}})],
        all_of(holds("deployments", "web", "default", _harmless), available("deployments", "web")),
        [
            actions.apply(deployment("web", container={"securityContext": {"privileged": False}})),
            actions.WAIT,
        ],
    ),
    Task(
        "secure-account",
        "security",
        "The ClusterRoleBinding reporter makes the service account reporter an administrator of "
        "everything. It only has to read pods in the namespace default: replace that binding by a "
        "Role and a RoleBinding called reporter.",
        [_ACCOUNT, cluster_binding("reporter", "cluster-admin", "reporter")],
        all_of(
            absent("clusterrolebindings", "reporter"),
            holds("roles", "reporter", "default", _reads_pods),
            holds("rolebindings", "reporter", "default", _binds_reporter),
        ),
        [
            actions.apply(_ROLE),
            actions.apply(_BINDING),
            actions.delete(named(_RBAC, "ClusterRoleBinding", "reporter")),
        ],
    ),
    Task(
        "secure-network",
        "security",
        "Everybody reaches every pod in the namespace default. Let nobody in by default, with a "
        "NetworkPolicy called default-deny.",
        [deployment("web")],
        holds("networkpolicies", "default-deny", "default", _denies),
        [actions.apply(_POLICY)],
    ),
)
