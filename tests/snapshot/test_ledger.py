"""The ledger's totals are those of the objects, and what is not known is unknown."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from kvestigate.snapshot import listings
from kvestigate.snapshot.exporters import GpuReading
from kvestigate.snapshot.ledger.build import ledger
from kvestigate.snapshot.ledger.model import Ledger, Offer, Right
from tests.health.snapshots import snapshot
from tests.snapshot.mixed_clusters import Object, mixed_cluster
from tests.snapshot.objects import container, node, pod

LISTS = {
    "nodes": listings.NODES,
    "pods": listings.PODS,
    "slices": listings.DEVICE_SLICES,
    "claims": listings.RESOURCE_CLAIMS,
    "classes": listings.DEVICE_CLASSES,
}


def read(objects: dict[str, list[Object]], **rest: Any) -> Ledger:
    return ledger(snapshot({LISTS[name]: given for name, given in objects.items()}, **rest))


# -- an independent computation, from the JSON alone ------------------------------------------


def expected(objects: dict[str, list[Object]]) -> dict[str, Any]:
    figures: dict[str, Any] = dict.fromkeys(
        ("whole", "whole_held", "parts", "parts_held", "shares", "shares_held"), 0
    )
    physical: int | None = 0
    for one in objects["nodes"]:
        own = plugin_figures(one, objects["pods"])
        count = own.pop("physical")
        claimed = claimed_figures(one["metadata"]["name"], objects)
        count = None if count is None else count + claimed.pop("physical")
        claimed.pop("physical", None)
        physical = None if physical is None or count is None else physical + count
        for name, amount in (*own.items(), *claimed.items()):
            figures[name] += amount
    pooled = claimed_figures("", objects)
    physical = None if physical is None else physical + pooled["physical"]
    pooled.pop("physical")
    for name, amount in pooled.items():
        figures[name] += amount
    return figures | {"physical": physical}


def plugin_figures(one: Object, pods: list[Object]) -> dict[str, Any]:
    labels = one["metadata"]["labels"]
    replicas = int(labels.get("nvidia.com/gpu.replicas", "1"))
    single = "-MIG-" in labels.get("nvidia.com/gpu.product", "")
    figures: dict[str, Any] = defaultdict(int)
    for name, amount in one["status"]["allocatable"].items():
        if "gpu" not in name and "/mig-" not in name:
            continue
        form = "shares" if replicas > 1 else "parts" if single or "/mig-" in name else "whole"
        figures[form] += int(amount)
        figures[f"{form}_held"] += sum(
            most_at_once(each, name)
            for each in pods
            if each["spec"]["nodeName"] == one["metadata"]["name"]
            and each["status"]["phase"] != "Succeeded"
        )
    whole = sum(int(n) for name, n in one["status"]["capacity"].items() if name.endswith(
        ("/gpu", "/gpu.shared")))  # fmt: skip
    divided = single or any("/mig-" in name for name in one["status"]["capacity"])
    if "nvidia.com/gpu.count" in labels and not single:
        figures["physical"] = int(labels["nvidia.com/gpu.count"])
    else:
        figures["physical"] = None if divided else whole // replicas
    return figures


def most_at_once(one: Object, resource: str) -> int:
    """Containers run together, init containers before them."""

    def total(containers: list[Object]) -> list[int]:
        return [int(each["resources"]["requests"].get(resource, "0")) for each in containers]

    return max(sum(total(one["spec"]["containers"])), *total(one["spec"]["initContainers"]), 0)


def claimed_figures(where: str, objects: dict[str, list[Object]]) -> dict[str, int]:
    newest: dict[tuple[str, str], int] = {}
    for piece in objects["slices"]:
        pool = piece["spec"]["pool"]
        key = piece["spec"]["driver"], pool["name"]
        newest[key] = max(newest.get(key, 0), pool.get("generation", 0))
    held = {
        (result["driver"], result["pool"], result["device"])
        for claim in objects["claims"]
        for result in claim["status"].get("allocation", {}).get("devices", {}).get("results", ())
        if not result.get("adminAccess")
    }
    gpus: dict[str, list[tuple[str, bool, bool]]] = defaultdict(list)
    for piece in objects["slices"]:
        spec = piece["spec"]
        key = spec["driver"], spec["pool"]["name"]
        if spec.get("nodeName", "") != where or spec["driver"] != "gpu.nvidia.com":
            continue
        if spec["pool"].get("generation", 0) != newest[key]:
            continue
        for device in spec["devices"]:
            said = {name.split("/")[-1]: value for name, value in device["attributes"].items()}
            gpu = said.get("parentUUID", said["uuid"])["string"]
            broken = any(it["effect"] != "None" for it in device.get("taints", ()))
            gpus[gpu].append((said["type"]["string"], (*key, device["name"]) in held, broken))
    figures = {"physical": len(gpus), "whole": 0, "whole_held": 0, "parts": 0, "parts_held": 0}
    for devices in gpus.values():
        kinds = {kind for kind, _, _ in devices}
        counted = devices
        if kinds == {"gpu", "mig"}:
            cut = [device for device in devices if device[0] == "mig" and device[1]]
            counted = cut or [device for device in devices if device[0] == "gpu"]
        for kind, taken, broken in counted:
            form = "whole" if kind == "gpu" else "parts"
            figures[form] += taken or not broken
            figures[f"{form}_held"] += taken
    return figures


@pytest.mark.parametrize("seeds", [range(start, start + 50) for start in (0, 50, 100, 150)])
def test_totals_equal_a_computation_from_the_objects(seeds: range) -> None:
    for seed in seeds:
        objects = mixed_cluster(seed)
        book = read(objects)
        assert {
            "physical": book.physical,
            "whole": book.whole.offered,
            "whole_held": book.whole.allocated,
            "parts": book.partitions.offered,
            "parts_held": book.partitions.allocated,
            "shares": book.shares.offered,
            "shares_held": book.shares.allocated,
        } == expected(objects), seed


def test_what_waits_is_counted_by_form() -> None:
    for seed in range(100):
        objects = mixed_cluster(seed)
        waiting = read(objects).waiting
        pending = [it for it in objects["pods"] if not it["spec"]["nodeName"]]
        unallocated = [
            claim["spec"]["devices"]["requests"][0]["exactly"]
            for claim in objects["claims"]
            if not claim["status"]
        ]
        wanted: defaultdict[str, int] = defaultdict(int)
        for claim in unallocated:
            wanted[claim["deviceClassName"]] += claim["count"]
        asked: defaultdict[str, int] = defaultdict(int)
        for one in pending:
            for each in (*one["spec"]["containers"], *one["spec"]["initContainers"]):
                for name, amount in each["resources"]["requests"].items():
                    asked[name] += int(amount) if amount.isdigit() else 0
        parts = sum(amount for name, amount in asked.items() if "/mig-" in name)
        whole = asked["nvidia.com/gpu"] + asked["amd.com/gpu"]
        assert waiting is not None
        assert waiting.whole == whole + wanted["gpu.nvidia.com"], seed
        assert waiting.partitions == parts + wanted["mig.nvidia.com"], seed


# -- single devices -----------------------------------------------------------------------------


def dra(*devices: Object, node_name: str = "n") -> Object:
    return {
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "pool": {"name": "n"},
            "nodeName": node_name,
            "devices": list(devices),
        },
    }


def device(name: str, **attributes: str) -> Object:
    return {"name": name, "attributes": {key: {"string": it} for key, it in attributes.items()}}


def claim(name: str, *devices: str, pods: tuple[str, ...] = ("train",)) -> Object:
    results = [{"driver": "gpu.nvidia.com", "pool": "n", "device": each} for each in devices]
    return {
        "metadata": {"name": name, "namespace": "ml"},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": each} for each in pods],
        },
    }


def test_a_device_names_its_holder_and_the_right() -> None:
    book = read(
        {
            "nodes": [node("n")],
            "pods": [],
            "slices": [
                dra(
                    device("gpu-0", type="gpu", uuid="GPU-0"),
                    device("mig", type="mig", uuid="MIG-1", parentUUID="GPU-1", profile="1g.10gb"),
                    device("gpu-2", type="gpu"),
                )
            ],
            "claims": [claim("two", "gpu-0", "mig"), claim("left", "gpu-2", pods=())],
            "classes": [],
        }
    )
    assert [(it.uuid, it.user, it.right, it.claims, it.parent) for it in book.devices] == [
        ("GPU-0", "ml/train", Right.CLAIM, ("ml/two",), ""),
        ("MIG-1", "ml/train", Right.CLAIM, ("ml/two",), "GPU-1"),
        ("gpu.nvidia.com/n/gpu-2", "claim ml/left", Right.CLAIM, ("ml/left",), ""),
    ]
    assert {it.offer for it in book.devices} == {Offer.DRA}
    assert book.physical == 3


def test_a_process_without_a_pod_holds_its_gpu_by_no_right() -> None:
    readings = [
        GpuReading("GPU-a", "n", "0", 80, "", "", "", 40_000),
        GpuReading("GPU-b", "n", "1", 0, "", "", "", 3),
    ]
    book = ledger(snapshot({listings.NODES: [node("n", gpu="2")], listings.GPU_READINGS: readings}))
    assert [(it.user, it.right) for it in book.devices] == [("", Right.NONE), ("", None)]


def divided(parts: int) -> Object:
    one = node("n")
    one["status"]["allocatable"] = one["status"]["capacity"] = {
        "nvidia.com/mig-1g.10gb": str(parts)
    }
    return one


def test_an_instance_that_an_exporter_measures_is_a_part_of_its_gpu() -> None:
    readings = [
        GpuReading(f"GPU-a/{at}", "n", "0", 50, "ml", f"p{at}", "c", 9, "1g.10gb") for at in (1, 2)
    ]
    one = divided(7)
    book = ledger(snapshot({listings.NODES: [one], listings.GPU_READINGS: readings}))
    assert [(it.uuid, it.parent) for it in book.devices] == [
        ("GPU-a", ""),
        ("GPU-a/1", "GPU-a"),
        ("GPU-a/2", "GPU-a"),
    ]
    assert book.physical == 1


def test_measurements_of_an_instance_go_to_the_device_of_its_claim() -> None:
    parts = [
        device(f"m{at}", type="mig", uuid=f"MIG-{at}", parentUUID="GPU-a", profile="1g.10gb")
        for at in range(3)
    ]
    readings = [GpuReading("GPU-a/1", "n", "0", 50, "ml", "train", "c", 9, "1g.10gb")]
    book = ledger(
        snapshot(
            {
                listings.NODES: [node("n")],
                listings.DEVICE_SLICES: [dra(*parts)],
                listings.RESOURCE_CLAIMS: [claim("c", "m1")],
                listings.GPU_READINGS: readings,
            }
        )
    )
    assert [it.utilization for it in book.devices] == [None, 50, None]


# -- what is not known --------------------------------------------------------------------------


def test_partitions_of_an_unknown_number_of_gpus() -> None:
    bare = divided(14)
    book = ledger(snapshot({listings.NODES: [bare]}))
    assert book.physical is None
    assert (book.partitions.offered, book.partitions.allocated) == (14, 0)
    orphan = dra(device("m", type="mig", uuid="MIG-1"))
    book = ledger(snapshot({listings.NODES: [node("n")], listings.DEVICE_SLICES: [orphan]}))
    assert book.physical is None


@pytest.mark.parametrize(
    ("denied", "physical", "allocated"),
    [
        ((), 2, 1),
        ((listings.RESOURCE_CLAIMS,), 2, None),
        ((listings.DEVICE_SLICES,), None, None),
        ((listings.NODES,), None, None),
    ],
)
def test_denied_kinds_are_unknown_and_never_zero(
    denied: Any, physical: int | None, allocated: int | None
) -> None:
    given: dict[Any, list[Any]] = {
        listings.NODES: [node("n")],
        listings.PODS: [pod("train", container(cpu="1"), on="n")],
        listings.DEVICE_SLICES: [dra(device("a", uuid="GPU-a"), device("b", uuid="GPU-b"))],
        listings.RESOURCE_CLAIMS: [claim("c", "a")],
    }
    left = {kind: objects for kind, objects in given.items() if kind not in denied}
    book = ledger(snapshot(left, denied=denied))
    assert book.physical == physical
    if physical is not None:
        assert book.whole.allocated == allocated
