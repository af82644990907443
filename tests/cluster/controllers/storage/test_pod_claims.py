"""What controllers make for pods: ResourceClaims of templates, claims of ephemeral volumes."""

from __future__ import annotations

from typing import Any

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
