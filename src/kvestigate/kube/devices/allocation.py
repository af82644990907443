"""Which devices a set of claims gets on a node: the first solution of an exhaustive search. Pure.

Claims, their requests and the devices of a request are tried in order, each device in the order
of pools, slices and devices, so that equal clusters give equal allocations, and the same ones as
kube-scheduler's. A request for several devices tries combinations, not permutations. The search
can take for ever on claims that were made for that, so it ends after `MOST_STEPS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kvestigate.kube.devices.capacity import Amounts, consumed, is_enough
from kvestigate.kube.devices.constraints import Constraint, followed
from kvestigate.kube.devices.counters import CounterBook
from kvestigate.kube.devices.holdings import Holdings
from kvestigate.kube.devices.pools import (
    Candidate,
    DeviceId,
    NodePool,
    consumption,
    is_at,
)
from kvestigate.kube.devices.results import Chosen, allocation_of
from kvestigate.kube.devices.selectors import SelectorError, matches
from kvestigate.kube.node_selection import Labels
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
MOST_STEPS = 50_000
"""Devices that are looked at, in less than a second. kube-scheduler gives up after ten seconds."""
_REPELLING = ("NoSchedule", "NoExecute")


class AllocationError(Exception):
    """A claim or class is wrong, so that the claims cannot be allocated on any node."""


class InvalidPools(Exception):
    """The claims do not fit on the node, and the node has pools that contradict themselves."""


class _TooMany(Exception):
    """The claim would have more than `MOST_DEVICES`; other devices would not change that."""


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
    held: Holdings
    counters: CounterBook
    claims: Sequence[ResourceClaim]
    steps: int = 0
    usable: tuple[Candidate, ...] = ()
    """The devices of all pools."""
    wishes: list[list[list[_Wish]]] = field(default_factory=list)
    """By claim and request, the alternatives."""
    constraints: list[list[Constraint]] = field(default_factory=list)
    """By claim."""
    chosen: list[list[Chosen]] = field(default_factory=list)
    """By claim."""
    marked: dict[DeviceId, set[int]] = field(default_factory=dict)
    """Devices that were chosen, with the claims that they were chosen for."""
    shares: dict[DeviceId, list[Amounts]] = field(default_factory=dict)
    """What the chosen shares of a device take of its capacities."""
    selectable: dict[tuple[int, str, DeviceId], bool] = field(default_factory=dict)

    # -- preparation ---------------------------------------------------------------------------

    def prepare(self) -> None:
        self.usable = tuple(candidate for pool in self.pools for candidate in pool.candidates)
        for number, claim in enumerate(self.claims):
            requests = claim.spec.devices.requests
            wishes = [self._alternatives(number, request) for request in requests]
            fewest = sum(min(wish.count for wish in each) for each in wishes)
            if fewest > MOST_DEVICES:
                raise AllocationError(
                    f"claim {_name(claim)}: number of requested devices {fewest} exceeds the claim "
                    f"limit of {MOST_DEVICES}"
                )
            self.wishes.append(wishes)
            self.constraints.append(followed(claim.spec.devices.constraints))
            self.chosen.append([])

    def _alternatives(self, number: int, request: DeviceRequest) -> list[_Wish]:
        if request.exactly is not None:
            return [self._wish(number, request.name, request.name, request.exactly)]
        return [
            self._wish(number, f"{request.name}/{each.name}", each.name, each)
            for each in request.first_available
        ]

    def _wish(self, number: int, name: str, own: str, request: SubRequest) -> _Wish:
        about = f"claim {_name(self.claims[number])}, request {own}"
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
            for candidate in self.usable
            if self._suits(number, wish, candidate) and self._has_capacity(wish, candidate)
        )

    # -- the search ----------------------------------------------------------------------------

    def solve(self, claim: int, request: int) -> bool:
        """Choose devices for this request and all that follow."""
        if claim == len(self.claims):
            return True
        if request == len(self.wishes[claim]):
            try:
                return self.solve(claim + 1, 0)
            except _TooMany:
                return False
        wishes = self.wishes[claim][request]
        rest: Callable[[], bool] = lambda: self.solve(claim, request + 1)  # noqa: E731
        if self.claims[claim].spec.devices.requests[request].exactly is not None:
            return self._fill(claim, wishes[0], 0, 0, rest)
        return self._first(claim, wishes, rest)

    def _first(self, claim: int, wishes: Sequence[_Wish], rest: Callable[[], bool]) -> bool:
        """Choose devices for one of the alternatives."""
        too_many = 0
        for wish in wishes:
            try:
                if self._fill(claim, wish, 0, 0, rest):
                    return True
            except _TooMany:
                too_many += 1
        if too_many == len(wishes):
            raise _TooMany
        return False

    def _fill(
        self, claim: int, wish: _Wish, have: int, start: int, rest: Callable[[], bool]
    ) -> bool:
        """Choose the devices of a request that are still missing, from `start` on."""
        if wish.every is not None and not wish.every:
            return False
        if have == wish.count:
            return rest()
        if len(self.chosen[claim]) + wish.count - have > MOST_DEVICES:
            raise _TooMany
        candidates = self.usable if wish.every is None else wish.every
        for position in range(start, len(candidates)):
            undo = self._choose(claim, wish, candidates[position])
            if undo is not None:
                done = False
                try:
                    done = self._fill(claim, wish, have + 1, position + 1, rest)
                finally:
                    if not done:
                        undo()
                if done:
                    return True
                if self._are_too_few(claim, wish, candidates[position + 1 :], wish.count - have):
                    return False
            if wish.every is not None:
                return False  # one of all devices cannot be had
        return False

    def _are_too_few(
        self, claim: int, wish: _Wish, candidates: Sequence[Candidate], missing: int
    ) -> bool:
        """Whether the devices cannot be enough. Those not looked at yet are not looked at now:
        a selector that fails there would be an error that kube-scheduler does not meet."""
        known = self.selectable
        return missing > sum(
            known.get((claim, wish.name, candidate.id), True) for candidate in candidates
        )

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise AllocationError(f"node {self.node}: timed out trying to allocate devices")

    def _choose(self, claim: int, wish: _Wish, candidate: Candidate) -> Callable[[], None] | None:
        """Take the device for the request, if it can be had; the function undoes that."""
        self._step()
        if (
            self._is_taken(claim, wish, candidate)
            or not self._suits(claim, wish, candidate)
            or not self._has_capacity(wish, candidate)
        ):
            return None
        device = candidate.device
        counted = not (device.allow_multiple_allocations and self._is_shared(candidate.id))
        needs = consumption(device) if counted else {}
        if not self.counters.suffices(candidate, needs):
            return None
        if _repels(device.taints, wish.request.tolerations):
            return None
        if not self._constrain(claim, wish, candidate):
            return None
        self.counters.take(candidate, needs)
        self._mark(claim, wish, candidate)
        self.chosen[claim].append(Chosen(wish.name, wish.request, candidate))

        def undo() -> None:
            self.chosen[claim].pop()
            self._unmark(claim, candidate)
            for constraint in reversed(self.constraints[claim]):
                constraint.remove(wish.name)
            self.counters.give_back(candidate, needs)

        return undo

    # -- whether a device can be had -----------------------------------------------------------

    def _is_taken(self, claim: int, wish: _Wish, candidate: Candidate) -> bool:
        claims = self.marked.get(candidate.id, set())
        if wish.request.admin_access:
            return claim in claims
        return bool(claims) or self.held.is_whole(candidate.id)

    def _is_shared(self, device: DeviceId) -> bool:
        return self.held.is_shared(device) or bool(self.shares.get(device))

    def _has_capacity(self, wish: _Wish, candidate: Candidate) -> bool:
        if wish.request.capacity is None and not candidate.device.allow_multiple_allocations:
            return True
        used = Counter(self.held.consumed(candidate.id))
        for share in self.shares.get(candidate.id, ()):
            used.update(share)
        return is_enough(candidate.device, wish.request.capacity, used)

    def _constrain(self, claim: int, wish: _Wish, candidate: Candidate) -> bool:
        added: list[Constraint] = []
        for constraint in self.constraints[claim]:
            if constraint.add(wish.name, candidate):
                added.append(constraint)
                continue
            for each in reversed(added):
                each.remove(wish.name)
            if wish.every is not None:
                raise AllocationError(
                    f"claim {_name(self.claims[claim])}, request {wish.name.rpartition('/')[2]}: "
                    f"cannot add device {'/'.join(candidate.id)} because a claim constraint would "
                    "not be satisfied"
                )
            return False
        return True

    def _mark(self, claim: int, wish: _Wish, candidate: Candidate) -> None:
        device = candidate.device
        if not device.allow_multiple_allocations:
            self.marked.setdefault(candidate.id, set()).add(claim)
            return
        amounts = consumed(device, wish.request.capacity)
        share = {name: amount.nanos for name, amount in amounts.items()}
        self.shares.setdefault(candidate.id, []).append(share)

    def _unmark(self, claim: int, candidate: Candidate) -> None:
        if candidate.device.allow_multiple_allocations:
            self.shares[candidate.id].pop()
        else:
            self.marked[candidate.id].discard(claim)

    def _suits(self, claim: int, wish: _Wish, candidate: Candidate) -> bool:
        """Whether the device matches the selectors and can be used by the node."""
        key = (claim, wish.name, candidate.id)
        known = self.selectable.get(key)
        if known is None:
            known = self.selectable[key] = self._matches(claim, wish, candidate)
        return known

    def _matches(self, claim: int, wish: _Wish, candidate: Candidate) -> bool:
        device, driver = candidate.device, candidate.slice.driver
        about = f"class {wish.device_class.metadata.name}"
        try:
            if not matches(wish.device_class.spec.selectors, device, driver):
                return False
            about = f"claim {_name(self.claims[claim])}"
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
    held: Holdings,
    claims: Sequence[ResourceClaim],
) -> list[Allocation] | None:
    """The allocation of each claim on a node; None if the node lacks devices for them.

    `held` are the devices of other claims. Raises AllocationError if a claim or its class is
    wrong, and InvalidPools if the node lacks devices and some of its pools are invalid.
    """
    search = _Search(node, labels, pools, classes, held, CounterBook(pools, held), claims)
    search.prepare()
    try:
        found = search.solve(0, 0)
    except _TooMany:
        found = False
    except RecursionError:
        raise AllocationError(f"node {node}: the claims ask for too many devices") from None
    if not found:
        if any(pool.invalid for pool in pools):
            raise InvalidPools("invalid resource pools were encountered")
        return None
    return [
        allocation_of(claim, chosen, classes, node)
        for claim, chosen in zip(claims, search.chosen, strict=True)
    ]


def _name(claim: ResourceClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


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
