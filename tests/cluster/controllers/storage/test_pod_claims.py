"""What controllers make for pods: ResourceClaims of templates, claims of ephemeral volumes."""

from __future__ import annotations

from typing import Any

from kvestigate.kube import builtins
from tests.cluster.controllers.conftest import Bed, running

RESOURCES, VOLUMES = "resourceclaim-controller", "ephemeral-volume-controller"


def pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "web:1"}]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}


async def test_a_missing_template_is_told_and_waited_for(embedded: Bed) -> None:
    bed = embedded
    bed.fate = lambda pod: None
    claims = [{"name": "gpu", "resourceClaimTemplateName": "large"}]
    async with running(bed, RESOURCES):
        await bed.create("pods", pod(resourceClaims=claims))
        [event] = (await bed.until("events", len)).values()
        assert (event["type"], event["reason"]) == ("Warning", "FailedResourceClaimCreation")
        assert event["message"] == (
            'PodResourceClaim gpu: resource claim template "large": '
            'resourceclaimtemplate.resource.k8s.io "large" not found'
        )
        request = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}
        spec = {"spec": {"devices": {"requests": [request]}}}
        await bed.create("resourceclaimtemplates", {"metadata": {"name": "large"}, "spec": spec})
        [claim] = (await bed.until("resourceclaims", len)).values()
        assert claim["metadata"]["ownerReferences"][0]["name"] == "p"
        found = await bed.until(
            "pods", lambda pods: pods["p"].get("status", {}).get("resourceClaimStatuses")
        )
    statuses = found["p"]["status"]["resourceClaimStatuses"]
    assert statuses == [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]


REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}
PROTECTION = "resource.kubernetes.io/delete-protection"


async def allocate(bed: Bed, name: str, *pods: dict[str, Any]) -> None:
    """What the scheduler writes into a claim."""
    device = {"request": "r", "driver": "gpu.example.com", "pool": "n", "device": "gpu-0"}
    reserved = [
        {"resource": "pods", "name": each["metadata"]["name"], "uid": each["metadata"]["uid"]}
        for each in pods
    ]
    status = {"allocation": {"devices": {"results": [device]}}, "reservedFor": reserved}
    await bed.patch("resourceclaims", name, {"metadata": {"finalizers": [PROTECTION]}})
    await bed.patch("resourceclaims", name, {"status": status}, "status")


async def test_a_claim_of_a_template_goes_when_its_pod_has_ended(embedded: Bed) -> None:
    bed = embedded
    bed.fate = lambda pod: None
    spec = {"spec": {"devices": {"requests": [REQUEST]}}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "large"}]
    async with running(bed, RESOURCES):
        await bed.create("resourceclaimtemplates", {"metadata": {"name": "large"}, "spec": spec})
        await bed.create("pods", pod(resourceClaims=claims))
        pods = await bed.until(
            "pods", lambda pods: pods["p"].get("status", {}).get("resourceClaimStatuses")
        )
        [name] = await bed.until("resourceclaims", len)
        await allocate(bed, name, pods["p"])
        await bed.patch("pods", "p", {"status": {"phase": "Succeeded"}}, "status")
        await bed.until("resourceclaims", lambda claims: not claims)


async def test_a_claim_of_its_own_is_freed_with_its_last_pod(embedded: Bed) -> None:
    bed = embedded
    bed.fate = lambda pod: None
    body = {"metadata": {"name": "one"}, "spec": {"devices": {"requests": [REQUEST]}}}
    using = pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}])
    async with running(bed, RESOURCES):
        await bed.create("resourceclaims", body)
        for name in ("p", "q"):
            await bed.create("pods", {**using, "metadata": {"name": name}})
        pods = await bed.until("pods", lambda pods: len(pods) == 2)
        await allocate(bed, "one", pods["p"], pods["q"])
        await bed.patch("pods", "p", {"status": {"phase": "Failed"}}, "status")
        claims = await bed.until(
            "resourceclaims", lambda claims: len(claims["one"]["status"]["reservedFor"]) == 1
        )
        assert claims["one"]["status"]["reservedFor"][0]["name"] == "q"
        assert claims["one"]["status"]["allocation"]
        await bed.patch("pods", "q", {"status": {"phase": "Succeeded"}}, "status")
        claims = await bed.until(
            "resourceclaims",
            lambda claims: not claims["one"]["metadata"].get("finalizers"),
        )
    status = claims["one"].get("status", {})
    assert "allocation" not in status
    assert "reservedFor" not in status


async def test_an_ephemeral_volume_gets_its_claim(embedded: Bed) -> None:
    bed = embedded
    bed.fate = lambda pod: None
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    async with running(bed, VOLUMES):
        await bed.create("pods", pod(volumes=volumes))
        claims = await bed.until("persistentvolumeclaims", len)
    assert claims["p-scratch"]["metadata"]["labels"] == {"a": "b"}
    assert claims["p-scratch"]["metadata"]["ownerReferences"][0]["kind"] == "Pod"


TEMPLATE = {"metadata": {"name": "large"}, "spec": {"spec": {"devices": {"requests": [REQUEST]}}}}
OF_TEMPLATE = [{"name": "gpu", "resourceClaimTemplateName": "large"}]


async def test_a_claim_that_somebody_deleted_is_made_again(embedded: Bed) -> None:
    bed = embedded
    bed.fate = lambda pod: None
    async with running(bed, RESOURCES):
        await bed.create("resourceclaimtemplates", TEMPLATE)
        await bed.create("pods", pod(resourceClaims=OF_TEMPLATE))
        [first] = await bed.until("resourceclaims", len)
        await bed.until("pods", lambda pods: pods["p"]["status"].get("resourceClaimStatuses"))
        resource = builtins.resource("resourceclaims")
        await bed.api.delete(resource, first, namespace=bed.namespace)
        found = await bed.until(
            "pods",
            lambda pods: (
                pods["p"]["status"]["resourceClaimStatuses"][0]["resourceClaimName"] != first
            ),
        )
        [second] = await bed.until("resourceclaims", lambda claims: claims and first not in claims)
    assert found["p"]["status"]["resourceClaimStatuses"][0]["resourceClaimName"] == second


async def test_a_pod_that_was_placed_by_hand_gets_its_reservation(embedded: Bed) -> None:
    bed = embedded
    bed.fate = lambda pod: None
    body = {"metadata": {"name": "one"}, "spec": {"devices": {"requests": [REQUEST]}}}
    claims = [{"name": "gpu", "resourceClaimName": "one"}]
    async with running(bed, RESOURCES):
        await bed.create("resourceclaims", body)
        made = await bed.create("pods", pod(resourceClaims=claims, nodeName="n"))
        await allocate(bed, "one")
        found = await bed.until(
            "resourceclaims", lambda found: found["one"]["status"].get("reservedFor")
        )
    assert found["one"]["status"]["reservedFor"] == [
        {"resource": "pods", "name": "p", "uid": made["metadata"]["uid"]}
    ]
