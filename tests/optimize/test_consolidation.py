"""Plans keep their promises, whatever the fleet."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvestigate.errors import UsageError
from kvestigate.optimize.collect import from_audit
from kvestigate.optimize.consolidation import Consolidation, Role, Tunables, plan
from kvestigate.optimize.model import Fleet, GpuNode, GpuPod
from tests.optimize.conftest import AUDIT, GPU, fleet, node


def moves(found: Consolidation) -> list[tuple[str, str]]:
    return [(it.pod, it.target) for it in found.moves]


def test_the_worked_example() -> None:
    found = plan(from_audit(AUDIT.read_text(), "example"), Tunables(min_free_nodes=2))
    assert [(it.namespace, it.pod, it.gpus, it.donor, it.target) for it in found.moves] == [
        ("research", "notebook-0", 1, "node-01", "node-08"),
        ("research", "sweep-0", 1, "node-02", "node-08"),
    ]
    assert found.drained == ("node-01", "node-02")
    denser = {it.node: (it.before, it.after) for it in found.nodes if it.change > 0}
    assert denser == {"node-08": (4, 6)}
    assert (found.empty_before, found.empty_after, found.enough_empty) == (0, 2, True)
    assert (found.unplaceable, found.held, found.notes) == ((), (), ())


def test_the_number_of_empty_nodes_is_reported_and_not_enforced() -> None:
    one = fleet(node("a", (1,)), node("b", (4,)))
    few, many = plan(one, Tunables(min_free_nodes=0)), plan(one, Tunables(min_free_nodes=9))
    assert few.moves == many.moves
    assert (few.enough_empty, many.enough_empty) == (True, False)


def test_the_largest_go_first_and_where_they_leave_the_least() -> None:
    tight, wide = node("tight", (5,)), node("wide", (4,))
    found = plan(fleet(node("a", (1, 2)), node("b", (4,)), tight, wide), Tunables(0.6))
    # A target is what is not below 60%: only `tight` is one, and the largest does not fit.
    assert moves(found) == [("a-1", "tight"), ("a-0", "tight")]
    assert {it.pod for it in found.unplaceable} == {"b-0", "wide-0"}

    found = plan(fleet(node("a", (1, 2)), tight, wide), Tunables(0.4))
    assert moves(found) == [("a-1", "tight"), ("a-0", "tight")]
    found = plan(fleet(node("a", (1, 1)), node("closer", (6,)), wide), Tunables(0.4))
    assert moves(found) == [("a-0", "closer"), ("a-1", "closer")]


@pytest.mark.parametrize(
    ("load", "limit", "role"),
    [
        ((), 0.3, Role.NONE),
        ((2,), 0.25, Role.TARGET),
        ((2,), 0.26, Role.DONOR),
        ((8,), 0.3, Role.NONE),
        ((7,), 1.0, Role.DONOR),
        ((8,), 1.0, Role.NONE),
        ((1,), 0.0, Role.TARGET),
    ],
)
def test_a_donor_is_strictly_below_the_limit(
    load: tuple[int, ...], limit: float, role: Role
) -> None:
    (found,) = plan(fleet(node("n", load)), Tunables(limit)).nodes
    assert found.role is role


@pytest.mark.parametrize(
    ("donor", "target", "tunables", "reason"),
    [
        (
            node("a", (2,)),
            node("z", (7,)),
            Tunables(),
            "the largest free block on a target is 1 (z)",
        ),
        (node("a", (2,)), node("z", (8,)), Tunables(), "no node is a target"),
        (
            node("a", (2,)),
            node("z", (4,), model="T4"),
            Tunables(),
            "no target has the GPU model H100",
        ),
        (node("a", (2,)), node("z", (4,), closed="cordoned"), Tunables(), "no node is a target"),
        (node("a", (2,)), node("z", (4,)), Tunables(exclude_nodes=("z",)), "no node is a target"),
    ],
)
def test_what_fits_nowhere_is_named_with_its_reason_and_stays(
    donor: GpuNode, target: GpuNode, tunables: Tunables, reason: str
) -> None:
    found = plan(fleet(donor, target), tunables)
    assert found.moves == ()
    (staying,) = found.unplaceable
    assert (staying.pod, staying.node) == ("a-0", "a")
    assert reason in staying.reason


@pytest.mark.parametrize(
    ("namespace", "tunables", "reason"),
    [
        ("ml", Tunables(pins=("ml/a-*",)), "pinned by ml/a-*"),
        ("ml", Tunables(pins=("*/a-0",)), "pinned by */a-0"),
        ("ml", Tunables(exclude_namespaces=("ml",)), "namespace ml is excluded"),
        ("kube-system", Tunables(), "in a system namespace"),
    ],
)
def test_what_is_not_to_be_moved_is_held(namespace: str, tunables: Tunables, reason: str) -> None:
    found = plan(fleet(node("a", (1,), namespace=namespace), node("z", (4,))), tunables)
    assert (found.moves, found.unplaceable) == ((), ())
    assert [it.reason for it in found.held] == [reason]
    assert found.drained == ()


def test_an_excluded_donor_keeps_its_pods() -> None:
    found = plan(fleet(node("a", (1,)), node("z", (4,))), Tunables(exclude_nodes=("a",)))
    assert (found.moves, found.held, found.unplaceable) == ((), (), ())
    assert [it.why for it in found.nodes] == ["excluded", "4 free"]


def test_resources_are_not_taken_for_each_other() -> None:
    mig = {"nvidia.com/mig-1g.10gb": 1}
    donor = GpuNode("a", "", {**mig, GPU: 7}, mig, (GpuPod("ml", "a-0", mig),))
    found = plan(fleet(donor, node("z", (4,))), Tunables())
    assert [it.pod for it in found.unplaceable] == ["a-0"]


def test_a_reason_names_the_profile_that_is_missing_and_no_other() -> None:
    small, large = {"nvidia.com/mig-1g.10gb": 1}, "nvidia.com/mig-3g.40gb"
    donor = GpuNode("a", "", {"nvidia.com/mig-1g.10gb": 14}, small, (GpuPod("ml", "a-0", small),))
    other = GpuNode("z", "", {large: 4}, {large: 3}, (GpuPod("ml", "z-0", {large: 3}),))
    (kept,) = plan(fleet(donor, other), Tunables()).unplaceable
    assert kept.reason == "needs 1 nvidia.com/mig-1g.10gb, and no target has any free"


def test_where_every_node_is_a_donor_the_way_out_is_named() -> None:
    thin = fleet(node("a", (1,)), node("b", (1, 1)))
    found = plan(thin, Tunables())
    assert found.moves == ()
    assert found.notes == (
        "every node with free GPUs is a donor: "
        "--donor-max-util 0.25 turns the fullest into a target",
    )
    assert moves(plan(thin, Tunables(donor_max_util=0.25))) == [("a-0", "b")]


@pytest.mark.parametrize(
    ("tunables", "message"),
    [
        (Tunables(donor_max_util=1.5), "--donor-max-util 1.5 is not between 0 and 1"),
        (Tunables(donor_max_util=-0.1), "--donor-max-util -0.1 is not between 0 and 1"),
        (Tunables(pins=("sweep-*",)), "--pin sweep-*: is not NAMESPACE/PATTERN"),
        (Tunables(pins=("ml/",)), "--pin ml/: is not NAMESPACE/PATTERN"),
        (Tunables(exclude_nodes=("aa",)), "--exclude-node aa: no node with GPUs has this name"),
    ],
)
def test_tunables_that_mean_nothing_are_refused(tunables: Tunables, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("*", r"\*")) as refused:
        plan(fleet(node("a", (1,))), tunables)
    assert refused.value.hint


def test_a_pin_that_matches_nothing_is_noted() -> None:
    found = plan(fleet(node("a", (1,))), Tunables(pins=("ml/b-*",)))
    assert "--pin ml/b-* matches no pod with GPUs" in found.notes


SIZES = st.lists(st.sampled_from((1, 1, 1, 2, 2, 4, 8)), max_size=6)


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    nodes = []
    for at in range(draw(st.integers(0, 7))):
        kept = draw(SIZES)
        while sum(kept) > 8:
            kept.pop()
        nodes.append(
            node(
                f"n{at}",
                kept,
                model=draw(st.sampled_from(("", "H100", "T4"))),
                closed=draw(st.sampled_from(("", "", "cordoned"))),
                namespace=draw(st.sampled_from(("ml", "web", "kube-system"))),
            )
        )
    return fleet(*nodes)


TUNABLES = st.builds(
    Tunables,
    donor_max_util=st.sampled_from((0.0, 0.2, 0.3, 0.5, 0.8, 1.0)),
    min_free_nodes=st.integers(0, 3),
    exclude_namespaces=st.sampled_from(((), ("web",))),
    pins=st.sampled_from(((), ("ml/n1-*",), ("*/*-0",))),
)


@settings(max_examples=500)
@given(fleets(), TUNABLES)
def test_a_plan_can_be_carried_out(before: Fleet, tunables: Tunables) -> None:
    found = plan(before, tunables)
    roles = {it.node: it.role for it in found.nodes}
    homes = {pod.path: node.name for node in before.nodes for pod in node.pods}

    moved = Counter(f"{it.namespace}/{it.pod}" for it in found.moves)
    assert set(moved.values()) <= {1}  # never twice
    for it in found.moves:
        assert homes[f"{it.namespace}/{it.pod}"] == it.donor
        assert (roles[it.donor], roles[it.target]) == (Role.DONOR, Role.TARGET)
        assert it.namespace not in {*tunables.exclude_namespaces, "kube-system"}
        assert not any(fnmatchcase(f"{it.namespace}/{it.pod}", pin) for pin in tunables.pins)

    for then, now in zip(found.nodes, before.nodes, strict=True):
        assert 0 <= then.after <= max(then.capacity, then.before)  # never over capacity
        if then.role is Role.DONOR:
            assert now.share < tunables.donor_max_util
            assert then.after <= then.before
        elif then.role is Role.TARGET:
            assert not now.closed
            assert then.after >= then.before
        else:
            assert then.after == then.before
    assert sum(it.after for it in found.nodes) == sum(it.before for it in found.nodes)

    on_donors = {path for path, home in homes.items() if roles[home] is Role.DONOR}
    stayed = [f"{it.namespace}/{it.pod}" for it in (*found.unplaceable, *found.held)]
    assert on_donors == {*moved, *stayed}  # each is accounted for
    assert len(on_donors) == len(moved) + len(stayed)  # once


@given(fleets(), TUNABLES)
def test_the_order_in_which_pods_are_told_does_not_matter(
    before: Fleet, tunables: Tunables
) -> None:
    shuffled = Fleet(
        before.captured_at,
        before.server,
        tuple(
            GpuNode(it.name, it.model, it.offered, it.allocated, it.pods[::-1], it.closed)
            for it in before.nodes
        ),
    )
    assert plan(shuffled, tunables) == plan(before, tunables) == plan(before, tunables)


@given(fleets(), TUNABLES)
def test_a_pod_that_stays_would_not_fit_in_what_is_left(before: Fleet, tunables: Tunables) -> None:
    found = plan(before, tunables)
    left = {it.node: it.capacity - it.after for it in found.nodes if it.role is Role.TARGET}
    models = {it.name: it.model for it in before.nodes}
    for staying in found.unplaceable:
        alike = [
            room
            for name, room in left.items()
            if not models[name] or not models[staying.node] or models[name] == models[staying.node]
        ]
        assert staying.gpus > max(alike, default=0)
