"""Money, recomputed by hand from prices, hours and utilization."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.render.plain import to_text
from kvestigate.reports.cost import collect, held, render
from kvestigate.snapshot import listings
from kvestigate.snapshot.exporters import GpuReading
from kvestigate.snapshot.ledger.build import ledger
from kvestigate.snapshot.ledger.spending import Spending, spending
from kvestigate.snapshot.prices import GpuPrice, PowerPrice, Prices
from tests.health.snapshots import snapshot
from tests.snapshot.objects import Object, container, node, pod

MONTH = 730.5
PRICES = Prices({"H100": GpuPrice(2.0), "A100": GpuPrice(0.7)}, power=PowerPrice(0.2))
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100", "nvidia.com/gpu.count": "8"}
A100 = {"nvidia.com/gpu.product": "NVIDIA-A100", "nvidia.com/gpu.count": "1"}
PART = "nvidia.com/mig-3g.40gb"


def on(name: str, namespace: str, on: str, team: str = "", **gpus: str) -> Object:
    body = pod(name, container(**gpus), on=on)
    body["metadata"] |= {
        "namespace": namespace,
        "creationTimestamp": "2026-02-01T00:00:00Z",
        "labels": {"team": team} if team else {},
    }
    return body


def cluster() -> dict[Any, Any]:
    """8 H100 of which 5 are held, 2 of them idle and 1 unmeasured; an A100 with a part in use."""
    divided = node("b", labels=A100)
    divided["status"]["allocatable"] = {PART: "2"}
    return {
        listings.NODES: [node("a", labels=H100, gpu="8"), divided],
        listings.PODS: [
            on("busy", "ml", "a", "red", gpu="2"),
            on("idle", "ml", "a", "blue", gpu="2"),
            on("dark", "web", "a", gpu="1"),
            on("part", "web", "b", "red", **{PART: "1"}),
        ],
        listings.GPU_READINGS: [
            GpuReading("GPU-0", "a", "0", 90, "ml", "busy", "main", 100),
            GpuReading("GPU-1", "a", "1", 0, "ml", "busy", "main", 100),
            GpuReading("GPU-2", "a", "2", 0, "ml", "idle", "main", 1000),
            GpuReading("GPU-3", "a", "3", 0, "ml", "idle", "main", 500),
            GpuReading("GPU-9/1", "b", "0", 0, "web", "part", "main", 10, "3g.40gb"),
        ],
    }


def spent(by: str) -> Spending:
    seen = snapshot(cluster())
    return spending(seen.derived(ledger), seen.derived(held), PRICES, by)


def test_the_totals_by_hand() -> None:
    found = spent("namespace")
    assert found.total.gpus == 9
    assert found.total.month == pytest.approx((8 * 2.0 + 1 * 0.7) * MONTH)
    assert found.allocated.month == pytest.approx((5 * 2.0 + 3 / 7 * 0.7) * MONTH)
    assert found.idle.gpus == pytest.approx(2 + 3 / 7)
    assert found.idle.month == pytest.approx((2 * 2.0 + 3 / 7 * 0.7) * MONTH)
    assert found.unmeasured.gpus == 1
    assert found.unmeasured.month == pytest.approx(2.0 * MONTH)
    assert found.unallocated.month == pytest.approx((3 * 2.0 + 4 / 7 * 0.7) * MONTH)


@pytest.mark.parametrize(
    ("by", "idle"),
    [
        ("namespace", {"ml": 2 * 2.0, "web": 0.3}),
        (
            "workload",
            {"ml/Pod idle": 4.0, "web/Pod part": 0.3, "ml/Pod busy": 0, "web/Pod dark": 0},
        ),
        ("team", {"blue": 4.0, "red": 0.3, "(none)": 0}),
    ],
)
def test_idle_money_by_group(by: str, idle: dict[str, float]) -> None:
    groups = spent(by).groups
    assert {it.name: it.idle.month for it in groups} == pytest.approx(
        {name: hourly * MONTH for name, hourly in idle.items()}
    )
    assert next(iter(groups)).name == next(iter(idle))
    assert sum(it.held.month for it in groups) == pytest.approx(spent(by).allocated.month)


def test_money_is_in_cents_and_rounded_once() -> None:
    """One H100 costs 1818.945 a month: 8 of them must not gain or lose half a cent each."""
    objects = {
        listings.NODES: [node("a", labels=H100, gpu="8")],
        listings.PODS: [on(f"p{number}", "ml", "a", gpu="1") for number in range(8)],
    }
    seen = snapshot(objects)
    prices = Prices({"H100": GpuPrice(2.49)})
    result = spending(seen.derived(ledger), seen.derived(held), prices, "workload")
    assert (result.total.month, result.allocated.month) == (14551.56, 14551.56)
    assert (result.unallocated.gpus, result.unallocated.month) == (0, 0)
    assert {round(group.held.month, 2) for group in result.groups} == {
        group.held.month for group in result.groups
    }


def test_a_pod_is_idle_only_if_all_its_gpus_are_known_to_be() -> None:
    seen = snapshot(cluster())
    states = {it.pod: it.idle for it in seen.derived(held)}
    assert states == {"busy": False, "idle": True, "dark": None, "part": True}


def test_models_without_a_price_are_named_and_not_guessed() -> None:
    odd = node("c", labels={"nvidia.com/gpu.product": "NVIDIA-X1"}, gpu="4")
    seen = snapshot({listings.NODES: [odd]})
    found = spending(seen.derived(ledger), (), PRICES)
    assert (found.total.month, found.unpriced) == (0, {"NVIDIA-X1": 4})
    assert "no price for 4 GPUs of model NVIDIA-X1" in to_text(render(collect(seen)))


@pytest.mark.parametrize(
    "denied", [listings.NODES, listings.PODS, listings.DEVICE_SLICES], ids=lambda it: it.name
)
def test_cost_is_unknown_if_gpus_or_pods_are(denied: Any) -> None:
    given = {kind: objects for kind, objects in cluster().items() if kind is not denied}
    seen = snapshot(given, denied=(denied,))
    assert collect(seen) is None
    assert "unknown" in to_text(render(None))


def test_a_share_of_a_time_sliced_gpu_costs_its_part() -> None:
    shared = node("s", labels={**H100, "nvidia.com/gpu.replicas": "4"}, gpu="32")
    given = {listings.NODES: [shared], listings.PODS: [on("p", "ml", "s", gpu="2")]}
    seen = snapshot(given)
    assert spending(seen.derived(ledger), seen.derived(held), PRICES).allocated.gpus == 0.5
