"""What becomes of dependents."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.controllers.garbage.graph import (
    FOREGROUND,
    ORPHAN,
    Decision,
    Graph,
    Node,
    OwnerState,
    Step,
    on_leaving,
    on_owners,
)
from kvestigate.kube import builtins
from kvestigate.kube.views.meta import Metadata, OwnerReference, PartialObject
from tests.cluster.controllers.builders import at, view

PODS = builtins.resource("pods")


def metadata(name: str, *owners: str, blocks: bool = True, **more: Any) -> Metadata:
    references = [
        {"kind": "Pod", "name": owner, "uid": f"uid-{owner}", "blockOwnerDeletion": blocks}
        for owner in owners
    ]
    return view(PartialObject, name, meta={"ownerReferences": references, **more}).metadata


def node(name: str, *owners: str, **more: Any) -> Node:
    return Node(PODS, metadata(name, *owners, **more))


def leaving(name: str, finalizer: str, *owners: str) -> Node:
    return node(name, *owners, deletionTimestamp=at(), finalizers=[finalizer])


def test_dependents_are_known_before_their_owner() -> None:
    graph = Graph()
    graph.put(PODS, metadata("child", "parent"))
    assert [each.metadata.name for each in graph.dependents("uid-parent")] == ["child"]
    graph.put(PODS, metadata("parent"))
    assert [each.metadata.name for each in graph.dependents("uid-parent")] == ["child"]


@pytest.mark.parametrize(
    ("old", "new", "all_of_it"),
    [
        (metadata("child", "parent"), metadata("child", "parent", labels={"a": "b"}), True),
        (metadata("child", "parent"), metadata("child", "other"), False),
        (metadata("child", "parent"), metadata("child", "parent", deletionTimestamp=at()), False),
        (metadata("child", "parent"), metadata("child", "parent", uid="another"), False),
        (None, metadata("child", "parent"), False),
    ],
    ids=["labels", "owners", "leaving", "another of that name", "new"],
)
def test_what_stays_with_its_owners_is_only_noted(
    old: Metadata | None, new: Metadata, all_of_it: bool
) -> None:
    graph = Graph()
    known = graph.put(PODS, metadata("child", "parent"))
    assert graph.refresh(old, new) is all_of_it
    assert (known.metadata is new) is all_of_it


def test_dependents_are_known_after_their_owner_too() -> None:
    graph = Graph()
    graph.put(PODS, metadata("parent"))
    graph.put(PODS, metadata("child", "parent"))
    graph.remove("uid-parent")
    assert [each.metadata.name for each in graph.dependents("uid-parent")] == ["child"]
    graph.remove("uid-child")
    assert graph.dependents("uid-parent") == []
    assert len(graph) == 0


@pytest.mark.parametrize(
    ("owners", "kept"),
    [
        ((), True),
        (("here",), True),
        (("here", "gone"), False),
        (("here", "waits"), False),
    ],
)
def test_what_is_kept_by_all_its_owners(owners: tuple[str, ...], kept: bool) -> None:
    graph = Graph()
    graph.put(PODS, metadata("here"))
    graph.put(PODS, leaving("waits", FOREGROUND).metadata)
    assert graph.is_kept(graph.put(PODS, metadata("child", *owners))) is kept


def test_a_new_owner_replaces_the_old_one() -> None:
    graph = Graph()
    graph.put(PODS, metadata("child", "a"))
    graph.put(PODS, metadata("child", "b"))
    assert graph.dependents("uid-a") == []
    assert len(graph.dependents("uid-b")) == 1


@pytest.mark.parametrize(
    ("it", "dependents", "expected"),
    [
        (node("a"), [], Decision(Step.NOTHING)),
        (node("a", "owner"), [], None),
        (leaving("a", ORPHAN), [node("b", "a")], Decision(Step.ORPHAN_DEPENDENTS)),
        (leaving("a", FOREGROUND), [], Decision(Step.FINISH_FOREGROUND)),
        (
            leaving("a", FOREGROUND),
            [node("b", "a")],
            Decision(Step.NOTHING, look_at=("uid-b",)),
        ),
        (
            leaving("a", FOREGROUND),
            [node("b", "a", blocks=False)],
            Decision(Step.FINISH_FOREGROUND),
        ),
        (leaving("a", "other", "owner"), [], Decision(Step.NOTHING)),
    ],
)
def test_what_its_own_deletion_asks(it: Node, dependents: Any, expected: Decision | None) -> None:
    assert on_leaving(it, dependents) == expected


SOLID, WAITING, DANGLING = OwnerState.SOLID, OwnerState.WAITING, OwnerState.DANGLING


def _owned(*states: OwnerState) -> list[tuple[OwnerReference, OwnerState]]:
    return [(OwnerReference(uid=str(n)), state) for n, state in enumerate(states)]


@pytest.mark.parametrize(
    ("it", "states", "dependents", "expected"),
    [
        (node("a"), [SOLID], [], Decision(Step.NOTHING)),
        (node("a"), [DANGLING], [], Decision(Step.DELETE)),
        (node("a"), [SOLID, DANGLING], [], Decision(Step.DROP_OWNERS, drop=("1",))),
        (node("a"), [WAITING, SOLID], [], Decision(Step.DROP_OWNERS, drop=("0",))),
        (node("a"), [WAITING], [], Decision(Step.DELETE)),
        (node("a"), [WAITING], [node("b", "a")], Decision(Step.DELETE_FOREGROUND)),
        (
            node("a"),
            [WAITING],
            [leaving("b", FOREGROUND, "a")],
            Decision(Step.DELETE_FOREGROUND, unblock=True),
        ),
        (node("a", finalizers=[ORPHAN]), [DANGLING], [], Decision(Step.DELETE_ORPHANING)),
        (node("a", finalizers=[FOREGROUND]), [DANGLING], [], Decision(Step.DELETE_FOREGROUND)),
    ],
)
def test_what_owners_mean(it: Node, states: Any, dependents: Any, expected: Decision) -> None:
    assert on_owners(it, _owned(*states), dependents) == expected
