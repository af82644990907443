"""Scenarios: read strictly, and what follows from them."""

from __future__ import annotations

import statistics
from pathlib import Path

import msgspec
import pytest
import yaml

from kvestigate.cluster.assembly.population import shape_of
from kvestigate.cluster.node.gpu.allocation import Allocation
from kvestigate.cluster.node.gpu.model import Load, Reading, gpu_capacity, reading
from kvestigate.cluster.node.spec.pod import Container, Pod
from kvestigate.cluster.scenarios.library import Source, checked, find, listed, names
from kvestigate.cluster.scenarios.nodes import NodePlan, nodes
from kvestigate.cluster.scenarios.objects import objects, resource_of
from kvestigate.errors import InputError, UsageError
from kvestigate.kube import facts, schema
from kvestigate.kube.views.meta import Metadata
from kvestigate.node_access.reach import manifest

HEAD = "apiVersion: kvestigate.dev/v1\nkind: Scenario\nmetadata: {name: mine}\n"


def scenario(spec: str) -> Source:
    indented = "\n".join(f"  {line}" for line in spec.splitlines())
    return Source("mine.yaml", f"{HEAD}spec:\n  summary: of a test\n{indented}\n")


def shipped(name: str) -> list[NodePlan]:
    return nodes(checked(find(name)))


def test_the_shipped_ones_are_listed_by_name() -> None:
    assert {"gpu-fleet", "broken-app", "pdb-block", "big"} <= set(names())
    assert [it.name for it in listed()] == names()


@pytest.mark.parametrize("name", names())
def test_every_object_of_a_shipped_scenario_fits_its_type(name: str) -> None:
    for made in objects(checked(find(name))):
        resource = resource_of(made)
        definition = facts.for_kind(resource.group, resource.version, resource.kind)
        assert definition is not None
        assert schema.problems(made, definition) == schema.FITS, made["metadata"]


def test_the_hosts_of_the_fleet_are_reached_as_those_of_any_cluster() -> None:
    assert yaml.safe_load(manifest()) in objects(checked(find("gpu-fleet")))


@pytest.mark.parametrize(
    ("name", "count", "gpus", "pods"),
    [("gpu-fleet", 8, 8, 50), ("big", 1000, 0, 20_000), ("broken-app", 3, 0, 10)],
)
def test_sizes(name: str, count: int, gpus: int, pods: int) -> None:
    found = checked(find(name))
    assert (shape_of(found).nodes, shape_of(found).gpus) == (count, gpus)
    made = objects(found)
    replicas = {
        (it["metadata"]["namespace"], it["metadata"]["name"]): it["spec"].get("replicas", 1)
        for it in made
        if it["kind"] in ("Deployment", "Job")
    }
    single = [it for it in made if it["kind"] == "Pod"]
    assert sum(replicas.values()) + len(single) == pods


def _fleet_readings() -> dict[str, list[Reading]]:
    """What nvidia-smi says on each node once the pods have their GPUs."""
    placed = {"node-01": 2, "node-02": 2}
    for it in objects(checked(find("gpu-fleet"))):
        if it["kind"] == "Pod":
            node = it["spec"]["nodeSelector"]["kubernetes.io/hostname"]
            placed[node] = placed.get(node, 0) + 1
    found = {}
    for plan in shipped("gpu-fleet"):
        allocation = Allocation(plan.config.gpus)
        for number in range(placed[plan.config.name]):
            limits = {"nvidia.com/gpu": "1"}
            value = {"name": "main", "resources": {"limits": limits}}
            container = msgspec.convert(value, Container)
            meta = Metadata(name=f"pod-{number}", namespace="ml", uid=f"pod-{number}")
            allocation.variables(Pod(metadata=meta), container)
        found[plan.config.name] = [reading(gpu, 1e9) for gpu in allocation.gpus]
    assert sum(placed.values()) == 48
    return found


def test_the_fleet_is_the_one_that_everybody_talks_of() -> None:
    fleet = _fleet_readings()
    table = {
        node: (
            f"{statistics.mean(it.utilization for it in shown):.2f}",
            f"{sum(it.memory_mib for it in shown) / 1024:.1f}",
            f"{sum(it.watts for it in shown) / 1000:.2f}",
            max(it.temperature for it in shown),
        )
        for node, shown in fleet.items()
    }
    assert table == {
        "node-01": ("25.00", "174.4", "0.49", 35),
        "node-02": ("12.50", "157.2", "0.59", 59),
        "node-03": ("24.75", "617.3", "1.16", 71),
        "node-04": ("12.50", "701.9", "1.22", 79),
        "node-05": ("12.50", "690.9", "1.01", 43),
        "node-06": ("12.50", "695.5", "1.06", 68),
        "node-07": ("12.50", "691.4", "1.00", 49),
        "node-08": ("0.00", "357.0", "0.46", 38),
    }
    every = [it for shown in fleet.values() for it in shown]
    watts = [it.watts for it in every]
    idle = [it for it in every if it.memory_mib < 100]
    busy = [it for it in every if it.utilization]
    assert (len(idle), len(busy), len(every)) == (15, 9, 64)
    assert (min(watts), max(watts), round(sum(it.watts for it in idle), 1)) == (29, 596, 457.3)
    assert f"{sum(watts) / 1000:.2f}" == "7.00"
    assert f"{sum(it.watts for it in busy) / 1000:.2f}" == "3.10"
    assert round(statistics.median(watts)) == 85
    assert round(statistics.stdev(watts)) == 113
    degrees = [it.temperature for it in every]
    assert (min(degrees), max(degrees), round(statistics.mean(degrees))) == (25, 79, 37)


