"""Reaching the hosts of a cluster through the pods of the node-access DaemonSet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.errors import Forbidden, KvestigateError, NotFound
from kvestigate.kube import builtins
from kvestigate.kube.selectors import from_label_selector
from kvestigate.kube.views.meta import PartialObject
from kvestigate.kube.views.pods import Pod
from kvestigate.node_access.model import NodeAccess
from kvestigate.node_access.remote import Remote

DAEMON_SETS = builtins.resource("daemonsets.apps")
NODES = builtins.resource("nodes")

INSTALL = "kvestigate fanout manifest | kubectl apply -f -"

DEFAULT = NodeAccess()


class Unreachable(KvestigateError):
    """The node exists but cannot be reached now."""


class Host(Remote):
    """The host of one node; commands run in the root of the host."""

    def __init__(self, api: Api, node: str, pod: Pod, container: str, root: str) -> None:
        super().__init__(
            api,
            name=node,
            namespace=pod.metadata.namespace,
            pod=pod.metadata.name,
            container=container,
            wrapper=("chroot", root),
        )
        self.node = node


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of a cluster, and the nodes that cannot be reached."""

    access: NodeAccess
    nodes: Mapping[str, Host]
    unreachable: Mapping[str, str]
    """Node -> why it cannot be reached."""
    bare: frozenset[str] = frozenset()
    """The unreachable nodes without a pod of the DaemonSet."""

    def host(self, node: str) -> Host:
        """The host of a node. Raises Unreachable or NotFound."""
        if host := self.nodes.get(node):
            return host
        if why := self.unreachable.get(node):
            raise Unreachable(
                f"node {node!r} cannot be reached: {why}",
                hint=f"kubectl -n {self.access.namespace} describe daemonset {self.access.name}",
            )
        known = ", ".join(sorted({*self.nodes, *self.unreachable})) or "none"
        raise NotFound(f"there is no node {node!r}", hint=f"the nodes are: {known}")


def manifest() -> str:
    """The YAML of the node-access DaemonSet, with a comment on the access that it gives."""
    return resources.files("kvestigate.node_access").joinpath("node-access.yaml").read_text()


async def reach(api: Api, access: NodeAccess = DEFAULT) -> Hosts:
    """The hosts of all nodes. Raises NotFound if the DaemonSet does not exist."""
    daemon_set, names = await asyncio.gather(_daemon_set(api, access), _node_names(api))
    selector = str(from_label_selector(daemon_set["spec"]["selector"]))
    page = await api.list(PODS, Selection(access.namespace, labels=selector), type=Pod)
    owner = daemon_set["metadata"]["uid"]
    pods = [pod for pod in page.items if _belongs(pod, owner)]
    return sort_out(api, access, names, pods)


def sort_out(api: Api, access: NodeAccess, names: Iterable[str], pods: Iterable[Pod]) -> Hosts:
    """The hosts with a usable pod of the DaemonSet, and why the others cannot be reached."""
    unreachable = dict.fromkeys(names, f"DaemonSet {access.name} has no pod on this node")
    bare = set(unreachable)
    nodes: dict[str, Host] = {}
    for pod in pods:
        node = pod.spec.node_name
        if not node or node in nodes:
            continue
        bare.discard(node)
        container = _container(pod, access.root)
        if why := _obstacle(pod):
            unreachable[node] = why
        elif container is None:
            unreachable[node] = f"pod {pod.metadata.name} has no volume mounted at {access.root}"
        else:
            nodes[node] = Host(api, node, pod, container, access.root)
            unreachable.pop(node, None)
    return Hosts(
        access, dict(sorted(nodes.items())), dict(sorted(unreachable.items())), frozenset(bare)
    )


async def _daemon_set(api: Api, access: NodeAccess) -> dict[str, Any]:
    try:
        return await api.get(DAEMON_SETS, access.name, namespace=access.namespace)
    except NotFound:
        raise NotFound(
            f"the hosts cannot be reached: DaemonSet {access.name!r} does not exist "
            f"in namespace {access.namespace!r}",
            hint=f"install it with `{INSTALL}`, or name another with --node-ds-namespace and "
            "--node-ds-name",
        ) from None


async def _node_names(api: Api) -> list[str]:
    """All nodes; empty if listing nodes is forbidden: then only nodes with a pod are known."""
    try:
        return [
            node.metadata.name
            async for page in api.pages(NODES, type=PartialObject, metadata_only=True)
            for node in page.items
        ]
    except Forbidden:
        return []


def _belongs(pod: Pod, uid: str) -> bool:
    return any(owner.controller and owner.uid == uid for owner in pod.metadata.owner_references)


def _obstacle(pod: Pod) -> str:
    name = pod.metadata.name
    if pod.metadata.deletion_timestamp is not None:
        return f"pod {name} is being deleted"
    if pod.status.phase != "Running":
        return f"pod {name} is {pod.status.phase or 'not started'}"
    if any(
        condition.type == "Ready" and condition.status == "False"
        for condition in pod.status.conditions
    ):
        return f"pod {name} is not ready"
    return ""


def _container(pod: Pod, root: str) -> str | None:
    """The container that mounts the root of the host; None if there is none."""
    for container in pod.spec.containers:
        if any(mount.mount_path == root for mount in container.volume_mounts):
            return container.name
    return None
