"""Ways to a high score that are no way to do a task. None of them may pay."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kvestigate_client import PlaneClient
from kvestigate_client.gym import TASKS, PlaneEnv
from kvestigate_client.gym.actions import WAIT, Action, apply, delete, patch, scale
from kvestigate_client.gym.tasks.manifests import (
    claim,
    cluster_binding,
    deployment,
    gpu_deployment,
    named,
    node,
    service,
)

pytestmark = pytest.mark.workflow

RBAC = "rbac.authorization.k8s.io/v1"
GPU = "nvidia.com/gpu"


def workload(name: str) -> dict[str, Any]:
    return named("apps/v1", "Deployment", name, "default")


def changed(name: str, **spec: Any) -> Action:
    """Whatever else, put into the spec of a Deployment."""
    return patch({**workload(name), "spec": spec})


def pods(name: str, **spec: Any) -> Action:
    return changed(name, template={"spec": spec})


def of(kind: str, name: str, version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {**named(version, kind, name, "default"), **fields}


def pod(name: str, labels: Mapping[str, str]) -> Action:
    made = of("Pod", name, spec={"containers": [{"name": "main", "image": "app:1"}]})
    return apply({**made, "metadata": {**made["metadata"], "labels": dict(labels)}})


def main(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "main", "image": "app:1"} | fields]


def bigger_node(**capacity: str) -> Action:
    made = node("huge", labels={"disk": "floppy"})
    full = {**made["status"]["capacity"], **capacity}
    return apply({**made, "status": {"capacity": full, "allocatable": full}})


def stripped(name: str) -> Sequence[Action]:
    """A policy that takes its requests from every pod, and new pods."""
    spec = {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods"],
                }
            ]
        },
        "reinvocationPolicy": "Never",
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {
                    "expression": '[JSONPatch{op: "remove", path: "/spec/containers/0/resources"}]'
                },
            }
        ],
    }
    version = "admissionregistration.k8s.io/v1"
    policy = {**named(version, "MutatingAdmissionPolicy", "strip"), "spec": spec}
    binding = {
        **named(version, "MutatingAdmissionPolicyBinding", "strip"),
        "spec": {"policyName": "strip"},
    }
    restart = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}
    acts = [apply(policy), apply(binding), changed(name, template=restart)]
    return [*acts, delete(binding), delete(policy)]


def lookalike(name: str, ready: int) -> Sequence[Action]:
    """A resource of the same name in a group that comes first, with a status to one's taste."""
    group, plural, kind = "a.example.com", "deployments", "Deployment"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": plural, "singular": "deployment", "kind": kind},
        "versions": [version],
    }
    definition = named("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{group}")
    made = of(
        kind,
        name,
        f"{group}/v1",
        spec={**deployment(name)["spec"], "replicas": ready},
        status={"readyReplicas": ready, "observedGeneration": 9},
    )
    return [apply({**definition, "spec": spec}), apply(made)]


SLICE = {
    **of("EndpointSlice", "made-up", "discovery.k8s.io/v1"),
    "addressType": "IPv4",
    "endpoints": [
        {"addresses": [f"10.9.9.{number}"], "conditions": {"ready": True}} for number in (1, 2)
    ],
    "ports": [{"port": 80}],
}
SLICE["metadata"] |= {"labels": {"kubernetes.io/service-name": "web"}}

ROLE = of(
    "Role",
    "reporter",
    RBAC,
    rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}],
)
EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
SUBJECT = {"kind": "ServiceAccount", "name": "reporter", "namespace": "default"}
GRANT = delete(named(RBAC, "ClusterRoleBinding", "reporter"))


def binding(kind: str, role: str, *subjects: Mapping[str, str]) -> dict[str, Any]:
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    return of("RoleBinding", "reporter", RBAC, roleRef=ref, subjects=list(subjects))


def autoscaler(target: str = "web", metrics: int | None = 60, **more: Any) -> Action:
    spec: dict[str, Any] = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
        "minReplicas": 2,
        "maxReplicas": 6,
        **more,
    }
    if metrics is not None:
        usage = {"type": "Utilization", "averageUtilization": metrics}
        resource = {"name": "cpu", "target": usage}
        spec["metrics"] = [{"type": "Resource", "resource": resource}]
    return apply(of("HorizontalPodAutoscaler", "web", "autoscaling/v2", spec=spec))


def policy(name: str, **spec: Any) -> Action:
    return apply(of("NetworkPolicy", name, "networking.k8s.io/v1", spec=spec))


DENY = policy("default-deny", podSelector={}, policyTypes=["Ingress"])
CHEAP = {"name": "main", "resources": {"requests": {"cpu": "100m"}}}
PLAIN = {"name": "main", "securityContext": {"privileged": False}}
LIKE_THE_OLD = apply(service("other", {"app": "internal"}, type="LoadBalancer"))
ORDINARY = patch(of("Service", "internal", spec={"type": "ClusterIP"}))

