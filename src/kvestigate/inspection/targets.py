"""The pods that a target such as `deployment/web` stands for."""

from __future__ import annotations

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


def running_one(pods: Sequence[Pod], target: str) -> Pod:
    """The first running pod. Raises UsageError if there is none."""
    for pod in pods:
        if pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None:
            return pod
    phases = ", ".join(f"{pod.metadata.name} is {pod.status.phase}" for pod in pods)
    raise UsageError(
        f"{target} has no running pod" + (f" ({phases})" if phases else ""),
        hint="`kvestigate pods` shows the status of the pods",
    )


def _selector(resource: Resource, owner: dict[str, Any]) -> str:
    spec = owner.get("spec") or {}
    selector = spec.get("selector")
    if resource.plural == "services":
        selector = {"matchLabels": selector} if selector else None
    if not selector:
        raise UsageError(
            f"{resource.singular_name} {owner['metadata']['name']!r} selects no pods",
            hint="give a pod, deployment, statefulset, daemonset, replicaset, job or service",
        )
    return str(from_label_selector(selector))
