"""`optimize`: an audit that was kept is looked at, and a fleet that runs is probed and packed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.access import AccessOptions, resolve
from kvestigate.client.connect import connect
from tests.bed import Bed, Objects
from tests.cli.conftest import Invoke
from tests.optimize.conftest import AUDIT

# The fleet has 64 pods, which are processes here.
pytestmark = pytest.mark.timeout(120)

KEPT = ("--audit", str(AUDIT))
PAGE = Path(__file__).parents[2] / "docs" / "optimize.md"
FLAGS = ("--apply", "--i-understand-this-disrupts-workloads")


def test_an_audit_is_analyzed_with_every_definition(invoke: Invoke) -> None:
    done = invoke("optimize", "analyze", *KEPT)
    assert (done.code, done.err) == (0, "")
    assert "node-08   4/8         50%     4      2      partial   yes" in done.out
    for figure in (
        "stranded:        18 = free GPUs on partial nodes",
        "largest block:   7 = most free GPUs on a single node",
        "consolidation opportunity: yes",
        "next: kvestigate optimize plan --audit ",
        "total_free > largest_block AND partial > 1, here 18 > 7 and 3 > 1",
    ):
        assert figure in done.out


def test_a_plan_shows_tunables_rules_moves_and_what_comes_of_it(invoke: Invoke, home: Path) -> None:
    done = invoke(
        "optimize", "plan", *KEPT, "--min-free-nodes", "2", "--json", str(home / "plan.json")
    )
    assert (done.code, done.err) == (0, "")
    for line in (
        "--donor-max-util:         0.3",
        "--min-free-nodes:         2 (reported, not enforced)",
        "donor:       0 < allocated / capacity < 0.3: its pods are moved away",
        "research/notebook-0   1      node-01   node-08",
        "node-08   target   4 free      4/8   6/8     +2       50% -> 75%",
        "2 moves; empties node-01, node-02; fills node-08 (50% -> 75%); empty nodes 0 -> 2",
        "wanted empty nodes: 2, reached",
    ):
        assert line in done.out
    assert len(json.loads((home / "plan.json").read_text())["moves"]) == 2


def test_tunables_are_heard(invoke: Invoke) -> None:
    pinned = invoke(
        "optimize", "plan", *KEPT, "--pin", "research/sweep-*", "--exclude-node", "node-01",
        "--exclude-namespace", "serving", "--min-free-nodes", "3", "-o", "json",
    )  # fmt: skip
    found = json.loads(pinned.out)
    assert found["moves"] == []
    assert [it["reason"] for it in found["held"]] == ["pinned by research/sweep-*"]
    assert not found["enough_empty"]
    bold = invoke("optimize", "plan", *KEPT, "--donor-max-util", "0.6")
    assert "not moved because no target fits:" in bold.out
    assert "no node is a target" in bold.out
    assert "--donor-max-util 0.5 turns the fullest into a target" in bold.out


@pytest.mark.parametrize("verb", ["analyze", "plan", "probe-gpu", "apply"])
def test_one_source_is_needed(invoke: Invoke, verb: str) -> None:
    for words in ((), (*KEPT, "--live")):
        refused = invoke("optimize", verb, *words)
        assert (refused.code, refused.out) == (2, "")
        assert "hint: give --audit FILE" in refused.err
    lost = invoke("optimize", verb, "--audit", "nowhere.json")
    assert (lost.code, "nowhere.json: cannot be read" in lost.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan", *KEPT, "--pin", "sweep"), "--pin sweep: is not NAMESPACE/PATTERN"),
        (("plan", *KEPT, "--donor-max-util", "30"), "--donor-max-util 30 is not between 0 and 1"),
        (("plan", *KEPT, "--exclude-node", "node-1"), "did you mean 'node-01'?"),
        (("plan", *KEPT, "--min-free-nodes", "-1"), "is not a whole number"),
    ],
)
def test_what_means_nothing_is_refused(
    invoke: Invoke, words: tuple[str, ...], message: str
) -> None:
    refused = invoke("optimize", *words)
    assert (refused.code, message in refused.err) == (2, True), refused.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "a b"), "--by a b:"),
        (("--prices", "nowhere.yaml"), "nowhere.yaml: cannot be read: No such file or directory"),
    ],
)
def test_waste_refuses_what_it_cannot_use(
    invoke: Invoke, words: tuple[str, ...], message: str
) -> None:
    refused = invoke("optimize", "waste", *words)
    assert (refused.code, message in refused.err) == (2, True), refused.err


def test_watch_refuses_a_pause_that_is_none(invoke: Invoke) -> None:
    refused = invoke("optimize", "watch", "--keep", "gpus.jsonl", "--every", "0")
    assert (refused.code, "--every 0" in refused.err) == (2, True), refused.err


def test_health_needs_a_cluster(invoke: Invoke) -> None:
    refused = invoke("optimize", "health")
    assert refused.code != 0
    assert "error:" in refused.err


class RunningFleet:
    """The scenario `gpu-fleet`, once all of it runs."""

    def __init__(self, home: Path) -> None:
        self.kubeconfig = home / "kubeconfig"
        self._environ = os.environ | {
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "KUBECONFIG": str(self.kubeconfig),
        }
        self._run("up", "--name", "fleet", "--scenario", "gpu-fleet")
        try:
            self.until("statefulsets", all_ready(4))
            self.until("deployments", lambda found: ready(found, "sweep-1", "sweep-2") == 4)
            self.until("daemonsets", lambda found: ready_pods(found, "direct-node-access") == 8)
        except BaseException:
            self.close()
            raise

    def _run(self, *words: str) -> None:
        command = [sys.executable, "-m", "kvestigate", *words]
        subprocess.run(command, env=self._environ, check=True, timeout=60, capture_output=True)

    def until(self, plural: str, enough: Callable[[Objects], bool]) -> None:
        async def wait() -> None:
            access = resolve(AccessOptions(kubeconfig=str(self.kubeconfig)), {}, None)
            async with connect(access) as api:
                await Bed(api, namespace="").until(plural, enough)

        asyncio.run(wait())

    def create(self, kind: str, body: dict[str, Any]) -> None:
        async def make() -> None:
            access = resolve(AccessOptions(kubeconfig=str(self.kubeconfig)), {}, None)
            async with connect(access) as api:
                await Bed(api).create(kind, body)

        asyncio.run(make())

    def close(self) -> None:
        self._run("down", "--name", "fleet", "--delete")


def ready(found: Objects, *names: str) -> int:
    return sum((found.get(name, {}).get("status") or {}).get("readyReplicas", 0) for name in names)


def ready_pods(found: Objects, name: str) -> int:
    return int((found.get(name, {}).get("status") or {}).get("numberReady") or 0)


def all_ready(count: int) -> Callable[[Objects], bool]:
    def enough(found: Objects) -> bool:
        return len(found) == count and all(
            it["status"].get("readyReplicas") == it["spec"]["replicas"] for it in found.values()
        )

    return enough


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    running = RunningFleet(tmp_path_factory.mktemp("fleet"))
    yield running
    running.close()


@pytest.fixture
def live(fleet: RunningFleet, monkeypatch: pytest.MonkeyPatch) -> RunningFleet:
    monkeypatch.setenv("KUBECONFIG", str(fleet.kubeconfig))
    return fleet


def transcripts(word: str) -> list[tuple[str, str]]:
    """Commands of the page with `word` among theirs, and what they say."""
    blocks = re.findall(r"^```console cluster\n\$ (.*?)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    found = [(command, said) for command, said in blocks if word in command.split()]
    assert found
    return found


def check(invoke: Invoke, command: str, said: str) -> None:
    """A line `...` stands for any lines; pods of Deployments have names of their own."""
    done = invoke(*command.split()[1:])
    pattern = "".join(
        r"(?:.*\n)*?" if line == "...\n" else re.escape(line)
        for line in said.splitlines(keepends=True)
    )
    assert re.fullmatch(pattern, done.out + done.err), f"{command} says:\n{done.out}{done.err}"


def test_the_page_shows_what_kept_audits_say(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(AUDIT.parent)
    for command, said in transcripts("--audit"):
        check(invoke, command, said)


@pytest.mark.workflow
@pytest.mark.usefixtures("live")
def test_the_page_shows_what_the_fleet_says(invoke: Invoke) -> None:
    for command, said in transcripts("--live"):
        check(invoke, command, said)


TABLE = """\
node-01 2/8 25.0 174.4/764.7 GiB (22.8%) 0.49 kW (10.3%) 35°C active saturated
node-02 2/8 12.5 157.2/764.7 GiB (20.6%) 0.59 kW (12.4%) 59°C active saturated
node-03 8/8 24.8 617.3/764.7 GiB (80.7%) 1.16 kW (24.2%) 71°C active saturated
node-04 8/8 12.5 701.9/764.7 GiB (91.8%) 1.22 kW (25.3%) 79°C active saturated
node-05 8/8 12.5 690.9/764.7 GiB (90.3%) 1.01 kW (21.1%) 43°C active saturated
node-06 8/8 12.5 695.5/764.7 GiB (90.9%) 1.06 kW (22.0%) 68°C active saturated
node-07 8/8 12.5 691.4/764.7 GiB (90.4%) 1.00 kW (20.9%) 49°C active saturated
node-08 4/8 0.0 357.0/764.7 GiB (46.7%) 0.46 kW (9.6%) 38°C ghost reserved-idle
"""
FIGURES = (
    "48 of 64 allocated (75.0%), 64 on 8 nodes report utilization",
    "mean SM util 14.0% (idle headroom ~86.0%)",
    "3.99/5.97 TiB in use (66.8% of the fleet's GPU memory, 33.2% free)",
    "7.00 kW (18.2%) drawn of 38.40 kW TDP (headroom ~81.8%)",
    "idle=15 reserved-idle=40 saturated=9",
    "min=29 max=596 mean=109 median=85 stddev=113 (N=64)",
    "min=25 max=79 mean=37 median=35 stddev=11 (N=64)",
    "idle=457 W (6.5%) reserved-idle=3.44 kW (49.1%) saturated=3.10 kW (44.3%)",
    "2.22 kW across 40 reserved-idle GPUs (idle baseline 30 W = mean of 15 idle GPUs",
    "ghost=1 active=7 no-allocation=0 no-samples=0",
    "recoverable capacity: 4 allocated GPUs and 357.0/764.7 GiB",
    "node-08 4 4 0.0% 0.0% 5.0% 1 sample",
    "TDP ceiling 28.05 84.15 336.61",
    "observed draw 5.11 15.34 61.36 18.2% of TDP, 44.3% productive",
    "productive 2.27 6.80 27.21",
    "idle baseline 0.33 1.00 4.01",
    "reserved-idle 2.51 7.54 30.15",
    "recoverable 1.62 4.87 19.46",
    "31.7% of observed",
)


@pytest.mark.workflow
@pytest.mark.usefixtures("live")
def test_what_the_fleet_really_does(invoke: Invoke) -> None:
    done = invoke("optimize", "probe-gpu", "--live")
    assert (done.code, done.err) == (0, "")
    said = "\n".join(" ".join(line.split()) for line in done.out.splitlines())
    for line in (*TABLE.splitlines(), *FIGURES):
        assert line in said
    assert "ghost if mean_util_pct / 100 < threshold" in said
    assert said.count("saturated\n") >= 9  # every reading is shown, not only the sums
    assert "prd-r6000-nest/model-multi-3-otel-llm-8" in said


@pytest.mark.workflow
@pytest.mark.usefixtures("live")
def test_a_window_of_rounds_is_confident(invoke: Invoke, home: Path) -> None:
    kept = home / "audit.json"
    assert invoke("audit", "--json", str(kept)).code == 0
    rounds = ("--samples", "2", "--interval", "10ms", "--json", str(home / "probe.json"))
    done = invoke("optimize", "probe-gpu", "--audit", str(kept), *rounds)
    assert "confident (N=2 over ~" in done.out
    found = json.loads((home / "probe.json").read_text())
    assert [len(gpu["utilization"]) for node in found["nodes"] for gpu in node["gpus"]] == [2] * 64
    assert {it["node"]: it["confident"] for it in found["nodes"] if it["verdict"] == "ghost"} == {
        "node-08": True
    }

    assert "but the GPUs are of" not in done.out
    other = invoke("optimize", "probe-gpu", *KEPT)
    assert "by https://gpu.example:6443, read at 2026-" in other.out
    assert "but the GPUs are of http" in other.out
    lost = invoke("optimize", "probe-gpu", "--live", "--node-ds-name", "elsewhere")
    assert (lost.code, "DaemonSet 'elsewhere' does not exist" in lost.err) == (5, True)
    wrong = invoke("optimize", "probe-gpu", "--live", "--ghost-threshold", "5")
    assert (wrong.code, "--ghost-threshold 5 is not a share" in wrong.err) == (2, True)


@pytest.mark.workflow
def test_a_plan_is_carried_out_in_waves_and_says_what_was_reached(
    invoke: Invoke, live: RunningFleet, home: Path
) -> None:
    """One story: what it leaves behind is where the next step begins."""
    kept = home / "audit.json"
    invoke("audit", "--json", str(kept))
    foreign = invoke("optimize", "apply", *KEPT)
    assert (foreign.code, "is an audit of https://gpu.example:6443" in foreign.err) == (2, True)

    budget = {
        "metadata": {"name": "guard", "namespace": "research"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "sweep-2"}}},
    }
    live.create("poddisruptionbudgets", budget)
    live.until(
        "poddisruptionbudgets",
        lambda found: found.get("guard", {}).get("status", {}).get("currentHealthy") == 2,
    )
    preview = invoke("optimize", "apply", "--live", "--wave-size", "1")
    assert preview.code == 0
    assert "would empty node-01: move 2 pods in 2 waves of up to 1" in preview.out
    assert "PodDisruptionBudget guard allows none until more than 2 pods are" in preview.out
    assert "nothing was changed" in preview.err

    waves = ("--wave-size", "1", "--grace-period", "0")
    reached = invoke("optimize", "apply", "--live", *waves, *FLAGS, "-o", "json")
    found = json.loads(reached.out)
    assert (reached.code, found["stopped"]) == (0, ""), reached.err
    assert [(it["donor"], it["wave"], it["outcome"]) for it in found["steps"]] == [
        ("node-01", 1, "moved"),
        ("node-01", 2, "moved"),
    ]
    assert (found["emptied"], found["empty_now"]) == (["node-01"], 1)
    live.until("deployments", lambda found: ready(found, "sweep-1", "sweep-2") == 4)
    seen = json.loads(invoke("optimize", "analyze", "--live", "-o", "json").out)
    assert seen["empty"] == 1
    assert {it["name"] for it in seen["nodes"] if it["closed"]} == {"node-01"}

    # What was planned with an audit of before is not done twice.
    stale = invoke("optimize", "apply", "--audit", str(kept), "-o", "json")
    steps = json.loads(stale.out)["steps"]
    assert [it["reason"] for it in steps if it["donor"] == "node-01"] == [
        "no longer on node-01"
    ] * 2
    spared = invoke("optimize", "apply", "--live", "--exclude-namespace", "research")
    assert (spared.code, "no pods to move" in spared.out) == (0, True)
