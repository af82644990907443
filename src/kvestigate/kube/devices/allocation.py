"""Which devices a set of claims gets on a node: the first solution of an exhaustive search. Pure.

Claims, their requests and the devices of a request are tried in order, each device in the order
of pools, slices and devices, so that equal clusters give equal allocations. A request for several
devices tries combinations, not permutations. Devices that consume shared counters or need
conditions before a pod is bound are not allocated, and requests for a part of a device's capacity
are refused: those features are not there yet.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

from kvestigate.kube.devices.constraints import Choice, allowed
from kvestigate.kube.devices.pools import Candidate, NodePool, is_at
from kvestigate.kube.devices.results import allocation_of
from kvestigate.kube.devices.selectors import SelectorError, matches
from kvestigate.kube.feasibility.selection import Labels
from kvestigate.kube.views.devices import (
    Allocation,
    DeviceClass,
    DeviceRequest,
    DeviceTaint,
    DeviceToleration,
    ResourceClaim,
    SubRequest,
)

MOST_DEVICES = 32
"""As many devices fit into one claim's allocation."""
_REPELLING = ("NoSchedule", "NoExecute")

DeviceId = tuple[str, str, str]


class AllocationError(Exception):
    """A claim or class is wrong, so that the claims cannot be allocated on any node."""


