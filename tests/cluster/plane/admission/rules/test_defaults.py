"""What pods, nodes, claims and ingresses get from the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.admission.rules.conftest import NAMESPACE, made, pod, refusal
from tests.cluster.plane.conftest import Api

PODS = f"{NAMESPACE}/pods"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
CLAIMS = f"{NAMESPACE}/persistentvolumeclaims"
NETWORKING = "/apis/networking.k8s.io/v1"


def claim(size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"storage": size}}
    return {
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec},
    }


@pytest.mark.parametrize(
    ("named", "spec"),
    [
        ("", (0, None, "PreemptLowerPriority")),
        ("system-node-critical", (2000001000, "system-node-critical", "PreemptLowerPriority")),
        ("calm", (7, "calm", "Never")),
    ],
)
async def test_a_pod_gets_the_number_of_its_class(
    api: Api, named: str, spec: tuple[Any, ...]
) -> None:
    calm = {"metadata": {"name": "calm"}, "value": 7, "preemptionPolicy": "Never"}
    await made(api, PRIORITIES, calm)
    found = await made(api, PODS, pod(**({"priorityClassName": named} if named else {})))

    fields = ("priority", "priorityClassName", "preemptionPolicy")
    assert tuple(found["spec"].get(field) for field in fields) == spec


async def test_one_class_is_the_default(api: Api) -> None:
    await made(api, PRIORITIES, {"metadata": {"name": "a"}, "value": 5, "globalDefault": True})
    found = await made(api, PODS, pod())
    again = {"metadata": {"name": "b"}, "value": 6, "globalDefault": True}

    assert (found["spec"]["priority"], found["spec"]["priorityClassName"]) == (5, "a")
    assert await refusal(api, PRIORITIES, again) == (
        "PriorityClass a is already marked as default. Only one default can exist"
    )


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        (
            {"priority": 9},
            "the integer value of priority (9) must not be provided in pod spec; priority "
            "admission controller computed 0 from the given PriorityClass name",
        ),
        (
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
            "priority admission controller computed PreemptLowerPriority from the given "
            "PriorityClass name",
        ),
        ({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
        (
            {"overhead": {"cpu": "1m"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
    ],
)
async def test_what_pods_cannot_choose(api: Api, spec: dict[str, Any], why: str) -> None:
    assert await refusal(api, PODS, pod(**spec)) == why


@pytest.mark.parametrize(
    ("given", "keys"),
    [
        ([], ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]),
        ([{"operator": "Exists"}], [None]),
        (
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"],
        ),
        (
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}],
            [
                "node.kubernetes.io/not-ready",
                "node.kubernetes.io/not-ready",
                "node.kubernetes.io/unreachable",
            ],
        ),
    ],
)
async def test_pods_bear_trouble_for_a_while(api: Api, given: Any, keys: list[str]) -> None:
    found = await made(api, PODS, pod(tolerations=given))

    assert [each.get("key") for each in found["spec"]["tolerations"]] == keys


async def test_a_runtime_class_tells_cost_and_place(api: Api) -> None:
    runtime = {
        "metadata": {"name": "vm"},
        "handler": "vm",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"vm": "yes"}},
    }
    await made(api, RUNTIMES, runtime)
    found = await made(api, PODS, pod(runtimeClassName="vm", nodeSelector={"zone": "a"}))

    assert found["spec"]["overhead"] == {"cpu": "250m"}
    assert found["spec"]["nodeSelector"] == {"zone": "a", "vm": "yes"}
    clash = pod("q", runtimeClassName="vm", nodeSelector={"vm": "no"})
    assert await refusal(api, PODS, clash) == (
        "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no"
    )


async def test_a_new_node_takes_no_pods(api: Api) -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    other = {"key": "mine", "effect": "NoExecute"}

    bare = await made(api, "/api/v1/nodes", {"metadata": {"name": "a"}})
    own = await made(
        api, "/api/v1/nodes", {"metadata": {"name": "b"}, "spec": {"taints": [other, taint]}}
    )
    assert bare["spec"]["taints"] == [taint]
    assert own["spec"]["taints"] == [other, taint]


async def test_storage_in_use_is_held(api: Api) -> None:
    found = await made(api, CLAIMS, claim())

    assert found["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


@pytest.mark.parametrize(("spec", "expected"), [({}, "usual"), ({"storageClassName": "x"}, "x")])
async def test_a_claim_gets_the_default_class(api: Api, spec: Any, expected: str) -> None:
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    await made(api, STORAGE, {"metadata": {"name": "other"}, "provisioner": "a/b"})
    marked = {"metadata": {"name": "usual", "annotations": mark}, "provisioner": "a/b"}
    await made(api, STORAGE, marked)

    found = await made(api, CLAIMS, claim(**spec))
    assert found["spec"]["storageClassName"] == expected


async def test_an_ingress_gets_the_default_class(api: Api) -> None:
    mark = {"ingressclass.kubernetes.io/is-default-class": "true"}
    usual = {"metadata": {"name": "usual", "annotations": mark}, "spec": {"controller": "a.b/c"}}
    await made(api, f"{NETWORKING}/ingressclasses", usual)
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    ingress = {"metadata": {"name": "i"}, "spec": {"defaultBackend": backend}}

    found = await made(api, f"{NETWORKING}/namespaces/default/ingresses", ingress)
    assert found["spec"]["ingressClassName"] == "usual"


@pytest.mark.parametrize(("expands", "status"), [(True, 200), (False, 403)])
async def test_a_claim_grows_where_its_class_lets_it(api: Api, expands: bool, status: int) -> None:
    storage = {"metadata": {"name": "s"}, "provisioner": "a/b", "allowVolumeExpansion": expands}
    await made(api, STORAGE, storage)
    await made(api, CLAIMS, claim(storageClassName="s", volumeName="v"))
    await api.patch(f"{CLAIMS}/c/status", {"status": {"phase": "Bound"}})
    change = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}

    assert (await api.patch(f"{CLAIMS}/c", change)).status == status