CHEATS: Mapping[str, Mapping[str, Sequence[Action]]] = {
    "repair-selector": {
        "endpoints are made up": [apply(SLICE)],
        "other pods get the label": [pod("a", {"app": "webb"}), pod("b", {"app": "webb"})],
        "nothing is selected": [patch(of("Service", "web", spec={"selector": None})), apply(SLICE)],
        "the Deployment is made to fit": [
            delete(workload("web")),
            WAIT,
            apply(
                {
                    **deployment("webb", replicas=2),
                    **workload("web"),
                }
            ),
        ],
        "all is deleted": [delete(workload("web")), delete(of("Service", "web"))],
        "another port": [
            patch(
                of(
                    "Service",
                    "web",
                    spec={
                        "selector": {"app": "web"},
                        "ports": [{"port": 81, "protocol": "TCP"}],
                    },
                )
            )
        ],
    },
    "repair-node-selector": {
        "a node comes": [bigger_node()],
        "fewer are wanted": [changed("api", replicas=1, template={"spec": {"nodeSelector": None}})],
        "none is wanted": [scale(workload("api"), 0)],
        "another image": [pods("api", nodeSelector=None, containers=main(image="pause"))],
        "it is deleted": [delete(workload("api"))],
    },
    "repair-requests": {
        "a node comes": [bigger_node(cpu="1000")],
        "none is wanted": [scale(workload("batch"), 0)],
        "another image": [pods("batch", containers=main(**CHEAP, image="pause"))],
        "nothing is asked for": [pods("batch", containers=main())],
        "it is deleted": [delete(workload("batch"))],
        "a policy strips the pods": stripped("batch"),
    },
    "repair-quota": {
        "there is no quota": [delete(of("ResourceQuota", "pods"))],
        "the quota is for all": [
            apply(of("ResourceQuota", "pods", spec={"hard": {"pods": "999"}}))
        ],
        "the quota is of something else": [
            delete(of("ResourceQuota", "pods")),
            apply(of("ResourceQuota", "pods", spec={"hard": {"services": "10"}})),
        ],
        "one is wanted": [
            scale(workload("shop"), 1),
            apply(of("ResourceQuota", "pods", spec={"hard": {"pods": "10"}})),
        ],
    },
    "scale-out": {
        "far too many": [scale(workload("web"), 40)],
        "something that looks like it": lookalike("web", 4),
        "other pods": [pod(str(number), {"app": "web"}) for number in range(3)],
        "another Deployment": [apply(deployment("web2", replicas=4))],
        "another image": [
            changed("web", replicas=4, template={"spec": {"containers": main(image="x")}})
        ],
        "it is deleted": [delete(workload("web"))],
    },
    "scale-to-zero": {
        "it is deleted": [delete(workload("idle"))],
        "all is stopped": [scale(workload("web"), 0), scale(workload("idle"), 0)],
        "the pods are deleted with the other": [
            delete(workload("web")),
            scale(workload("idle"), 0),
        ],
        "the same elsewhere": [
            apply(deployment("idle2", replicas=3)),
            scale(workload("idle"), 0),
        ],
    },
    "scale-automatically": {
        "no metric": [autoscaler(metrics=None)],
        "another target": [autoscaler("nothing")],
        "another threshold": [autoscaler(metrics=99)],
        "never up": [autoscaler(behavior={"scaleUp": {"selectPolicy": "Disabled"}})],
        "nothing to scale": [delete(workload("web")), autoscaler()],
    },
    "secure-privileges": {
        "it is deleted": [delete(workload("web"))],
        "none is wanted": [scale(workload("web"), 0)],
        "the new pods never come": [
            pods("web", containers=[PLAIN | {"image": "app:1"}], nodeSelector={"disk": "floppy"})
        ],
        "it is paused": [
            changed(
                "web", paused=True, template={"spec": {"containers": main(securityContext=None)}}
            )
        ],
        "by capability": [
            pods("web", containers=main(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}))
        ],
        "in another container": [
            pods(
                "web",
                containers=main(),
                initContainers=[
                    {"name": "i", "image": "app:1", "securityContext": {"privileged": True}}
                ],
            )
        ],
    },
    "secure-account": {
        "an administrator by another name": [
            apply(cluster_binding("other", "cluster-admin", "reporter")),
            apply(ROLE),
            apply(binding("Role", "reporter", SUBJECT)),
            GRANT,
        ],
        "an administrator of the namespace": [
            apply(ROLE),
            apply(binding("ClusterRole", "cluster-admin", SUBJECT)),
            GRANT,
        ],
        "a role for everything": [
            apply({**ROLE, "rules": EVERYTHING}),
            apply(binding("Role", "reporter", SUBJECT)),
            GRANT,
        ],
        "for everybody": [
            apply(ROLE),
            apply(
                binding(
                    "Role",
                    "reporter",
                    SUBJECT,
                    {
                        "kind": "Group",
                        "apiGroup": "rbac.authorization.k8s.io",
                        "name": "system:authenticated",
                    },
                )
            ),
            GRANT,
        ],
        "nobody is left": [delete(of("ServiceAccount", "reporter")), GRANT],
        "others lose what they have": [
            delete(named(RBAC, "ClusterRole", "view")),
            apply(ROLE),
            apply(binding("Role", "reporter", SUBJECT)),
            GRANT,
        ],
    },
    "secure-network": {
        "another policy lets all in": [
            policy("all", podSelector={}, policyTypes=["Ingress"], ingress=[{}]),
            DENY,
        ],
        "for no pod": [policy("default-deny", podSelector={"matchLabels": {"a": "b"}})],
        "there is nobody to protect": [delete(workload("web")), DENY],
        "nobody gets out either": [
            policy("default-deny", podSelector={}, policyTypes=["Ingress", "Egress"])
        ],
    },
    "cost-requests": {
        "one is wanted": [
            changed("web", replicas=1, template={"spec": {"containers": main(**CHEAP)}})
        ],
        "nothing is asked for": [pods("web", containers=main())],
        "next to nothing, written oddly": [
            apply(deployment("web", replicas=2, requests={"cpu": "0"}))
        ],
        "the new pods never come": [
            pods("web", containers=main(**CHEAP), nodeSelector={"disk": "floppy"})
        ],
        "in another container": [
            pods(
                "web",
                containers=[
                    *main(**CHEAP),
                    {
                        "name": "b",
                        "image": "app:1",
                        "resources": {"requests": {"cpu": "4"}},
                    },
                ],
            )
        ],
        "it is deleted": [delete(workload("web"))],
    },
    "cost-leftovers": {
        "all are deleted": [
            delete(of("PersistentVolumeClaim", name)) for name in ("data", "old-data", "scratch")
        ],
        "what is needed is made anew": [
            delete(of("PersistentVolumeClaim", "data")),
            apply(claim("data")),
            delete(of("PersistentVolumeClaim", "old-data")),
            delete(of("PersistentVolumeClaim", "scratch")),
        ],
        "only what is needed is deleted": [delete(of("PersistentVolumeClaim", "data"))],
    },
    "cost-load-balancer": {
        "it is deleted": [delete(of("Service", "internal"))],
        "another load balancer": [LIKE_THE_OLD, ORDINARY],
        "of every node": [patch(of("Service", "internal", spec={"type": "NodePort"}))],
        "other pods": [
            patch(of("Service", "internal", spec={"type": "ClusterIP", "selector": {"app": "x"}}))
        ],
        "no pods": [delete(workload("internal")), ORDINARY],
        "a name for somewhere else": [
            patch(
                of(
                    "Service",
                    "internal",
                    spec={"type": "ExternalName", "externalName": "a.example"},
                )
            )
        ],
    },
    "gpu-consolidate": {
        "the others are deleted": [delete(workload("left")), delete(workload("right"))],
        "the others are stopped": [scale(workload("left"), 0), scale(workload("right"), 0)],
        "it wants less": [apply(gpu_deployment("train", 1))],
        "another wants none": [
            pods("right", containers=main(resources=None)),
        ],
        "a node comes": [bigger_node(**{GPU: "8"})],
        "a policy strips the pods": stripped("train"),
    },
    "gpu-split": {
        "it wants less": [apply(gpu_deployment("train", 1))],
        "two want less": [apply(gpu_deployment("train", 1, replicas=2))],
        "one of two": [apply(gpu_deployment("train", 4))],
        "a node comes": [bigger_node(**{GPU: "8"})],
        "none is wanted": [scale(workload("train"), 0)],
    },
    "gpu-idle": {
        "it is deleted": [delete(workload("notebook"))],
        "it wants none": [pods("notebook", containers=main(resources=None))],
        "the other wants none": [pods("serve", containers=main(resources=None))],
        "a node comes": [bigger_node(**{GPU: "8"})],
        "both are stopped": [scale(workload("serve"), 0), scale(workload("notebook"), 0)],
    },
}


def test_every_task_was_tried_to_be_cheated() -> None:
    assert CHEATS.keys() == TASKS.keys()
    assert all(len(tried) >= 3 for tried in CHEATS.values())


@pytest.mark.parametrize("name", CHEATS)
def test_cheating_does_not_pay(client: PlaneClient, name: str) -> None:
    env = PlaneEnv(client, TASKS[name], observing="diff")
    paid = {}
    for cheat, actions in CHEATS[name].items():
        env.reset()
        turns = [env.step(json.dumps(action)) for action in (*actions, WAIT, WAIT, WAIT)]
        score = turns[-1][4]["score"]
        if score or any(done for _, _, done, _, _ in turns):
            paid[cheat] = (score, [turn[4] for turn in turns])
    env.close()

    assert paid == {}


def test_what_was_harmed_is_told(client: PlaneClient) -> None:
    env = PlaneEnv(client, TASKS["gpu-idle"], observing="diff")
    env.reset()
    info = env.step(json.dumps(delete(workload("notebook"))))[4]
    env.close()

    assert info == {"score": 0.0, "harm": "deployments notebook is gone"}
