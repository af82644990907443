"""`plan` on a cluster that is really there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvestigate.cluster.assembly import process
from kvestigate.cluster.assembly.directory import clusters_directory, known
from kvestigate.planning.strategies import NAMES
from tests.cli.conftest import Invoke, Start, answering, kubeconfig


@pytest.fixture
def fleet(home: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two simulated nodes with four GPUs each."""
    state = home / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    up = invoke("up", "--name", "fleet", "--nodes", "2", "--host", "simulated", "--gpus", "4")
    assert up.code == 0, up.err
    yield
    for cluster in known(clusters_directory({"XDG_STATE_HOME": str(state)})):
        process.stop(cluster)


@pytest.mark.usefixtures("fleet")
def test_a_workload_is_planned_for(invoke: Invoke, home: Path) -> None:
    outcome = invoke("plan", "--gpu", "1", "--replicas", "4", "--json", "plan.json")
    assert outcome.code == 0, outcome.err
    assert "4 replicas of 1 GPU: fits" in outcome.out
    document = json.loads((home / "plan.json").read_text())
    assert document["schema"] == "kvestigate.plan/v1"
    assert {it["strategy"]: it["nodes"] for it in document["proposals"]} == {
        "bestfit": 1,
        "spread": 2,
        "pack": 1,
    }

    big = invoke("plan", "--gpu", "12")
    assert big.code == 1
    assert "No node has 12 free GPUs. The largest free block is 4 (node-" in big.out

    typo = invoke("plan", "--gpu", "1", "--exclude", "node-11")
    assert (typo.code, "the node does not exist" in typo.err) == (2, True)

    (home / "pod.yaml").write_text(
        "kind: Pod\nspec: {containers: [{resources: {limits: {nvidia.com/gpu: 5}}}]}\n"
    )
    written = invoke("plan", "-f", "pod.yaml")
    assert written.code == 1
    assert "No node has 5 free nvidia.com/gpu" in written.out
    instead = invoke("plan", "-f", "pod.yaml", "--gpu", "3")
    assert instead.out.startswith("1 replica of 3 GPUs: fits\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "no resources are given for a replica"),
        (("--gpu", "many"), "'many' is not a whole number"),
        (("-f", "absent.yaml"), "absent.yaml: cannot be read"),
        (("--gpu", "1", "--label", "a b"), "label selector 'a b'"),
    ],
)
def test_a_mistake_is_named(
    invoke: Invoke, home: Path, args: tuple[str, ...], message: str
) -> None:
    (home / "config").write_text(kubeconfig("http://127.0.0.1:1"))
    outcome = invoke("plan", "--kubeconfig", "config", *args)
    assert outcome.code == 2
    assert message in outcome.err


def test_nothing_is_promised_when_pods_are_not_seen(
    invoke: Invoke, start: Start, home: Path
) -> None:
    refusal = {"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}
    (home / "config").write_text(kubeconfig(start(answering(403, refusal)).url))
    outcome = invoke("plan", "--gpu", "1", "--kubeconfig", "config")
    assert (outcome.code, "free capacity is unknown: cannot list" in outcome.err) == (4, True)


def test_help_lists_the_registered_strategies(invoke: Invoke) -> None:
    shown = " ".join(invoke("plan", "--help").out.split())
    assert f"Show only this strategy: {', '.join(NAMES)}." in shown
