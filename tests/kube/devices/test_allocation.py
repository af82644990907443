"""Which devices claims get on a node."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import msgspec
import pytest

from kvestigate.kube.devices.allocation import AllocationError, InvalidPools, allocate
from kvestigate.kube.devices.holdings import Holdings
from kvestigate.kube.devices.pools import Slices
from kvestigate.kube.views.devices import Allocation, DeviceClass, ResourceClaim, ResourceSlice

DRIVER = "gpu.example.com"
Object = dict[str, Any]


def offered(name: str = "s", generation: int = 1, count: int = 1, **spec: Any) -> Object:
    place = spec if {"nodeSelector", "allNodes", "perDeviceNodeSelection"} & spec.keys() else None
    pool = {
        "name": spec.pop("pool", "p"),
        "generation": generation,
        "resourceSliceCount": count,
    }
    where = {} if place is not None else {"nodeName": "n"}
    return {"metadata": {"name": name}, "spec": {"driver": DRIVER, "pool": pool, **where, **spec}}


def device(name: str, memory: str = "80Gi", **attributes: Any) -> Object:
    kinds = {str: "string", int: "int", bool: "bool"}
    return {
        "name": name,
        "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()},
        "capacity": {"memory": {"value": memory}},
    }


def claim(*requests: Object, name: str = "c", **devices: Any) -> Object:
    spec = {"devices": {"requests": requests, **devices}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def exactly(name: str = "r", *expressions: str, **fields: Any) -> Object:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {"name": name, "exactly": {"deviceClassName": "any", "selectors": selectors, **fields}}


def first(name: str, **alternatives: Object) -> Object:
    listed = [
        {**each["exactly"], "name": alternative} for alternative, each in alternatives.items()
    ]
    return {"name": name, "firstAvailable": listed}


def holding(*devices: str) -> Holdings:
    """These devices of the pool `p` are in use."""
    held = Holdings()
    given = [{"driver": DRIVER, "pool": "p", "device": name} for name in devices]
    held.add(msgspec.convert({"devices": {"results": given}}, Allocation))
    return held


def results(
    slices: list[Object], *claims: Object, taken: tuple[str, ...] = (), zone: str = "a"
) -> list[list[tuple[str, str]]] | None:
    """(request, device) by claim."""
    found = allocations(slices, *claims, taken=taken, zone=zone)
    if found is None:
        return None
    return [[(each.request, each.device) for each in one.devices.results] for one in found]


def allocations(
    slices: list[Object], *claims: Object, taken: tuple[str, ...] = (), zone: str = "a"
) -> list[Allocation] | None:
    labels = {"zone": zone}
    pools = Slices(msgspec.convert(slices, list[ResourceSlice])).pools("n", labels)
    kind = {"metadata": {"name": "any"}, "spec": {}}
    return allocate(
        "n",
        labels,
        pools,
        {"any": msgspec.convert(kind, DeviceClass)},
        holding(*taken),
        msgspec.convert(claims, list[ResourceClaim]),
    )


FOUR = [offered(devices=[device(f"gpu-{i}", numa=i // 2, model="xy"[i % 2]) for i in range(4)])]
NUMA = [{"matchAttribute": f"{DRIVER}/numa"}]
ADMIN = exactly(adminAccess=True)
TAINTED = [offered(devices=[{**device("d"), "taints": [{"key": "sick", "effect": "NoSchedule"}]}])]
IN_ZONE = {"nodeSelectorTerms": [{"matchExpressions": [
    {"key": "zone", "operator": "In", "values": ["a"]}]}]}  # fmt: skip


@pytest.mark.parametrize(
    ("slices", "claims", "taken", "wanted"),
    [
        pytest.param(FOUR, [claim(exactly())], (), [["gpu-0"]], id="first"),
        pytest.param(FOUR, [claim(exactly())], ("gpu-0",), [["gpu-1"]], id="in-use"),
        pytest.param(FOUR, [claim(exactly(count=5))], (), None, id="too-many"),
        pytest.param(
            FOUR,
            [claim(exactly(count=3)), claim(exactly(), name="d")],
            (),
            [["gpu-0", "gpu-1", "gpu-2"], ["gpu-3"]],
            id="claims-share-nothing",
        ),
        pytest.param(
            FOUR,
            [claim(exactly(count=2), constraints=NUMA)],
            ("gpu-1",),
            [["gpu-2", "gpu-3"]],
            id="match-attribute-backtracks",
        ),
        pytest.param(
            FOUR,
            [claim(exactly(count=2), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])],
            (),
            [["gpu-0", "gpu-2"]],
            id="distinct-attribute",
        ),
        pytest.param(
            FOUR,
            [claim(exactly(), constraints=[{"matchAttribute": f"{DRIVER}/absent"}])],
            (),
            None,
            id="constraint-on-absent-attribute",
        ),
        pytest.param(
            FOUR,
            [claim(exactly("r", f"device.attributes['{DRIVER}'].model == 'y'"))],
            (),
            [["gpu-1"]],
            id="attribute",
        ),
        pytest.param(
            FOUR,
            [claim(exactly("r", "'size' in device.attributes['other.example.com']"))],
            (),
            None,
            id="absent-domain-is-empty",
        ),
        pytest.param(
            FOUR,
            [claim(exactly("r", "'other.example.com' in device.attributes"))],
            (),
            None,
            id="absent-domain-is-absent",
        ),
        pytest.param(
            [offered(devices=[device("small", "10Gi"), device("large")])],
            [
                claim(
                    exactly(
                        "r",
                        f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0",
                    )
                )
            ],
            (),
            [["large"]],
            id="capacity",
        ),
        pytest.param(
            FOUR,
            [claim(exactly(allocationMode="All"))],
            (),
            [["gpu-0", "gpu-1", "gpu-2", "gpu-3"]],
            id="all",
        ),
        pytest.param(
            FOUR, [claim(exactly(allocationMode="All"))], ("gpu-3",), None, id="all-but-one-in-use"
        ),
        pytest.param(
            FOUR,
            [claim(exactly("r", "device.driver == 'no'", allocationMode="All"))],
            (),
            None,
            id="all-of-none",
        ),
        pytest.param(FOUR, [claim(ADMIN)], ("gpu-0",), [["gpu-0"]], id="admin-access"),
        pytest.param(TAINTED, [claim(exactly())], (), None, id="tainted"),
        pytest.param(
            TAINTED,
            [claim(exactly(tolerations=[{"operator": "Exists"}]))],
            (),
            [["d"]],
            id="tolerated",
        ),
        pytest.param(
            [offered("b", devices=[device("x")]), offered("a", pool="o", devices=[device("y")])],
            [claim(exactly())],
            (),
            [["y"]],
            id="pools-by-name",
        ),
        pytest.param(
            [offered("old", devices=[device("x")]), offered("new", 2, devices=[device("y")])],
            [claim(exactly())],
            (),
            [["y"]],
            id="newest-generation",
        ),
        pytest.param(
            [offered(count=2, devices=[device("x")])], [claim(exactly())], (), None, id="incomplete"
        ),
        pytest.param(
            [offered(nodeSelector=IN_ZONE, devices=[device("x")])],
            [claim(exactly())],
            (),
            [["x"]],
            id="node-selector",
        ),
        pytest.param(
            [
                offered(
                    perDeviceNodeSelection=True,
                    devices=[{**device("x"), "nodeName": "m"}, {**device("y"), "allNodes": True}],
                )
            ],
            [claim(exactly())],
            (),
            [["y"]],
            id="nodes-of-devices",
        ),
    ],
)
def test_devices_of_claims(
    slices: list[Object],
    claims: list[Object],
    taken: tuple[str, ...],
    wanted: list[list[str]] | None,
) -> None:
    found = results(slices, *claims, taken=taken)
    names = None if found is None else [[name for _, name in each] for each in found]
    assert names == wanted


def test_the_first_alternative_that_fits_is_taken_and_named() -> None:
    wish = first("gpu", many=exactly(count=8), two=exactly(count=2), one=exactly())
    assert results(FOUR, claim(wish)) == [[("gpu/two", "gpu-0"), ("gpu/two", "gpu-1")]]


def test_devices_of_another_zone_are_not_offered() -> None:
    slices = [offered(nodeSelector=IN_ZONE, devices=[device("x")])]
    assert results(slices, claim(exactly()), zone="b") is None


@pytest.mark.parametrize(
    ("slices", "wish", "message"),
    [
        (FOUR, exactly(deviceClassName="none"), "could not retrieve device class none"),
        (FOUR, exactly("r", "device.attributes['x.io'].y == 1"), "CEL runtime error: no such key"),
        (FOUR, exactly(count=33), "exceeds the claim limit of 32"),
        (
            [offered(count=2, devices=[device("x")])],
            exactly(allocationMode="All"),
            f"resource pool {DRIVER}/p is currently being updated",
        ),
    ],
)
def test_wrong_claims_are_errors(slices: list[Object], wish: Object, message: str) -> None:
    with pytest.raises(AllocationError, match=message.replace(".", r"\.")):
        results(slices, claim(wish))


def test_pools_with_equal_names_of_devices_are_told() -> None:
    with pytest.raises(InvalidPools):
        results([offered(devices=[device("x"), device("x")])], claim(exactly()))


def test_a_solution_is_found_whenever_there_is_one() -> None:
    random = Random(22)
    outcomes = set()
    for _ in range(150):
        devices = [device(f"d{i}", a=random.randrange(3)) for i in range(random.randrange(1, 7))]
        taken = tuple(each["name"] for each in devices if random.random() < 0.25)
        counts = [random.randrange(1, 4) for _ in range(random.randrange(1, 3))]
        wishes = [exactly(f"r{i}", count=count) for i, count in enumerate(counts)]
        constraints = [{"matchAttribute": f"{DRIVER}/a", "requests": ["r0"]}]
        found = results([offered(devices=devices)], claim(*wishes, constraints=constraints),
                        taken=taken)  # fmt: skip
        free = [each for each in devices if each["name"] not in taken]
        possible = len(free) >= sum(counts) and any(
            len({each["attributes"]["a"]["int"] for each in group}) == 1
            for group in combinations(free, counts[0])
        )
        assert (found is not None) == possible
        outcomes.add(possible)
        if found is not None:
            names = [name for _, name in found[0]]
            assert len(set(names)) == sum(counts)
            assert not set(names) & set(taken)
    assert outcomes == {True, False}


def counted(name: str, memory: str, **device: Any) -> Object:
    counters = {"memory": {"value": memory}}
    return {
        "name": name,
        "consumesCounters": [{"counterSet": "gpu", "counters": counters}],
    } | device


def partitioned(*devices: Object, memory: str = "80Gi") -> list[Object]:
    """A pool whose devices take from one counter."""
    sets = [{"name": "gpu", "counters": {"memory": {"value": memory}}}]
    return [
        offered("counters", count=2, sharedCounters=sets),
        offered("devices", count=2, devices=list(devices)),
    ]


HALVES = partitioned(counted("whole", "80Gi"), counted("half-0", "40Gi"), counted("half-1", "40Gi"))


@pytest.mark.parametrize(
    ("slices", "claims", "taken", "wanted"),
    [
        pytest.param(HALVES, [claim(exactly())], (), [["whole"]], id="whole"),
        pytest.param(
            HALVES, [claim(exactly(count=2))], (), [["half-0", "half-1"]], id="whole-excludes-parts"
        ),
        pytest.param(HALVES, [claim(exactly(count=3))], (), None, id="more-than-there-is"),
        pytest.param(HALVES, [claim(exactly())], ("half-1",), [["half-0"]], id="part-in-use"),
        pytest.param(HALVES, [claim(exactly())], ("whole",), None, id="whole-in-use"),
        pytest.param(
            HALVES,
            [claim(exactly()), claim(exactly(), name="d")],
            (),
            [["half-0"], ["half-1"]],
            id="claims-share-counters",
        ),
    ],
)
def test_partitions_of_a_device(
    slices: list[Object],
    claims: list[Object],
    taken: tuple[str, ...],
    wanted: list[list[str]] | None,
) -> None:
    found = results(slices, *claims, taken=taken)
    names = None if found is None else [[name for _, name in each] for each in found]
    assert names == wanted


def test_a_pool_whose_device_takes_from_no_counter_is_invalid() -> None:
    with pytest.raises(InvalidPools):
        results([offered(devices=[counted("d", "1Gi")])], claim(exactly()))


def shared(**policy: Any) -> list[Object]:
    """One device with 8Gi that claims may share."""
    memory = {"value": "8Gi", **({"requestPolicy": policy} if policy else {})}
    return [offered(devices=[
        {"name": "d", "allowMultipleAllocations": True, "capacity": {"memory": memory}}
    ])]  # fmt: skip


def wants(amount: str) -> Object:
    return exactly(capacity={"requests": {"memory": amount}})


@pytest.mark.parametrize(
    ("slices", "amounts", "taken"),
    [
        pytest.param(shared(), ["3Gi", "5Gi"], ["3Gi", "5Gi"], id="as-asked"),
        pytest.param(shared(), ["3Gi", "6Gi"], None, id="too-much-together"),
        pytest.param(shared(), [None], ["8Gi"], id="all-of-it"),
        pytest.param(shared(default="2Gi"), [None, None], ["2Gi", "2Gi"], id="default"),
        pytest.param(
            shared(default="1Gi", validValues=["1Gi", "4Gi"]), ["3Gi"], ["4Gi"], id="rounded-up"
        ),
        pytest.param(
            shared(default="1Gi", validRange={"min": "1Gi", "step": "2Gi", "max": "7Gi"}),
            ["1500Mi"],
            ["3Gi"],
            id="step",
        ),
        pytest.param(
            shared(default="1Gi", validRange={"min": "1Gi", "max": "4Gi"}), ["5Gi"], None, id="max"
        ),
    ],
)
def test_shares_of_a_capacity(
    slices: list[Object], amounts: list[str | None], taken: list[str] | None
) -> None:
    wishes = [exactly() if amount is None else wants(amount) for amount in amounts]
    claims = [claim(wish, name=f"c{number}") for number, wish in enumerate(wishes)]
    found = allocations(slices, *claims)
    given = None if found is None else [
        each.consumed_capacity["memory"] for one in found for each in one.devices.results
    ]  # fmt: skip
    assert given == taken
    if found is not None:
        shares = {each.share_id for one in found for each in one.devices.results}
        assert len(shares) == len(amounts)
        assert "" not in shares


def test_more_devices_than_there_are_is_a_short_search() -> None:
    slices = [offered(devices=[device(f"d{i}", a=i) for i in range(120)])]
    assert (
        results(slices, claim(exactly(count=31)), taken=tuple(f"d{i}" for i in range(90))) is None
    )


def test_claims_without_end_are_refused() -> None:
    slices = [offered(devices=[device(f"d{i}", a=i) for i in range(128)])]
    wishes = [exactly(f"r{i}", adminAccess=True) for i in range(32)]
    claims = [claim(*wishes, name=f"c{i}") for i in range(40)]
    with pytest.raises(AllocationError, match=r"too many devices|timed out"):
        results(slices, *claims)


def test_a_search_that_leads_nowhere_ends() -> None:
    slices = [offered(devices=[device(f"d{i}", a=i) for i in range(64)])]
    wishes = [exactly(f"r{i}", count=4) for i in range(6)]
    constraints = [{"matchAttribute": f"{DRIVER}/a", "requests": ["r5"]}]
    with pytest.raises(AllocationError, match="timed out trying to allocate devices"):
        results(slices, claim(*wishes, constraints=constraints))
