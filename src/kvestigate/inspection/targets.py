"""From the words of a user to the pods and the container that are meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.client.named import get_named
from kvestigate.errors import UsageError
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.kube.selectors import from_label_selector
from kvestigate.kube.views.pods import Pod

_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


async def pods_of(api: Api, target: str) -> tuple[Pod, ...]:
    """The pod `NAME` or `pod/NAME`, or all pods of `deployment/NAME`, `job/NAME`, `svc/NAME`."""
    kind, slash, name = target.rpartition("/")
    resource = builtins.resource(kind) if slash else PODS
    if resource == PODS or resource.plural == "pods":
        return (await get_named(api, PODS, name, Pod),)
    owner = await get_named(api, resource, name, dict[str, Any])
    selector = _selector(resource, owner)
    page = await api.list(PODS, Selection(api.namespace, labels=selector), type=Pod)
    return page.items


def container_of(pod: Pod, wanted: str) -> str:
    """The container that is meant: the one named, the annotated one, or the first."""
    names = [it.name for it in (*pod.spec.containers, *pod.spec.init_containers)]
    if wanted and wanted not in names:
        near = difflib.get_close_matches(wanted, names, n=1)
        raise UsageError(
            f"--container: pod {pod.metadata.name!r} has no container {wanted!r}",
            hint=(f"did you mean {near[0]!r}? " if near else "") + f"it has: {', '.join(names)}",
        )
    annotated = pod.metadata.annotations.get(_DEFAULT_CONTAINER, "")
    return wanted or (annotated if annotated in names else names[0])


def running_one(pods: Sequence[Pod], target: str) -> Pod:
    """A pod to run a command in."""
    for pod in pods:
        if pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None:
            return pod
    phases = ", ".join(f"{it.metadata.name} is {it.status.phase}" for it in pods)
    raise UsageError(
        f"{target}: no pod of it is running" + (f" ({phases})" if phases else ""),
        hint="`kvestigate pods` shows how the pods fare",
    )


def _selector(resource: Resource, owner: dict[str, Any]) -> str:
    spec = owner.get("spec") or {}
    selector = spec.get("selector")
    if resource.plural == "services":
        selector = {"matchLabels": selector} if selector else None
    if not selector:
        raise UsageError(
            f"{resource.singular_name} {owner['metadata']['name']!r} selects no pods",
            hint="name a pod, a deployment, statefulset, daemonset, replicaset, job or service",
        )
    return str(from_label_selector(selector))