class InvalidPools(Exception):
    """The claims do not fit on the node, and the node has pools that contradict themselves."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """One request, or one alternative of a request."""

    name: str
    """`REQUEST` or `REQUEST/ALTERNATIVE`."""
    request: SubRequest
    device_class: DeviceClass
    count: int
    every: tuple[Candidate, ...] | None = None
    """The devices of a request for all devices."""


@dataclass(slots=True)
class _Search:
    node: str
    labels: Labels
    pools: Sequence[NodePool]
    classes: Mapping[str, DeviceClass]
    taken: Container[DeviceId]
    claims: Sequence[ResourceClaim]
    usable: tuple[Candidate, ...] = ()
    """The devices of all pools."""
    wishes: list[list[list[_Wish]]] = field(default_factory=list)
    """By claim and request, the alternatives."""
    chosen: list[list[tuple[_Wish, Candidate]]] = field(default_factory=list)
    """By claim."""
    selectable: dict[tuple[int, str, DeviceId], bool] = field(default_factory=dict)

    # -- preparation ---------------------------------------------------------------------------

    def prepare(self) -> None:
        self.usable = tuple(candidate for pool in self.pools for candidate in pool.candidates)
        for number, claim in enumerate(self.claims):
            name = f"{claim.metadata.namespace}/{claim.metadata.name}"
            requests = claim.spec.devices.requests
            wishes = [self._alternatives(number, name, request) for request in requests]
            fewest = sum(min(wish.count for wish in each) for each in wishes)
            if fewest > MOST_DEVICES:
                raise AllocationError(
                    f"claim {name}: number of requested devices {fewest} exceeds the claim limit "
                    f"of {MOST_DEVICES}"
                )
            self.wishes.append(wishes)
            self.chosen.append([])

    def _alternatives(self, number: int, claim: str, request: DeviceRequest) -> list[_Wish]:
        if request.exactly is not None:
            return [self._wish(number, claim, request.name, request.exactly)]
        return [
            self._wish(number, claim, f"{request.name}/{each.name}", each)
            for each in request.first_available
        ]

    def _wish(self, number: int, claim: str, name: str, request: SubRequest) -> _Wish:
        about = f"claim {claim}, request {name}"
        if request.capacity is not None:
            raise AllocationError(
                f"{about}: has capacity requests, but the DRAConsumableCapacity feature is disabled"
            )
        kind = self.classes.get(request.device_class_name)
        if kind is None:
            missing = f'deviceclass.resource.k8s.io "{request.device_class_name}" not found'
            raise AllocationError(
                f"{about}: could not retrieve device class {request.device_class_name}: {missing}"
            )
        wish = _Wish(name, request, kind, request.count)
        if request.allocation_mode != "All":
            return wish
        every = self._every(number, about, wish)
        return _Wish(name, request, kind, len(every), every)

    def _every(self, number: int, about: str, wish: _Wish) -> tuple[Candidate, ...]:
        for pool in self.pools:
            state = "being updated" if pool.incomplete else "invalid" if pool.invalid else ""
            if state:
                where = f"resource pool {pool.driver}/{pool.name}"
                raise AllocationError(
                    f"{about}: asks for all devices, but {where} is currently {state}"
                )
        return tuple(
            candidate
            for pool in self.pools
            for candidate in pool.candidates
            if self._suits(number, wish, candidate)
        )

    # -- the search ----------------------------------------------------------------------------

    def solve(self, claim: int, request: int) -> bool:
        """Choose devices for this request and all that follow."""
        if claim == len(self.claims):
            return True
        if request == len(self.wishes[claim]):
            return self.solve(claim + 1, 0)
        rest: Callable[[], bool] = lambda: self.solve(claim, request + 1)  # noqa: E731
        return any(self._fill(claim, wish, 0, 0, rest) for wish in self.wishes[claim][request])

    def _fill(
        self, claim: int, wish: _Wish, have: int, start: int, rest: Callable[[], bool]
    ) -> bool:
        """Choose the devices of a request that are still missing, from `start` on."""
        if wish.every is not None and not wish.every:
            return False
        if have == wish.count:
            return rest()
        chosen = self.chosen[claim]
        if len(chosen) >= MOST_DEVICES:
            return False
        candidates = self.usable if wish.every is None else wish.every
        for position in range(start, len(candidates)):
            candidate = candidates[position]
            if self._may_have(claim, wish, candidate):
                chosen.append((wish, candidate))
                if self._fill(claim, wish, have + 1, position + 1, rest):
                    return True
                chosen.pop()
            if wish.every is not None:
                return False  # one of all devices cannot be had
        return False

    def _may_have(self, claim: int, wish: _Wish, candidate: Candidate) -> bool:
        if wish.request.admin_access:
            if any(other.id == candidate.id for _, other in self.chosen[claim]):
                return False
        elif self._in_use(candidate):
            return False
        if not self._suits(claim, wish, candidate) or candidate.device.consumes_counters:
            return False
        if _repels(candidate.device.taints, wish.request.tolerations):
            return False
        new: Choice = (wish.name, candidate)
        chosen = [(other.name, device) for other, device in self.chosen[claim]]
        constraints = self.claims[claim].spec.devices.constraints
        return all(allowed(constraint, chosen, new) for constraint in constraints)

    def _in_use(self, candidate: Candidate) -> bool:
        return candidate.id in self.taken or any(
            other.id == candidate.id for chosen in self.chosen for _, other in chosen
        )

    def _suits(self, claim: int, wish: _Wish, candidate: Candidate) -> bool:
        """Whether the device matches the selectors and can be used by the node."""
        key = (claim, wish.name, candidate.id)
        known = self.selectable.get(key)
        if known is None:
            known = self.selectable[key] = self._matches(claim, wish, candidate)
        return known

    def _matches(self, claim: int, wish: _Wish, candidate: Candidate) -> bool:
        device, driver = candidate.device, candidate.slice.driver
        if device.binding_conditions:
            return False
        metadata = self.claims[claim].metadata
        about = f"class {wish.device_class.metadata.name}"
        try:
            if not matches(wish.device_class.spec.selectors, device, driver):
                return False
            about = f"claim {metadata.namespace}/{metadata.name}"
            if not matches(wish.request.selectors, device, driver):
                return False
        except SelectorError as error:
            raise AllocationError(f"{about}: {error}") from None
        if candidate.slice.per_device_node_selection:
            return is_at(device, self.node, self.labels)
        return True


def allocate(
    node: str,
    labels: Labels,
    pools: Sequence[NodePool],
    classes: Mapping[str, DeviceClass],
    taken: Container[DeviceId],
    claims: Sequence[ResourceClaim],
) -> list[Allocation] | None:
    """The allocation of each claim on a node; None if the node lacks devices for them.

    `taken` are the devices of other claims. Raises AllocationError if a claim or its class is
    wrong, and InvalidPools if the node lacks devices and some of its pools are invalid.
    """
    search = _Search(node, labels, pools, classes, taken, claims)
    search.prepare()
    if not search.solve(0, 0):
        if any(pool.invalid for pool in pools):
            raise InvalidPools("invalid resource pools were encountered")
        return None
    return [
        allocation_of(
            claim,
            [(wish.name, wish.request, candidate) for wish, candidate in chosen],
            classes,
            node,
        )
        for claim, chosen in zip(claims, search.chosen, strict=True)
    ]


def _repels(taints: Sequence[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> bool:
    return any(
        taint.effect in _REPELLING
        and not any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
    )


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value
