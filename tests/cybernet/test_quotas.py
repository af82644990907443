"""Nobody gets more than there is for them, however many ask at once."""

from __future__ import annotations

import pytest

from kvestigate.cybernet import quotas
from kvestigate.cybernet.quotas import Holding
from kvestigate.cybernet.refusals import QuotaExceeded
from kvestigate.cybernet.spec import QuotaSpec

ADA, BOB = "research-agents/ada", "research-agents/bob"


def holding(name: str, owner: str = ADA, gpus: int = 1, memory: int = 10) -> Holding:
    return Holding("node-1", name, owner, gpus, memory)


@pytest.mark.parametrize(
    ("limits", "rule"),
    [
        (QuotaSpec(max_active_workspaces_per_identity=2), "max_active_workspaces_per_identity"),
        (QuotaSpec(max_total_active_workspaces=3), "max_total_active_workspaces"),
        (QuotaSpec(max_total_active_gpu=3), "max_total_active_gpu"),
        (QuotaSpec(max_total_active_memory=39), "max_total_active_memory"),
    ],
)
def test_one_too_many_is_refused_by_the_rule(limits: QuotaSpec, rule: str) -> None:
    held = [holding("a"), holding("b"), holding("c", BOB)]
    with pytest.raises(QuotaExceeded) as caught:
        quotas.check(limits, held, holding("d"))
    assert caught.value.reason == f"quotas.{rule}"


def test_the_last_place_may_be_taken() -> None:
    limits = QuotaSpec(3, 4, 4, 40)
    quotas.check(limits, [holding("a"), holding("b"), holding("c", BOB)], holding("d"))


def test_what_is_there_already_is_not_counted_twice() -> None:
    quotas.check(QuotaSpec(1, 1, 1, 10), [holding("a")], holding("a"))


def test_one_that_takes_no_gpu_is_not_kept_out_by_those_that_do() -> None:
    quotas.check(QuotaSpec(max_total_active_gpu=0), [], holding("a", gpus=0))


def test_what_the_operator_holds_is_not_counted() -> None:
    mixed = [holding("a", ""), holding("b"), holding("c", "other/ada"), holding("d", "research")]
    assert quotas.of_cyberspace(mixed, "research-agents") == [holding("b")]
