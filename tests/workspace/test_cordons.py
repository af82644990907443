"""Which cordons of nodes nobody needs any more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kvestigate.kube.views.core import Node, NodeSpec
from kvestigate.kube.views.meta import Metadata
from kvestigate.nodeops.cordon import CORDONED_FOR
from kvestigate.workspace.cordons import LeftCordon, cordon_reason, cordoned_for, is_left
from kvestigate.workspace.marker import Marker
from kvestigate.workspace.spec import GpuSpec, WorkspaceSpec

NOW = datetime(2026, 11, 18, 7, 0, 0, tzinfo=UTC)
PATH = "/opt/kvestigate-workspaces/a"


def node(annotation: str | None, *, cordoned: bool = True) -> Node:
    annotations = {} if annotation is None else {CORDONED_FOR: annotation}
    return Node(
        metadata=Metadata(name="node-1", annotations=annotations),
        spec=NodeSpec(unschedulable=cordoned),
    )


def marker(*, cordons: bool) -> Marker:
    spec = WorkspaceSpec("b", "node-1", gpu=GpuSpec(cordon_node=cordons))
    return Marker(workspace=spec, created_at="")


def test_a_node_says_what_it_is_cordoned_for() -> None:
    said = node(cordon_reason(PATH, NOW))
    assert cordoned_for(said) == LeftCordon("node-1", PATH, NOW)


@pytest.mark.parametrize(
    "said",
    [
        node(None),
        node(""),
        node(PATH),
        node("by hand"),
        node(f"{PATH} yesterday"),
        node(f"elsewhere {NOW:%Y-%m-%dT%H:%M:%SZ}"),
        node(cordon_reason(PATH, NOW), cordoned=False),
    ],
)
def test_what_a_person_did_is_not_ours(said: Node) -> None:
    assert cordoned_for(said) is None


@pytest.mark.parametrize(
    ("minutes", "markers", "left"),
    [
        (11, [], True),
        (11, [marker(cordons=False)], True),
        (11, [marker(cordons=True)], False),
        (9, [], False),
        (-5, [], False),
    ],
)
def test_which_cordons_are_left(minutes: int, markers: list[Marker], left: bool) -> None:
    cordon = LeftCordon("node-1", PATH, NOW - timedelta(minutes=minutes))
    assert is_left(cordon, markers, NOW) is left
