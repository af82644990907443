"""Which pods to move so that nodes with few allocated GPUs become empty. Pure.

Pods move from donors to targets. No node is both, so no pod moves to a node that is being emptied.
The largest pods are placed first, each on the target that it fills best.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Annotated

from kvestigate.errors import UsageError, did_you_mean
from kvestigate.kube.requests import Amounts
from kvestigate.nodeops.selection import SYSTEM
from kvestigate.operation import param
from kvestigate.optimize.model import Fill, Fleet, GpuNode, GpuPod, largest_first

SCHEMA = "kvestigate.optimize.plan/v1"


@dataclass(frozen=True, slots=True)
class Tunables:
    donor_max_util: Annotated[
        float, param("Empty nodes with a smaller share of allocated GPUs.", metavar="SHARE")
    ] = 0.3
    min_free_nodes: Annotated[
        int,
        param(
            "Wanted number of empty nodes; reported, not enforced.",
            metavar="COUNT",
            lowest=0,
            highest=100_000,
        ),
    ] = 1
    exclude_namespaces: Annotated[
        tuple[str, ...],
        param("Never move pods of this namespace.", "--exclude-namespace", metavar="NAME"),
    ] = ()
    exclude_nodes: Annotated[
        tuple[str, ...],
        param("Do not move pods from or to this node.", "--exclude-node", metavar="NODE"),
    ] = ()
    pins: Annotated[
        tuple[str, ...],
        param("Never move these pods; * matches anything.", "--pin", metavar="NAMESPACE/PATTERN"),
    ] = ()


class Role(enum.Enum):
    DONOR = "donor"
    TARGET = "target"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Move:
    namespace: str
    pod: str
    gpus: int
    donor: str
    target: str


@dataclass(frozen=True, slots=True)
class KeptPod:
    """A pod on a donor that is not moved."""

    namespace: str
    pod: str
    gpus: int
    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class Projection:
    node: str
    role: Role
    why: str
    """Why the node has that role or none."""
    capacity: int
    before: int
    """Allocated GPUs."""
    after: int

    @property
    def change(self) -> int:
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidation:
    schema: str = SCHEMA
    captured_at: datetime
    """UTC."""
    server: str
    tunables: Tunables
    moves: tuple[Move, ...]
    unplaceable: tuple[KeptPod, ...]
    """Pods that fit on no target."""
    held: tuple[KeptPod, ...]
    """Pods that are pinned, or in an excluded or system namespace."""
    drained: tuple[str, ...]
    """Donors that the moves leave empty."""
    empty_before: int
    """Nodes."""
    empty_after: int
    enough_empty: bool
    """At least `min_free_nodes` nodes are empty after the moves."""
    notes: tuple[str, ...]
    nodes: tuple[Projection, ...]


def plan(fleet: Fleet, tunables: Tunables) -> Consolidation:
    """The moves. Raises UsageError for a tunable that is out of range or matches nothing."""
    _check(fleet, tunables)
    roles = {node.name: role_of(node, tunables) for node in fleet.nodes}
    targets = [_Target(node) for node in fleet.nodes if roles[node.name][0] is Role.TARGET]
    donors = [node for node in fleet.nodes if roles[node.name][0] is Role.DONOR]
    moves: list[Move] = []
    unplaceable: list[KeptPod] = []
    held: list[KeptPod] = []
    for donor, pod in _largest_first(donors):
        if reason := _held(pod, tunables):
            held.append(_staying(pod, donor, reason))
        elif target := _best(pod, donor, targets):
            target.take(pod)
            moves.append(Move(pod.namespace, pod.name, pod.count, donor.name, target.node.name))
        else:
            unplaceable.append(_staying(pod, donor, _no_room(pod, donor, targets)))
    nodes = _projections(fleet, roles, moves)
    empty_after = sum(not node.after for node in nodes)
    return Consolidation(
        captured_at=fleet.captured_at,
        server=fleet.server,
        tunables=tunables,
        moves=tuple(moves),
        unplaceable=tuple(unplaceable),
        held=tuple(held),
        drained=tuple(node.node for node in nodes if node.before and not node.after),
        empty_before=sum(not node.before for node in nodes),
        empty_after=empty_after,
        enough_empty=empty_after >= tunables.min_free_nodes,
        notes=_notes(fleet, tunables, donors, targets),
        nodes=nodes,
    )


def _largest_first(donors: Iterable[GpuNode]) -> list[tuple[GpuNode, GpuPod]]:
    pairs = [(donor, pod) for donor in donors for pod in donor.pods]
    return sorted(pairs, key=lambda pair: (*largest_first(pair[1]), pair[0].name))


def role_of(node: GpuNode, tunables: Tunables) -> tuple[Role, str]:
    """The role of a node in the plan, and the reason."""
    if node.name in tunables.exclude_nodes:
        return Role.NONE, "excluded"
    if node.fill is Fill.EMPTY:
        return Role.NONE, "already empty"
    if node.share < tunables.donor_max_util:
        return Role.DONOR, f"{node.share:.0%} < {tunables.donor_max_util:.0%}"
    if node.fill is Fill.FULL:
        return Role.NONE, "full"
    if node.closed:
        return Role.NONE, node.closed
    return Role.TARGET, f"{node.free} free"


class _Target:
    """A node while it is being filled."""

    def __init__(self, node: GpuNode) -> None:
        self.node = node
        self.room: Amounts = node.room

    @property
    def free(self) -> int:
        return sum(self.room.values())

    def fits(self, pod: GpuPod) -> bool:
        return all(self.room.get(name, 0) >= count for name, count in pod.gpus.items())

    def take(self, pod: GpuPod) -> None:
        for name, count in pod.gpus.items():
            self.room[name] -= count


def _best(pod: GpuPod, donor: GpuNode, targets: Sequence[_Target]) -> _Target | None:
    """The fitting target with the fewest free GPUs."""
    fitting = [target for target in targets if _alike(target.node, donor) and target.fits(pod)]
    return min(fitting, key=lambda target: (target.free, target.node.name), default=None)


def _alike(target: GpuNode, donor: GpuNode) -> bool:
    """Whether both have the same GPU model, or a model is unknown."""
    return not target.model or not donor.model or target.model == donor.model


def _held(pod: GpuPod, tunables: Tunables) -> str:
    if pod.namespace in tunables.exclude_namespaces:
        return f"namespace {pod.namespace} is excluded"
    if pod.namespace in SYSTEM:
        return "in a system namespace"
    pin = next((pin for pin in tunables.pins if pinned(pin, pod)), "")
    return f"pinned by {pin}" if pin else ""


def pinned(pin: str, pod: GpuPod) -> bool:
    namespace, _, pattern = pin.partition("/")
    return fnmatchcase(pod.namespace, namespace) and fnmatchcase(pod.name, pattern)


def _staying(pod: GpuPod, node: GpuNode, reason: str) -> KeptPod:
    return KeptPod(pod.namespace, pod.name, pod.count, node.name, reason)


def _no_room(pod: GpuPod, donor: GpuNode, targets: Sequence[_Target]) -> str:
    if not targets:
        return "no node is a target"
    alike = [target for target in targets if _alike(target.node, donor)]
    if not alike:
        return f"no target has the GPU model {donor.model}"
    most = max(alike, key=lambda target: target.free)
    wanted = ", ".join(f"{count} {name}" for name, count in sorted(pod.gpus.items()))
    return f"needs {wanted}; the largest free block on a target is {most.free} ({most.node.name})"


def _projections(
    fleet: Fleet, roles: Mapping[str, tuple[Role, str]], moves: Iterable[Move]
) -> tuple[Projection, ...]:
    gone, come = Counter[str](), Counter[str]()
    for move in moves:
        gone[move.donor] += move.gpus
        come[move.target] += move.gpus
    return tuple(
        Projection(
            node.name,
            *roles[node.name],
            node.capacity,
            node.stated,
            # Init containers with GPUs count only as far as they request more than the others.
            max(node.stated - gone[node.name], 0) + come[node.name],
        )
        for node in fleet.nodes
    )


def _notes(
    fleet: Fleet, tunables: Tunables, donors: Sequence[GpuNode], targets: Sequence[_Target]
) -> tuple[str, ...]:
    notes = []
    if donors and not targets:
        notes.append(f"every node with free GPUs is a donor: {_way_out(donors)}")
    pods = [pod for node in fleet.nodes for pod in node.pods]
    notes += [
        f"--pin {pin} matches no pod with GPUs"
        for pin in tunables.pins
        if not any(pinned(pin, pod) for pod in pods)
    ]
    return tuple(notes)


def _way_out(donors: Sequence[GpuNode]) -> str:
    shares = [node.share for node in donors if not node.closed]
    if not shares:
        return "none of them is schedulable"
    lower = int(max(shares) * 1000) / 1000  # not rounded up: a donor is strictly below
    return f"--donor-max-util {lower:g} turns the fullest into a target"


def _check(fleet: Fleet, tunables: Tunables) -> None:
    if not 0 <= tunables.donor_max_util <= 1:
        raise UsageError(
            f"--donor-max-util {tunables.donor_max_util:g} is not between 0 and 1",
            hint="give a share such as 0.3",
        )
    for pin in tunables.pins:
        namespace, slash, pattern = pin.partition("/")
        if not (namespace and slash and pattern):
            raise UsageError(
                f"--pin {pin}: is not NAMESPACE/PATTERN",
                hint="write for example research/sweep-*",
            )
    names = [node.name for node in fleet.nodes]
    for name in tunables.exclude_nodes:
        if name not in names:
            raise UsageError(
                f"--exclude-node {name}: no node with GPUs has this name",
                hint=did_you_mean(name, names, f"nodes with GPUs: {', '.join(names)}"),
            )
