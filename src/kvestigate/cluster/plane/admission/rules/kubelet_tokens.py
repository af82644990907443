"""Tokens that a kubelet may ask for: of its own pods, for whom those were made to use them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvestigate.cluster.plane.access.authz import rbac
from kvestigate.cluster.plane.access.authz.reach import bound_to
from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.store.state import PlaneState

_CLAIMS, _VOLUMES = ("", "persistentvolumeclaims"), ("", "persistentvolumes")
_DRIVERS = ("storage.k8s.io", "csidrivers")


def problems(write: Write, node: str, find: Callable[[str], Item]) -> Iterator[str]:
    """Why a TokenRequest of the kubelet of a node is refused; `find` finds its pod."""
    spec = write.new.get("spec") or {}
    reference = spec.get("boundObjectRef") or {}
    if (reference.get("apiVersion"), reference.get("kind")) != ("v1", "Pod"):
        yield "node requested token not bound to a pod"
    if not reference.get("name"):
        yield "node requested token not bound to a pod"
    if not reference.get("uid"):
        yield "node requested token with a pod binding without a uid"
    item = find(reference["name"])
    if reference["uid"] != item.uid:
        yield (
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in "
            "record. The object might have been deleted and then recreated"
        )
    if bound_to(item) != node:
        yield "node requested token bound to a pod scheduled on a different node"
    yield from _audience_problems(write, objects.read(item), spec.get("audiences") or [])


def _audience_problems(write: Write, pod: Object, audiences: list[str]) -> Iterator[str]:
    if len(audiences) > 1:
        yield "node may only request 0 or 1 audiences"
    audience = audiences[0] if audiences else ""
    if audience in _audiences(write.scene.state, pod) or _may(write, audience):
        return
    missing = f'audience "{audience}" not found in pod spec volume'
    who = write.scene.user.name
    yield f"{missing}, {who} is not authorized to request tokens for this audience"


def _may(write: Write, audience: str) -> bool:
    info = RequestInfo(
        "POST",
        "",
        "request-serviceaccounts-token-audience",
        resource=audience,
        version="v1",
        namespace=write.info.namespace,
        name=write.info.name,
    )
    return rbac.allowed(write.scene.state, write.scene.user, info)


def _audiences(state: PlaneState, pod: Object) -> Iterator[str]:
    """For whom the pod has tokens mounted, or the drivers of its volumes want them."""
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if (token := source.get("serviceAccountToken")) is not None:
                yield token.get("audience", "")
        driver = state.get(_DRIVERS, "", _driver(state, pod, volume))
        if driver is not None:
            for request in objects.read(driver)["spec"].get("tokenRequests") or ():
                yield request.get("audience", "")


def _driver(state: PlaneState, pod: Object, volume: Object) -> str:
    """The CSI driver behind a volume of a pod; empty if it has none."""
    source = volume
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
    if "ephemeral" in volume:
        claim = f"{pod['metadata']['name']}-{volume['name']}"
    if claim:
        found = state.get(_CLAIMS, pod["metadata"]["namespace"], claim)
        name = objects.read(found)["spec"].get("volumeName", "") if found is not None else ""
        bound = state.get(_VOLUMES, "", name)
        source = objects.read(bound)["spec"] if bound is not None else {}
    driver: str = (source.get("csi") or {}).get("driver", "")
    return driver
