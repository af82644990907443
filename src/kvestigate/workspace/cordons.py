"""Nodes that were cordoned for a workspace, and stay so although the workspace never came to be.

A node is cordoned before its GPUs are chosen. Whoever does that writes in the same request on the
node for which workspace and when. So where the process was killed before the workspace had its
marker, the cordon can be told from one that an operator made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kvestigate.client.api import Api
from kvestigate.errors import KvestigateError
from kvestigate.kube import builtins
from kvestigate.kube.views.core import Node
from kvestigate.node_access.reach import Host
from kvestigate.nodeops.cordon import CORDONED_FOR, set_cordoned
from kvestigate.workspace.marker import Marker
from kvestigate.workspace.names import DEFAULT_ROOT
from kvestigate.workspace.survey import survey

_NODES = builtins.resource("nodes")
_WHEN = "%Y-%m-%dT%H:%M:%SZ"
_UNDER_WAY = timedelta(minutes=10)
"""Longer than it takes from the cordon of a node to the marker of its workspace."""


@dataclass(frozen=True, slots=True)
class LeftCordon:
    """A node that is cordoned for a workspace that is not there."""

    node: str
    workspace: str
    """The directory that it would have been in."""
    since: datetime


def cordon_reason(workspace: str, now: datetime) -> str:
    return f"{workspace} {now.strftime(_WHEN)}"


def cordoned_for(node: Node) -> LeftCordon | None:
    """The workspace that the node says it is cordoned for."""
    workspace, _, when = node.metadata.annotations.get(CORDONED_FOR, "").rpartition(" ")
    try:
        since = datetime.strptime(when, _WHEN).replace(tzinfo=UTC)
    except ValueError:
        return None
    if not node.spec.unschedulable or not workspace.startswith("/"):
        return None
    return LeftCordon(node.metadata.name, workspace, since)


def is_left(cordon: LeftCordon, markers: Iterable[Marker], now: datetime) -> bool:
    """Whether nobody needs the cordon: no workspace of the host, nor one that is being made."""
    if now - cordon.since < _UNDER_WAY:
        return False
    return not any(marker.workspace.gpu.cordon_node for marker in markers)


async def left_cordons(
    api: Api, hosts: Mapping[str, Host], now: datetime
) -> tuple[LeftCordon, ...]:
    """Those of these hosts; nothing is said of hosts that do not answer."""
    left: list[LeftCordon] = []
    for node in (await api.list(_NODES, type=Node)).items:
        cordon = cordoned_for(node)
        if cordon is None or cordon.node not in hosts:
            continue
        with suppress(KvestigateError):
            root = cordon.workspace.rpartition("/")[0]
            seen = await survey(hosts[cordon.node], DEFAULT_ROOT, root)
            if is_left(cordon, seen.markers, now):
                left.append(cordon)
    return tuple(left)


async def lift(api: Api, hosts: Mapping[str, Host], now: datetime) -> tuple[str, ...]:
    """Open the nodes whose cordon nobody needs; what was done, a line each."""
    lines = []
    for cordon in await left_cordons(api, hosts, now):
        await set_cordoned(api, cordon.node, False, apply=True)
        lines.append(
            f"node {cordon.node} is uncordoned: it was cordoned for workspace "
            f"{cordon.workspace}, which was never made"
        )
    return tuple(lines)
