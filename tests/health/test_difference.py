"""Two audits, and what changed between them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kvestigate.errors import InputError
from kvestigate.health.audit import examine
from kvestigate.health.difference import AuditDifference, blocks, difference, parse
from kvestigate.render.encode import to_json
from kvestigate.render.plain import to_text
from kvestigate.snapshot import listings
from kvestigate.snapshot.exporters import GpuReading
from tests.health.snapshots import named, snapshot
from tests.snapshot.objects import container, node, pod

Given = Mapping[Any, Sequence[Any]]

NODE = node("n", cpu="4", pods="110", gpu="2")
POD = pod("p", container(cpu="1"), on="n")
TRAINING = pod("t", container(cpu="1", gpu="2"), on="n")
LARGE = pod("l", container(cpu="1500m", memory="3Gi"), on="n")
LOST = {**NODE, "status": {**NODE["status"], "conditions": [{"type": "Ready", "status": "False"}]}}


def between(before: Given, after: Given) -> AuditDifference:
    documents = [
        parse(to_json(examine(snapshot(it), "https://x.test")), "file") for it in (before, after)
    ]
    return difference(*documents)


def test_what_differs_looks_different() -> None:
    large, larger = (pod("p", container(memory=it), on="n") for it in ("2Ti", "2049Gi"))
    before, after = ({listings.NODES: [NODE], listings.PODS: [it]} for it in (large, larger))
    shown = to_text(blocks(between(before, after)))
    assert "2,199,023,255,552 B   2,200,096,997,376 B" in shown


def test_nothing_changed() -> None:
    same: Given = {listings.NODES: [NODE], listings.PODS: [POD]}
    found = between(same, same)
    assert (found.new_findings, found.gone_findings, found.changes) == ((), (), ())
    assert "no changes" in to_text(blocks(found))


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({}, {listings.NODES: [NODE]}, ("nodes", "n", "appeared", "", "", "")),
        ({listings.NODES: [NODE]}, {}, ("nodes", "n", "gone", "", "", "")),
        (
            {listings.NODES: [NODE]},
            {listings.NODES: [NODE], listings.PODS: [POD]},
            ("nodes", "n", "changed", "cpu_millis.requested", "0", "1000"),
        ),
        (
            {listings.NODES: [NODE]},
            {listings.NODES: [NODE], listings.PODS: [TRAINING]},
            ("gpu", "default/t/main/nvidia.com/gpu", "appeared", "", "", ""),
        ),
        (
            {listings.DEPLOYMENTS: [named("web", spec={"replicas": 2})]},
            {listings.DEPLOYMENTS: [named("web", spec={"replicas": 3})]},
            ("workloads", "Deployment/shop/web", "changed", "desired", "2", "3"),
        ),
    ],
)
def test_a_change_is_told(before: Given, after: Given, change: tuple[str, ...]) -> None:
    found = [
        (it.report, it.subject, it.what.value, it.field, it.before, it.after)
        for it in between(before, after).changes
    ]
    assert change in found


def gpus(*users: str, percent: float = 50) -> Given:
    """One GPU for each, by the name of the pod that has it."""
    return {
        listings.GPU_READINGS: [
            GpuReading(f"GPU-{index}", "n", str(index), percent, "ml", user, "main", percent * 10)
            for index, user in enumerate(users)
        ]
    }


def test_each_gpu_is_followed_by_its_uuid() -> None:
    (change,) = between(gpus("a", "b", "c"), gpus("a", "x", "c")).changes
    assert (change.subject, change.field) == ("GPU-1", "user")
    assert (change.before, change.after) == ("ml/b/main", "ml/x/main")


def test_what_gpus_do_at_the_moment_is_no_change() -> None:
    assert between(gpus("a", percent=3), gpus("a", percent=97)).changes == ()


def test_audits_of_two_servers_are_called_that() -> None:
    here, there = (
        parse(to_json(examine(snapshot({}), f"https://{name}.test")), "file") for name in "ab"
    )
    assert "of two servers: https://a.test and https://b.test" in to_text(
        blocks(difference(here, there))
    )
    assert "two servers" not in to_text(blocks(difference(here, here)))


def test_numbers_are_shown_as_people_read_them() -> None:
    before, after = {listings.NODES: [NODE]}, {listings.NODES: [NODE], listings.PODS: [LARGE]}
    shown = to_text(blocks(between(before, after)))
    assert "0 CPUs   1.5 CPUs" in shown
    assert "0 B      3.0 GiB" in shown


def test_findings_come_and_go() -> None:
    well, ill = {listings.NODES: [NODE]}, {listings.NODES: [LOST]}
    (new,) = between(well, ill).new_findings
    assert (new.severity, new.rule, new.subject) == ("critical", "node-not-ready", "Node/n")
    assert between(ill, well).gone_findings == (new,)
    assert "node-not-ready" in to_text(blocks(between(well, ill)))


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"{}", json.dumps({"schema": "kvestigate.audit/v2"}).encode()]
)
def test_other_files_are_refused(content: bytes) -> None:
    with pytest.raises(InputError, match=r"^monday\.json: ") as raised:
        parse(content, "monday.json")
    assert "audit --json" in (raised.value.hint or "")
