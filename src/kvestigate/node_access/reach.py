"""From a cluster to its hosts: one pod of the node-access DaemonSet a node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
    """A node that is there, and to which no way leads now."""


class Host(Remote):
    """One node's host; commands run with the host's root as theirs."""

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
    """The hosts of a cluster, as far as they can be reached."""

    access: NodeAccess
    nodes: Mapping[str, Host]
    unreachable: Mapping[str, str]
    """Why, of each other node."""
    bare: frozenset[str] = frozenset()
    """Those of them where the DaemonSet has no pod at all."""

    def host(self, node: str) -> Host:
        """That node's host, or an error that says why there is none."""
        if found := self.nodes.get(node):
            return found
        if why := self.unreachable.get(node):
            raise Unreachable(
                f"node {node!r} cannot be reached: {why}",
                hint=f"kubectl -n {self.access.namespace} describe daemonset {self.access.name}",
            )
        known = ", ".join(sorted({*self.nodes, *self.unreachable})) or "none"
        raise NotFound(f"there is no node {node!r}", hint=f"the nodes are: {known}")


async def reach(api: Api, access: NodeAccess = DEFAULT) -> Hosts:
    """Find the way to every node; NotFound if there is no such DaemonSet."""
    daemon_set, names = await asyncio.gather(_daemon_set(api, access), _node_names(api))
    selector = str(from_label_selector(daemon_set["spec"]["selector"]))
    page = await api.list(PODS, Selection(access.namespace, labels=selector), type=Pod)
    owner = daemon_set["metadata"]["uid"]
    pods = [pod for pod in page.items if _belongs(pod, owner)]
    return sort_out(api, access, names, pods)


def sort_out(api: Api, access: NodeAccess, names: Iterable[str], pods: Iterable[Pod]) -> Hosts:
    """Which nodes the DaemonSet's pods lead to, and why not to the others."""
    unreachable = dict.fromkeys(names, f"{access.name} has no pod there")
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
            unreachable[node] = f"pod {pod.metadata.name} mounts nothing at {access.root}"
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
            f"the hosts cannot be reached: there is no DaemonSet {access.name!r} "
            f"in namespace {access.namespace!r}",
            hint=f"{INSTALL} installs one; --node-ds-namespace and --node-ds-name name another",
        ) from None


async def _node_names(api: Api) -> list[str]:
    """All nodes; none if we may not know, and then only those with a pod are told of."""
    try:
        return [
            node.metadata.name
            async for page in api.pages(NODES, type=PartialObject, metadata_only=True)
            for node in page.items
        ]
    except Forbidden:
        return []


def _belongs(pod: Pod, owner: str) -> bool:
    return any(it.controller and it.uid == owner for it in pod.metadata.owner_references)


def _obstacle(pod: Pod) -> str:
    name = pod.metadata.name
    if pod.metadata.deletion_timestamp is not None:
        return f"pod {name} is being deleted"
    if pod.status.phase != "Running":
        return f"pod {name} is {pod.status.phase or 'not started'}"
    if any(it.type == "Ready" and it.status == "False" for it in pod.status.conditions):
        return f"pod {name} is not ready"
    return ""


def _container(pod: Pod, root: str) -> str | None:
    """The container that has the host's root."""
    for container in pod.spec.containers:
        if any(mount.mount_path == root for mount in container.volume_mounts):
            return container.name
    return None
