"""Which pods to move so that nodes with few allocated GPUs become empty. Pure.

Pods move from donors to targets. No node is both, so no pod moves to a node that is being emptied.
The largest pods of a donor are placed first, each on the target that it fills best. A donor is
emptied or not touched: one pod that cannot move, and all its pods stay.

With a `Situation` every move is tried with the filters of the scheduler, in the order in which
`optimize apply` makes it. Without one (a saved audit), only GPUs are counted.
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
from kvestigate.nodeops.fates import SYSTEM
from kvestigate.operation import param
from kvestigate.optimize.model import NOT_READY, Fill, Fleet, GpuNode, GpuPod, largest_first
from kvestigate.optimize.trial import Trial, immobile
from kvestigate.snapshot.scheduling import Situation

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
    delete_emptydir_data: Annotated[
        bool, param("Also move pods whose emptyDir volumes lose their data.")
    ] = False


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
    """In the order in which they are made."""
    unplaceable: tuple[KeptPod, ...]
    """Pods that fit on no target."""
    held: tuple[KeptPod, ...]
    """Pods that cannot or must not be moved, and all others of their donors."""
    checked: bool
    """Whether the rules of the scheduler were checked; False for a saved audit."""
    drained: tuple[str, ...]
    """Donors that the moves leave empty."""
    empty_before: int
    """Nodes."""
    empty_after: int
    enough_empty: bool
    """At least `min_free_nodes` nodes are empty after the moves."""
    notes: tuple[str, ...]
    nodes: tuple[Projection, ...]


def plan(fleet: Fleet, tunables: Tunables, situation: Situation | None = None) -> Consolidation:
    """The moves. Raises UsageError for a tunable that is out of range or matches nothing."""
    _check(fleet, tunables)
    roles = {node.name: role_of(node, tunables) for node in fleet.nodes}
    targets = [node for node in fleet.nodes if roles[node.name][0] is Role.TARGET]
    donors = [node for node in fleet.nodes if roles[node.name][0] is Role.DONOR]
    trial = None if situation is None else Trial(situation)
    held = [
        _staying(pod, donor, reason)
        for donor in donors
        for pod in donor.pods
        if (reason := _held(pod, donor, tunables, trial))
    ]
    blocked = {pod.node for pod in held}
    free = [donor for donor in donors if donor.name not in blocked]
    moves, unplaceable = _best_packing(free, targets, trial)
    emptied = {move.donor for move in moves}
    held += _left_behind(donors, emptied, [*held, *unplaceable])
    for donor in donors:
        if donor.name not in emptied:
            why = f"{roles[donor.name][1]}, but cannot become empty"
            roles[donor.name] = Role.DONOR, why
    nodes = _projections(fleet, roles, moves)
    empty_after = sum(not node.after for node in nodes)
    return Consolidation(
        captured_at=fleet.captured_at,
        server=fleet.server,
        tunables=tunables,
        moves=tuple(moves),
        unplaceable=tuple(unplaceable),
        held=tuple(sorted(held, key=lambda pod: (pod.node, -pod.gpus, pod.namespace, pod.pod))),
        checked=situation is not None,
        drained=tuple(node.node for node in nodes if node.before and not node.after),
        empty_before=sum(not node.before for node in nodes),
        empty_after=empty_after,
        enough_empty=empty_after >= tunables.min_free_nodes,
        notes=_notes(fleet, tunables, donors, targets),
        nodes=nodes,
    )


def _best_packing(
    donors: Sequence[GpuNode], targets: Sequence[GpuNode], trial: Trial | None
) -> tuple[list[Move], list[KeptPod]]:
    """Of two orders of the donors, the one that empties more of them."""
    small = sorted(donors, key=lambda donor: (donor.stated, donor.name))
    large = sorted(donors, key=lambda donor: (-donor.stated, donor.name))
    found = []
    for order in (small, large):
        packing = _Packing(targets, trial)
        moves, unplaceable = packing.emptied(order)
        found.append((moves, unplaceable))
        if trial is not None:
            trial.undo(0)
        if not unplaceable:
            break
    return max(found, key=lambda each: len({move.donor for move in each[0]}))


def _left_behind(
    donors: Sequence[GpuNode], emptied: set[str], named: Sequence[KeptPod]
) -> list[KeptPod]:
    """The other pods of donors that are not touched."""
    known = {(pod.node, pod.namespace, pod.pod) for pod in named}
    return [
        _staying(pod, donor, f"{donor.name} cannot become empty")
        for donor in donors
        if donor.name not in emptied
        for pod in donor.pods
        if (donor.name, pod.namespace, pod.name) not in known
    ]


def role_of(node: GpuNode, tunables: Tunables) -> tuple[Role, str]:
    """The role of a node in the plan, and the reason."""
    if node.name in tunables.exclude_nodes:
        return Role.NONE, "excluded"
    if node.fill is Fill.EMPTY:
        return Role.NONE, "already empty"
    if node.closed == NOT_READY:
        return Role.NONE, node.closed
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

    def take(self, pod: GpuPod, sign: int = 1) -> None:
        for name, count in pod.gpus.items():
            self.room[name] -= sign * count


class _Packing:
    """The targets, while one donor after the other is emptied onto them."""

    def __init__(self, targets: Sequence[GpuNode], trial: Trial | None) -> None:
        self._targets = [_Target(node) for node in targets]
        self._trial = trial

    def emptied(self, donors: Sequence[GpuNode]) -> tuple[list[Move], list[KeptPod]]:
        """The moves of all donors that can be emptied, and of the others the pod that cannot go."""
        moves: list[Move] = []
        unplaceable: list[KeptPod] = []
        for donor in donors:
            found = self._emptied(donor)
            if isinstance(found, KeptPod):
                unplaceable.append(found)
            else:
                moves += found
        return moves, unplaceable

    def _emptied(self, donor: GpuNode) -> list[Move] | KeptPod:
        mark = self._trial.mark if self._trial else 0
        taken: list[tuple[GpuPod, _Target]] = []
        for pod in sorted(donor.pods, key=largest_first):
            target, reason = self._best(pod, donor)
            if target is None:
                for earlier, place in taken:
                    place.take(earlier, -1)
                if self._trial:
                    self._trial.undo(mark)
                return _staying(pod, donor, reason)
            target.take(pod)
            taken.append((pod, target))
            if self._trial and (found := self._trial.pod(pod.namespace, pod.name)):
                self._trial.move(found, target.node.name)
        return [
            Move(pod.namespace, pod.name, pod.count, donor.name, target.node.name)
            for pod, target in taken
        ]

    def _best(self, pod: GpuPod, donor: GpuNode) -> tuple[_Target | None, str]:
        """The fitting target with the fewest free GPUs, or why there is none."""
        roomy = [
            target for target in self._targets if _alike(target.node, donor) and target.fits(pod)
        ]
        if not roomy:
            return None, _no_room(pod, donor, self._targets)
        roomy.sort(key=lambda target: (target.free, target.node.name))
        found = self._trial.pod(pod.namespace, pod.name) if self._trial else None
        if self._trial is None or found is None:
            return roomy[0], ""
        reasons = self._trial.rejections(found, [target.node.name for target in roomy])
        fitting = next((target for target in roomy if not reasons[target.node.name]), None)
        return fitting, "; ".join(reasons.values())


def _alike(target: GpuNode, donor: GpuNode) -> bool:
    """Whether both have the same GPU model, or a model is unknown."""
    return not target.model or not donor.model or target.model == donor.model


def _held(pod: GpuPod, donor: GpuNode, tunables: Tunables, trial: Trial | None) -> str:
    if pod.namespace in tunables.exclude_namespaces:
        return f"namespace {pod.namespace} is excluded"
    if pod.namespace in SYSTEM:
        return "in a system namespace"
    pin = next((pin for pin in tunables.pins if pinned(pin, pod)), "")
    if pin:
        return f"pinned by {pin}"
    if trial is None:
        return ""
    found = trial.pod(pod.namespace, pod.name)
    if found is None or found.spec.node_name != donor.name:
        return f"no longer on {donor.name}"
    return immobile(found, trial.situation, data=tunables.delete_emptydir_data)


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
    for name, count in sorted(pod.gpus.items()):
        most = max(alike, key=lambda target: (target.room.get(name, 0), target.node.name))
        largest = most.room.get(name, 0)
        if not largest:
            return f"needs {count} {name}, and no target has any free"
        if largest < count:
            block = f"the largest free block on a target is {largest} ({most.node.name})"
            return f"needs {count} {name}; {block}"
    wanted = " and ".join(f"{count} {name}" for name, count in sorted(pod.gpus.items()))
    return f"needs {wanted}, and no target has both free"


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
    fleet: Fleet,
    tunables: Tunables,
    donors: Sequence[GpuNode],
    targets: Sequence[GpuNode],
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
