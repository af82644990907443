"""What keeps a cluster in order, on a plane: garbage, namespaces, services, nodes, storage."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kvestigate.client.api import Propagation
from kvestigate.cluster.controllers.namespaces.defaults import RootCertificateController
from kvestigate.cluster.controllers.nodes.health import GRACE
from kvestigate.cluster.controllers.nodes.podgc import QUARANTINE
from kvestigate.cluster.controllers.runtime import Manager
from kvestigate.cluster.controllers.storage.volumes import LOCAL_PATH, SELECTED_NODE
from kvestigate.kube import builtins
from tests.bed import Object, Objects, plane
from tests.cluster.controllers.builders import NOW
from tests.cluster.controllers.conftest import Bed, running
from tests.cluster.controllers.objects import deployment, node, replica_set, service
from tests.virtual_clock import VirtualClock

GC = "garbage-collector-controller"


def owned(name: str, owner: Object, *, blocks: bool = True) -> Object:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    }
    return {"metadata": {"name": name, "ownerReferences": [reference]}}


def gone(*names: str) -> Any:
    return lambda found: not any(name in found for name in names)


def has(name: str) -> Any:
    return lambda found: name in found


async def _delete(bed: Bed, kind: str, name: str, policy: Propagation | None = None) -> None:
    await bed.api.delete(builtins.resource(kind), name, namespace=bed.namespace, propagation=policy)


UNKNOWN = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "never", "uid": "no-such-uid"},
}
"""An owner that never existed."""


async def _seen_by_the_collector(bed: Bed) -> None:
    """Wait until the collector has seen all secrets so far: a later one without owner is gone.

    As with kube-controller-manager, a dependent that is created right before a foreground deletion
    holds its owner up only if its watch does not lag behind the owner's.
    """
    await bed.create("secrets", owned("marker", UNKNOWN))
    await bed.until("secrets", gone("marker"))


class TestGarbage:
    @pytest.mark.parametrize("policy", [Propagation.BACKGROUND, Propagation.FOREGROUND])
    async def test_it_cascades(self, bed: Bed, policy: Propagation) -> None:
        async with running(bed, GC):
            root = await bed.create("configmaps", {"metadata": {"name": "root"}})
            middle = await bed.create("secrets", owned("middle", root))
            await bed.create("configmaps", owned("leaf", middle))
            await _delete(bed, "configmaps", "root", policy)
            await bed.until("configmaps", gone("root", "leaf"))
            await bed.until("secrets", gone("middle"))

    async def test_foreground_waits_for_those_that_block(self, bed: Bed) -> None:
        async with running(bed, GC):
            root = await bed.create("configmaps", {"metadata": {"name": "root"}})
            held = owned("held", root)
            held["metadata"]["finalizers"] = ["example.com/wait"]
            await bed.create("secrets", held)
            await _seen_by_the_collector(bed)
            await _delete(bed, "configmaps", "root", Propagation.FOREGROUND)
            await bed.until("secrets", lambda it: it["held"]["metadata"].get("deletionTimestamp"))
            assert "root" in await bed.all("configmaps")
            await bed.patch("secrets", "held", {"metadata": {"finalizers": None}})
            await bed.until("configmaps", gone("root"))

    async def test_orphans_stay(self, bed: Bed) -> None:
        async with running(bed, GC):
            root = await bed.create("configmaps", {"metadata": {"name": "root"}})
            await bed.create("secrets", owned("child", root))
            await _delete(bed, "configmaps", "root", Propagation.ORPHAN)
            await bed.until("configmaps", gone("root"))
            found = await bed.all("secrets")
            assert "ownerReferences" not in found["child"]["metadata"]

    async def test_one_of_two_owners_is_enough(self, bed: Bed) -> None:
        async with running(bed, GC):
            first = await bed.create("configmaps", {"metadata": {"name": "first"}})
            second = await bed.create("configmaps", {"metadata": {"name": "second"}})
            child = owned("child", first)
            child["metadata"]["ownerReferences"] += owned("", second)["metadata"]["ownerReferences"]
            await bed.create("secrets", child)
            await _delete(bed, "configmaps", "first", Propagation.BACKGROUND)
            found = await bed.until(
                "secrets", lambda it: len(it["child"]["metadata"]["ownerReferences"]) == 1
            )
            assert found["child"]["metadata"]["ownerReferences"][0]["name"] == "second"
            await _delete(bed, "configmaps", "second", Propagation.BACKGROUND)
            await bed.until("secrets", gone("child"))

    async def test_what_never_had_its_owner_goes(self, bed: Bed) -> None:
        await bed.create("secrets", owned("child", UNKNOWN))
        async with running(bed, GC):
            await bed.until("secrets", gone("child"))


class TestNamespaces:
    async def test_a_new_one_gets_an_account(self, bed: Bed) -> None:
        async with running(bed, "serviceaccount-controller"):
            shop = f"{bed.namespace}-shop"
            await bed.create("namespaces", {"metadata": {"name": shop}})
            await bed.until("serviceaccounts", has("default"), namespace=shop)
            await bed.api.delete(builtins.resource("serviceaccounts"), "default", namespace=shop)
            await bed.until("serviceaccounts", has("default"), namespace=shop)

    async def test_and_the_certificate_of_the_server(self, bed: Bed) -> None:
        made = partial(RootCertificateController, "PEM")
        async with Manager(bed.api, {"root-ca-certificate-publisher-controller": made}):
            found = await bed.until("configmaps", has("kube-root-ca.crt"))
            assert found["kube-root-ca.crt"]["data"] == {"ca.crt": "PEM"}
            await bed.patch("configmaps", "kube-root-ca.crt", {"data": {"ca.crt": "forged"}})
            await bed.until(
                "configmaps", lambda it: it["kube-root-ca.crt"]["data"]["ca.crt"] == "PEM"
            )

    async def test_a_deleted_one_is_emptied_first(self, bed: Bed) -> None:
        async with running(bed, "namespace-controller", GC):
            shop = f"{bed.namespace}-shop"
            await bed.create("namespaces", {"metadata": {"name": shop}})
            body = {"metadata": {"name": "held", "namespace": shop, "finalizers": ["x.io/wait"]}}
            await bed.create("configmaps", body)
            await bed.api.delete(builtins.resource("namespaces"), shop)

            def waits(found: Objects) -> bool:
                conditions = found[shop]["status"].get("conditions", ())
                return any(
                    each["type"] == "NamespaceFinalizersRemaining" and each["status"] == "True"
                    for each in conditions
                )

            await bed.until("namespaces", waits)
            await Bed(bed.api, shop).patch("configmaps", "held", {"metadata": {"finalizers": None}})
            await bed.until("namespaces", gone(shop))

    async def test_pods_go_before_everything_else(self, bed: Bed) -> None:
        async with running(bed, "namespace-controller", GC):
            shop = f"{bed.namespace}-shop"
            await bed.create("namespaces", {"metadata": {"name": shop}})
            inside = Bed(bed.api, shop)
            held = {"name": "held", "finalizers": ["x.io/wait"]}
            pod = {"containers": [{"name": "main", "image": "none"}]}
            await inside.create("serviceaccounts", {"metadata": {"name": "default"}})
            await inside.create("pods", {"metadata": held, "spec": pod})
            await inside.create("configmaps", {"metadata": {"name": "needed"}})
            await bed.api.delete(builtins.resource("namespaces"), shop)

            found = await bed.until("namespaces", partial(_remains, shop, "pods. has 1 resource"))
            conditions = {each["type"]: each for each in found[shop]["status"]["conditions"]}
            assert conditions["NamespaceDeletionContentFailure"]["status"] == "False"
            assert conditions["NamespaceFinalizersRemaining"]["status"] == "True"
            assert "deletionTimestamp" in (await inside.all("pods"))["held"]["metadata"]
            assert "deletionTimestamp" not in (await inside.all("configmaps"))["needed"]["metadata"]
            await inside.patch("pods", "held", {"metadata": {"finalizers": None}})
            await bed.until("namespaces", gone(shop))


def _remains(namespace: str, content: str, found: Objects) -> bool:
    conditions = found[namespace]["status"].get("conditions", ())
    return any(
        each["type"] == "NamespaceContentRemaining" and content in each["message"]
        for each in conditions
    )


async def test_a_service_finds_its_pods(bed: Bed) -> None:
    names = ("endpoint-controller", "endpointslice-controller", "replicaset-controller")
    async with running(bed, *names):
        await bed.create("services", service())
        await bed.create("replicasets", replica_set(replicas=2))

        def both(found: Objects) -> bool:
            subsets = found.get("web", {}).get("subsets") or [{}]
            return len(subsets[0].get("addresses", ())) == 2

        await bed.until("endpoints", both)
        slices = await bed.until(
            "endpointslices", lambda it: [len(each["endpoints"]) for each in it.values()] == [2]
        )
        (only,) = slices.values()
        assert only["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
        assert only["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
        await _delete(bed, "services", "web")
        await bed.until("endpoints", gone("web"))
        await bed.until("endpointslices", lambda it: not it)


async def test_a_budget_counts_what_its_owners_want(bed: Bed) -> None:
    names = ("disruption-controller", "deployment-controller", "replicaset-controller")
    async with running(bed, *names):
        await bed.create("deployments", deployment())
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        await bed.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": spec})
        found = await bed.until(
            "poddisruptionbudgets",
            lambda it: it["web"].get("status", {}).get("disruptionsAllowed") == 1,
        )
        assert found["web"]["status"]["expectedPods"] == 3
        assert found["web"]["status"]["desiredHealthy"] == 2


async def test_a_quota_follows_what_is_used(bed: Bed) -> None:
    async with running(bed, "resourcequota-controller"):
        hard = {"configmaps": "10", "pods": "5"}
        await bed.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})

        def used(configmaps: str) -> Any:
            return lambda it: (
                it["q"].get("status", {}).get("used", {}).get("configmaps") == configmaps
            )

        await bed.until("resourcequotas", used("0"))
        await bed.create("configmaps", {"metadata": {"name": "a"}})
        await bed.until("resourcequotas", used("1"))
        await _delete(bed, "configmaps", "a")
        await bed.until("resourcequotas", used("0"))


class TestNodes:
    async def test_a_silent_one_loses_its_pods(self) -> None:
        clock = VirtualClock(NOW)
        async with plane(clock) as api:
            bed = Bed(api)
            names = ("node-lifecycle-controller", "taint-eviction-controller")
            await bed.create("nodes", node("n1"))
            ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
            await bed.patch("nodes", "n1", ready, "status")
            await bed.create("pods", _bound("doomed", 30))
            await bed.create("pods", _bound("stays", None))
            async with running(bed, *names, clock=clock):
                await bed.until("pods", lambda it: _all_ready(it, "True"))
                await clock.sleeper()
                clock.advance(GRACE + 1)
                await bed.until("pods", lambda it: _all_ready(it, "False"))
                found = await bed.until(
                    "nodes", lambda it: len(it["n1"]["spec"].get("taints", ())) == 2
                )
                ready_now = found["n1"]["status"]["conditions"][0]
                assert (ready_now["status"], ready_now["reason"]) == (
                    "Unknown",
                    "NodeStatusUnknown",
                )
                await clock.sleeper()
                clock.advance(31)
                pods = await bed.until("pods", gone("doomed"))
                assert "deletionTimestamp" not in pods["stays"]["metadata"]

    async def test_one_that_renews_its_lease_stays(self) -> None:
        clock = VirtualClock(NOW)
        async with plane(clock) as api:
            bed = Bed(api, namespace="kube-node-lease")
            await bed.create("nodes", node("n1"))
            ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
            await bed.patch("nodes", "n1", ready, "status")
            lease = {
                "metadata": {"name": "n1"},
                "spec": {"renewTime": "2026-03-01T12:00:00.000000Z"},
            }
            await bed.create("leases", lease)
            async with running(bed, "node-lifecycle-controller", clock=clock):
                # Asked for after the controller's, so what this watch has heard, that one has.
                async with bed.api.watch(builtins.resource("leases")) as heard:
                    beats = aiter(heard)
                    await anext(beats)
                    for beat in range(1, 6):
                        await clock.sleeper()
                        clock.advance(GRACE / 2 - 1)
                        await bed.patch("leases", "n1", {"spec": _renewed(beat)})
                        await anext(beats)
                found = await bed.get("nodes", "n1")
                assert "taints" not in found["spec"]
                for _ in range(2):  # the last renewal may be noticed as late as the first advance
                    await clock.sleeper()
                    clock.advance(GRACE + 1)
                await bed.until("nodes", lambda it: it["n1"]["spec"].get("taints"))

    async def test_pods_of_a_node_that_is_gone_go_too(self) -> None:
        clock = VirtualClock(NOW)
        async with plane(clock) as api:
            bed = Bed(api)
            await bed.create("pods", _bound("lost", None))
            async with running(bed, "pod-garbage-collector-controller", clock=clock):
                await clock.sleeper()
                assert "lost" in await bed.all("pods")
                clock.advance(QUARANTINE + 1)
                await bed.until("pods", gone("lost"))


def _all_ready(pods: Objects, wanted: str) -> bool:
    found = [
        (each["type"], each["status"])
        for pod in pods.values()
        for each in pod.get("status", {}).get("conditions", ())
    ]
    return found.count(("Ready", wanted)) == len(pods)


def _renewed(beat: int) -> Object:
    return {"renewTime": f"2026-03-01T12:00:0{beat}.000000Z"}


def _bound(name: str, seconds: int | None) -> Object:
    toleration: Object = {"operator": "Exists", "effect": "NoExecute"}
    if seconds is not None:
        toleration |= {"tolerationSeconds": seconds}
    containers = [{"name": "main", "image": "x"}]
    spec = {"nodeName": "n1", "containers": containers, "tolerations": [toleration]}
    return {"metadata": {"name": name}, "spec": spec}


class TestStorage:
    NAMES = (
        "persistentvolumeclaim-binder-controller",
        "persistentvolume-binder-controller",
        "persistentvolumeclaim-protection-controller",
        "persistentvolume-protection-controller",
    )

    @staticmethod
    def claim(**spec: Any) -> Object:
        given = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        }
        return {"metadata": {"name": "data"}, "spec": given}

    async def test_a_directory_where_the_pod_will_run(self, embedded: Bed) -> None:
        async with running(embedded, *self.NAMES):
            await embedded.create("storageclasses", LOCAL_PATH)
            await embedded.create("nodes", node("n1", {"kubernetes.io/hostname": "n1"}))
            await embedded.create("persistentvolumeclaims", self.claim())
            await embedded.until(
                "persistentvolumeclaims",
                lambda it: (
                    it["data"]["spec"].get("storageClassName") == "local-path"
                    and it["data"].get("status", {}).get("phase") == "Pending"
                ),
            )
            assert await embedded.all("persistentvolumes") == {}
            chosen = {"metadata": {"annotations": {SELECTED_NODE: "n1"}}}
            await embedded.patch("persistentvolumeclaims", "data", chosen)
            claims = await embedded.until(
                "persistentvolumeclaims", lambda it: it["data"]["status"]["phase"] == "Bound"
            )
            assert claims["data"]["status"]["capacity"] == {"storage": "1Gi"}
            volumes = await embedded.until(
                "persistentvolumes",
                lambda it: [each["status"].get("phase") for each in it.values()] == ["Bound"],
            )
            assert list(volumes) == [claims["data"]["spec"]["volumeName"]]
            larger = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
            await embedded.patch("persistentvolumeclaims", "data", larger)
            await embedded.until(
                "persistentvolumeclaims",
                lambda it: it["data"]["status"]["capacity"] == {"storage": "3Gi"},
            )
            (volume,) = (await embedded.all("persistentvolumes")).values()
            assert volume["spec"]["capacity"] == {"storage": "3Gi"}
            await _delete(embedded, "persistentvolumeclaims", "data")
            await embedded.until("persistentvolumes", lambda it: not it)

    async def test_a_volume_made_by_hand(self, embedded: Bed) -> None:
        async with running(embedded, *self.NAMES):
            spec = {
                "capacity": {"storage": "2Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": {"path": "/srv"},
            }
            await embedded.create("persistentvolumes", {"metadata": {"name": "v"}, "spec": spec})
            await embedded.create("persistentvolumeclaims", self.claim(storageClassName=""))
            await embedded.until(
                "persistentvolumeclaims",
                lambda it: it["data"].get("status", {}).get("phase") == "Bound",
            )
            await _delete(embedded, "persistentvolumeclaims", "data")
            await embedded.until(
                "persistentvolumes", lambda it: it["v"]["status"].get("phase") == "Released"
            )


async def test_an_autoscaler_keeps_to_its_bounds_without_metrics(bed: Bed) -> None:
    names = ("horizontal-pod-autoscaler-controller", "deployment-controller")
    async with running(bed, *names):
        await bed.create("deployments", deployment(replicas=3))
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 2}
        await bed.create("horizontalpodautoscalers", {"metadata": {"name": "web"}, "spec": spec})
        await bed.until("deployments", lambda found: found["web"]["spec"]["replicas"] == 2)

        def rescaled(found: Objects) -> bool:
            conditions = found["web"].get("status", {}).get("conditions", ())
            reasons = {it["type"]: it["reason"] for it in conditions}
            return reasons.get("AbleToScale") == "SucceededRescale"

        await bed.until("horizontalpodautoscalers", rescaled)
        tellers = {"horizontal-pod-autoscaler", "deployment-controller"}
        await bed.until(
            "events", lambda it: tellers == {e["reportingComponent"] for e in it.values()}
        )


async def test_an_autoscaler_that_may_not_resize_says_so(embedded: Bed) -> None:
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"]}
    policy = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["deployments/scale"]}]},
        "validations": [{"expression": "false", "message": "as it is"}],
    }
    name = {"metadata": {"name": "p"}}
    await embedded.create("validatingadmissionpolicies", {**name, "spec": policy})
    bound = {"policyName": "p", "validationActions": ["Deny"]}
    await embedded.create("validatingadmissionpolicybindings", {**name, "spec": bound})
    async with running(embedded, "horizontal-pod-autoscaler-controller"):
        await embedded.create("deployments", deployment(replicas=3))
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec = {"scaleTargetRef": target, "maxReplicas": 2}
        await embedded.create(
            "horizontalpodautoscalers", {"metadata": {"name": "web"}, "spec": spec}
        )

        def says(found: Objects) -> bool:
            conditions = found["web"].get("status", {}).get("conditions", ())
            return any(
                it["reason"] == "FailedUpdateScale" and it["message"].endswith("as it is")
                for it in conditions
            )

        await embedded.until("horizontalpodautoscalers", says)


async def test_an_autoscaler_without_metrics_says_so(bed: Bed) -> None:
    names = ("horizontal-pod-autoscaler-controller", "deployment-controller")
    async with running(bed, *names):
        await bed.create("deployments", deployment())
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5}
        body = {"metadata": {"name": "web"}, "spec": spec}
        await bed.create("horizontalpodautoscalers", body)

        def says(found: Objects) -> bool:
            conditions = found["web"].get("status", {}).get("conditions", ())
            told = [it["message"] for it in conditions if it["type"] == "ScalingActive"]
            return told == [
                "the HPA was unable to compute the replica count: failed to get cpu utilization: "
                "unable to get metrics for resource cpu: unable to fetch metrics from resource "
                "metrics API: the server could not find the requested resource (get "
                "pods.metrics.k8s.io)"
            ]

        await bed.until("horizontalpodautoscalers", says)