def test_a_divided_fleet_offers_instances() -> None:
    offered = {plan.config.name: gpu_capacity(plan.config.gpus) for plan in shipped("mig")}
    assert offered["small-1"] == {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "14"}
    assert offered["large-1"] == {"nvidia.com/gpu": "0", "nvidia.com/mig-3g.40gb": "4"}


def test_values_are_put_in_and_keep_their_type() -> None:
    made = objects(
        checked(
            scenario("""\
workloads:
  - each: [{name: a, size: 3}, {name: b, size: 5}]
    first: 7
    manifests:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: "{{name}}-{{ n:03 }}", labels: {"{{name}}": "x{{size}}"}}
        spec: {replicas: "{{size}}"}
  - times: 2
    manifests:
      - {apiVersion: v1, kind: Namespace, metadata: {name: "ns-{{n}}"}}""")
        )
    )
    assert [(it["metadata"]["name"], it.get("spec", {}).get("replicas")) for it in made] == [
        ("a-007", 3),
        ("b-008", 5),
        ("ns-1", None),
        ("ns-2", None),
    ]
    assert made[1]["metadata"]["labels"] == {"b": "x5"}


def test_nodes_are_as_told() -> None:
    one, two, gpu = nodes(
        checked(
            scenario("""\
seed: 3
nodes:
  - {name: "w{{n:02}}", count: 2, first: 9, labels: {me: "{{name}}"}, capacity: {cpu: 7}}
  - name: g
    host: simulated
    cordoned: true
    taints: [{key: gpu, effect: NoSchedule}]
    gpus:
      model: H100
      count: 2
      state: {load: hot}
      each: [{load: bursty, memory: 2Gi}]""")
        )
    )
    assert [one.config.name, two.config.name] == ["w09", "w10"]
    assert (two.config.labels, two.config.capacity) == ({"me": "w10"}, {"cpu": "7"})
    assert (gpu.cordoned, gpu.lost, gpu.host.value) == (True, False, "simulated")
    assert [it.load for it in gpu.config.gpus] == [Load.BURSTY, Load.HOT]
    assert gpu.config.gpus[0].steady.memory_mib == 2048


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "nodes: [{count: many}]",
            "spec.nodes[0].count: 'many' is not a whole number from 1 to 5000",
        ),
        (
            "nodes: [{count: 0}]",
            "mine.yaml:6: spec.nodes[0].count: 0 is not a whole number from 1 to",
        ),
        ("nodez: []", "mine.yaml:6: spec.nodez: no such field"),
        ("nodes: [{count: 2, name: it}]", 'spec.nodes[0].name: "it" would name 2 nodes'),
        ("nodes: [{name: a}, {name: a}]", 'spec.nodes: two nodes are named "a"'),
        (
            "nodes: [{count: 3000}, {name: 'x{{n}}', count: 3000}]",
            "6000 nodes are more than the maximum of 5000",
        ),
        (
            "nodes: [{gpus: {model: GTX}}]",
            'spec.nodes[0].gpus.model: "GTX" is not a known GPU model; use one of A100,',
        ),
        (
            "nodes: [{gpus: {model: T4, count: 1, each: [{}, {}]}}]",
            "spec.nodes[0].gpus.each: describes 2 GPUs, but count is 1",
        ),
        (
            "nodes: [{gpus: {model: T4, each: [{memory: lots}]}}]",
            "spec.nodes[0].gpus.each[0].memory: quantity 'lots'",
        ),
        ("nodes: [{gpus: {model: T4, state: {load: calm}}}]", "nodes[0].gpus.state.load"),
        ("nodes: [{name: '{{m}}'}]", "spec.nodes[0].name: {{m}} is not defined here; use {{n}}"),
        ("workloads: [{manifests: [{kind: Pod}]}]", "manifests[0].apiVersion: is missing"),
        (
            "workloads: [{manifests: [{apiVersion: v1, kind: Pod}]}]",
            "spec.workloads[0].manifests[0].metadata.name: is missing",
        ),
        (
            "workloads: [{manifests: [{apiVersion: v1, kind: Pot, metadata: {name: a}}]}]",
            "manifests[0].kind: Pot of v1 is not a built-in kind of Kubernetes",
        ),
        (
            "workloads: [{times: 2, each: [{a: 1}], manifests: []}]",
            "spec.workloads[0]: set times or each, not both",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(spec: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        checked(scenario(spec))
    assert caught.value.message.startswith("mine.yaml:")
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds 0 documents, not one scenario"),
        (f"{HEAD}spec: {{}}", "spec.summary: the field is required"),
        ("apiVersion: v1\nkind: Pod", "apiVersion and kind are v1 and Pod, not kvestigate.dev/v1"),
        ("- 1", "[1] is not a mapping"),
        (f"{HEAD.replace('mine', 'Not_Mine')}spec: {{summary: x}}", "metadata.name: "),
    ],
)
def test_what_is_no_scenario_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        checked(Source("mine.yaml", text))
    assert message in caught.value.message


def test_files_and_names_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(scenario("nodes: [{name: only}]").text)
    assert [plan.config.name for plan in nodes(checked(find(str(file))))] == ["only"]
    with pytest.raises(InputError, match="cannot be read"):
        find(str(tmp_path / "none.yaml"))
    with pytest.raises(UsageError, match='scenario "gpu-flet" does not exist') as caught:
        find("gpu-flet")
    assert "gpu-fleet" in (caught.value.hint or "")
