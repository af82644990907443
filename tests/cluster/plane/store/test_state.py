"""States are values: what is written to one shows in no other, and order is always right."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.plane.store.model import Change
from kvestigate.cluster.plane.store.state import EMPTY, PlaneState, apply, assemble, undo, way_back
from tests.contracts.store import JOBS, PODS, contents, exact, put, remove

NAMES = st.integers(0, 200).map(lambda n: f"n{n:03d}")
STEPS = st.lists(st.tuples(NAMES, st.booleans(), st.booleans()), max_size=300)


@given(STEPS)
def test_lists_stay_sorted_however_names_come_and_go(steps: list[tuple[str, bool, bool]]) -> None:
    state = EMPTY
    expected: set[str] = set()
    for name, adding, looking in steps:
        item = state.get(PODS, "default", name)
        if adding:
            expected.add(name)
            _, state = apply(state, [put(name, 0, item.revision if item else 0)], "", 0)
        elif item is not None:
            expected.remove(name)
            _, state = apply(state, [remove(name, item.revision)], "", 0)
        if looking:
            assert [each.name for _, each in state] == sorted(expected)
    assert [each.name for _, each in state] == sorted(expected)
    assert len(state) == len(expected)


@given(STEPS)
def test_every_state_stays_what_it_was_and_can_be_reached_again(
    steps: list[tuple[str, bool, bool]],
) -> None:
    state = EMPTY
    changes: list[Change] = []
    past: list[tuple[PlaneState, object, int]] = []
    for name, adding, remembering in steps:
        item = state.get(PODS, "default", name)
        if adding:
            done, state = apply(
                state, [put(name, len(changes), item.revision if item else 0)], "", 0
            )
            changes += done
        elif item is not None:
            done, state = apply(state, [remove(name, item.revision)], "", 0)
            changes += done
        if remembering and len(past) < 10:
            past.append((state, exact(state), len(changes)))
    for before, then, count in past:
        assert exact(before) == then
        assert exact(undo(state, changes[count:], before.revision)) == then
        _, restored = apply(state, way_back(state, before), "", 0)
        assert contents(restored) == contents(before)


@given(
    st.sets(st.tuples(st.sampled_from("xyz"), NAMES), max_size=30), st.sampled_from("wxy"), NAMES
)
def test_what_comes_after_a_key_is_counted_as_it_is_listed(
    keys: set[tuple[str, str]], namespace: str, name: str
) -> None:
    state = assemble([put(each, namespace=where) for where, each in sorted(keys)])
    pods, after = state.collection(PODS), (namespace, name)
    for scope in (None, namespace):
        assert pods.count_after(scope, after) == len(list(pods.items(scope, after)))


def test_equal_labels_are_one_value() -> None:
    labels = {"app": "web", "tier": "front"}
    state = assemble([put(name, labels=dict(labels)) for name in "ab"])
    a, b = (item for _, item in state)
    assert a.labels is b.labels
    assert a.labels == labels


def test_an_empty_collection_leaves_nothing_behind() -> None:
    state = assemble([put("a"), put("j", resource=JOBS)])
    _, state = apply(state, [remove("a", 1)], "", 0)
    assert list(state.collections) == [JOBS]
    assert len(state.collection(PODS)) == 0
    assert list(state.collection(PODS).items()) == []
