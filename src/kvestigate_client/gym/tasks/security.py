"""Somebody or something may do more than it should."""

from __future__ import annotations

from kvestigate_client.guards import STANDARD, only, same, untouched
from kvestigate_client.gym import actions
from kvestigate_client.gym.task import Task
from kvestigate_client.gym.tasks.manifests import cluster_binding, deployment, named
from kvestigate_client.gym.tasks.reading import CONTAINER, containers
from kvestigate_client.results import Object, Snapshot
from kvestigate_client.scores import absent, all_of, available, holds

_RBAC = "rbac.authorization.k8s.io/v1"
_READING = {"get", "list", "watch"}


def _harmless(obj: Object) -> bool:
    contexts = [container.get("securityContext") or {} for container in containers(obj)]
    return not any(
        each.get("privileged") or (each.get("capabilities") or {}).get("add") for each in contexts
    )


def _reads_pods(obj: Object) -> bool:
    rules = obj.get("rules") or ()
    verbs = {verb for rule in rules for verb in rule["verbs"]}
    return {"get", "list"} <= verbs <= _READING and all(
        (rule.get("apiGroups"), rule.get("resources")) == ([""], ["pods"])
        and not rule.get("resourceNames")
        for rule in rules
    )


def _binds_reporter(obj: Object) -> bool:
    role = (obj["roleRef"]["kind"], obj["roleRef"]["name"])
    subjects = [
        (each["kind"], each["name"], each.get("namespace")) for each in obj.get("subjects") or ()
    ]
    return role == ("Role", "reporter") and subjects == [("ServiceAccount", "reporter", "default")]


def _denies(obj: Object) -> bool:
    spec = obj["spec"]
    types = spec.get("policyTypes", ["Ingress"])
    return (
        not spec.get("podSelector")
        and not spec.get("ingress")
        and "Ingress" in types
        and ("Egress" not in types or spec.get("egress") == [{}])  # nobody asked for that
    )


def _admits_nobody(snapshot: Snapshot) -> float:
    """1 when no policy takes back what another denies."""
    policies = snapshot.items("networkpolicies", "default")
    return float(not any(each["spec"].get("ingress") for each in policies))


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
        guards=(*STANDARD, only("deployments", "web", f"{CONTAINER}.securityContext")),
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
        guards=(
            *STANDARD,
            same("serviceaccounts", "reporter"),
            untouched("clusterroles"),
            untouched("clusterrolebindings", "roles", "rolebindings", but=["reporter"]),
        ),
    ),
    Task(
        "secure-network",
        "security",
        "Everybody reaches every pod in the namespace default. Let nobody in by default, with a "
        "NetworkPolicy called default-deny.",
        [deployment("web")],
        all_of(holds("networkpolicies", "default-deny", "default", _denies), _admits_nobody),
        [actions.apply(_POLICY)],
        guards=(*STANDARD, only("deployments", "web")),
    ),
)
