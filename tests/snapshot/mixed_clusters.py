"""Random clusters whose GPUs are offered in every way, as JSON objects of a server."""

from __future__ import annotations

from random import Random
from typing import Any

Object = dict[str, Any]

PROFILES = ("1g.10gb", "2g.20gb", "3g.40gb")


def mixed_cluster(seed: int) -> dict[str, list[Object]]:
    """Nodes, pods, slices, claims and classes, by resource."""
    return _Maker(Random(seed)).cluster()


class _Maker:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.objects: dict[str, list[Object]] = {
            name: [] for name in ("nodes", "pods", "slices", "claims", "classes")
        }
        self.devices: list[tuple[str, str, str]] = []

    def cluster(self) -> dict[str, list[Object]]:
        for number in range(self.random.randint(0, 7)):
            make = self.random.choice(
                (self.whole, self.mig, self.single, self.shared, self.dra, self.dra_mig,
                 self.partitionable, self.amd, self.bare, self.dra)
            )  # fmt: skip
            make(f"n{number}")
        if self.random.random() < 0.3:
            self.slice("fabric", "", [self.gpu("fabric", 0), self.gpu("fabric", 1)])
        if self.random.random() < 0.5:
            self.outdated()
        self.objects["classes"] = [
            _class("gpu.nvidia.com", "device.driver == 'gpu.nvidia.com' && "
                   "device.attributes['gpu.nvidia.com'].type == 'gpu'"),
            _class("mig.nvidia.com", "device.driver == 'gpu.nvidia.com' && "
                   "device.attributes['gpu.nvidia.com'].type == 'mig'"),
            _class("nic", "device.driver == 'dra.net'"),
        ]  # fmt: skip
        self.claims()
        return self.objects

    # -- nodes of device plugins ---------------------------------------------------------------

    def node(self, name: str, labels: Object, **resources: int) -> None:
        amounts = {key: str(amount) for key, amount in resources.items()}
        lost = {
            key: str(max(int(amount) - self.random.choice((0, 0, 0, 1)), 0))
            for key, amount in amounts.items()
        }
        self.objects["nodes"].append(
            {
                "metadata": {"name": name, "labels": labels},
                "status": {
                    "capacity": {"cpu": "8", **amounts},
                    "allocatable": {"cpu": "8", **lost},
                },
            }
        )
        for resource, amount in lost.items():
            self.pods(name, resource, int(amount))

    def pods(self, node: str, resource: str, room: int) -> None:
        for _ in range(self.random.randint(0, 3)):
            amount = self.random.randint(0, max(room, 0))
            room -= amount
            phase = self.random.choice(("Running", "Running", "Succeeded"))
            self.pod(node, resource, amount, phase)
        if self.random.random() < 0.3:
            self.pod("", resource, self.random.randint(1, 9), "Pending")

    def pod(self, node: str, resource: str, amount: int, phase: str) -> None:
        name = f"p{len(self.objects['pods'])}"
        main = {"name": "main", "resources": {"requests": {"cpu": "1", resource: str(amount)}}}
        first = {"name": "first", "resources": {"requests": {resource: "1"}}}
        self.objects["pods"].append(
            {
                "metadata": {"name": name, "namespace": "ml"},
                "spec": {
                    "nodeName": node,
                    "containers": [main],
                    "initContainers": [first] if amount and self.random.random() < 0.2 else [],
                },
                "status": {"phase": phase},
            }
        )

    def whole(self, name: str) -> None:
        count = self.random.randint(1, 8)
        labels = {"nvidia.com/gpu.count": str(count)} if self.random.random() < 0.7 else {}
        self.node(name, labels, **{"nvidia.com/gpu": count})

    def mig(self, name: str) -> None:
        count, whole = self.random.randint(1, 4), self.random.randint(0, 2)
        labels = {"nvidia.com/gpu.count": str(count + whole), "nvidia.com/mig.strategy": "mixed"}
        if self.random.random() < 0.2:
            del labels["nvidia.com/gpu.count"]
        parts = {
            f"nvidia.com/mig-{profile}": self.random.randint(1, 7) * count
            for profile in self.random.sample(PROFILES, self.random.randint(1, 2))
        }
        self.node(name, labels, **{"nvidia.com/gpu": whole, **parts})

    def single(self, name: str) -> None:
        labels = {
            "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
            "nvidia.com/gpu.count": "14",
            "nvidia.com/mig.strategy": "single",
        }
        self.node(name, labels, **{"nvidia.com/gpu": 14})

    def shared(self, name: str) -> None:
        count, replicas = self.random.randint(1, 4), self.random.choice((2, 4, 10))
        labels = {"nvidia.com/gpu.count": str(count), "nvidia.com/gpu.replicas": str(replicas)}
        suffix = self.random.choice(("", ".shared"))
        self.node(name, labels, **{f"nvidia.com/gpu{suffix}": count * replicas})

    def amd(self, name: str) -> None:
        self.node(name, {}, **{"amd.com/gpu": self.random.randint(1, 8)})

    def bare(self, name: str) -> None:
        self.node(name, {})

    # -- nodes of DRA drivers ------------------------------------------------------------------

    def gpu(self, node: str, index: int) -> Object:
        return {
            "name": f"gpu-{index}",
            "attributes": {
                "type": {"string": "gpu"},
                "uuid": {"string": f"GPU-{node}-{index}"},
                "productName": {"string": "NVIDIA H100"},
            },
            "capacity": {"memory": {"value": "80Gi"}},
            **self.taints(),
        }

    def part(self, node: str, gpu: int, number: int) -> Object:
        return {
            "name": f"gpu-{gpu}-mig-{number}",
            "attributes": {
                "gpu.nvidia.com/type": {"string": "mig"},
                "uuid": {"string": f"MIG-{node}-{gpu}-{number}"},
                "parentUUID": {"string": f"GPU-{node}-{gpu}"},
                "profile": {"string": self.random.choice(PROFILES)},
            },
            **self.taints(),
        }

    def taints(self) -> Object:
        effect = self.random.choice(("NoExecute", "NoSchedule", "None"))
        broken = self.random.random() < 0.15
        return {"taints": [{"key": "broken", "effect": effect}]} if broken else {}

    def slice(self, pool: str, node: str, devices: list[Object], generation: int = 1) -> None:
        driver = "gpu.nvidia.com"
        place: Object = {"nodeName": node} if node else {"allNodes": True}
        self.objects["slices"].append(
            {
                "metadata": {"name": f"s{len(self.objects['slices'])}"},
                "spec": {
                    "driver": driver,
                    "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
                    "devices": devices,
                    **place,
                },
            }
        )
        self.devices += [(driver, pool, device["name"]) for device in devices]

    def dra(self, name: str) -> None:
        self.node(name, {})
        self.slice(name, name, [self.gpu(name, at) for at in range(self.random.randint(1, 8))])
        channels = [{"name": f"c{at}", "attributes": {"type": {"string": "channel"}}}
                    for at in range(3)]  # fmt: skip
        self.objects["slices"].append(
            {
                "metadata": {"name": f"s{len(self.objects['slices'])}"},
                "spec": {
                    "driver": "compute-domain.nvidia.com",
                    "pool": {"name": name},
                    "nodeName": name,
                    "devices": channels,
                },
            }
        )

    def dra_mig(self, name: str) -> None:
        self.node(name, {})
        self.slice(name, name, [self.part(name, gpu, at) for gpu in range(2) for at in range(3)])

    def partitionable(self, name: str) -> None:
        self.node(name, {})
        devices = []
        for gpu in range(self.random.randint(1, 3)):
            devices += [self.gpu(name, gpu), *(self.part(name, gpu, at) for at in range(7))]
        self.slice(name, name, devices)

    def outdated(self) -> None:
        """Slices that a driver has replaced and not yet removed."""
        for piece in list(self.objects["slices"]):
            spec = piece["spec"]
            if spec["driver"] == "gpu.nvidia.com" and self.random.random() < 0.3:
                spec["pool"]["generation"] = 2
                old = [{"name": "gone", "attributes": {"uuid": {"string": "GPU-gone"}}}]
                before = self.devices[:]
                self.slice(spec["pool"]["name"], spec.get("nodeName", ""), old, generation=1)
                self.devices = before

    # -- claims --------------------------------------------------------------------------------

    def claims(self) -> None:
        free = self.random.sample(self.devices, len(self.devices))
        for number in range(self.random.randint(0, 6)):
            taken = [free.pop() for _ in range(min(len(free), self.random.randint(1, 3)))]
            self.claim(number, taken if self.random.random() < 0.8 else [])
        if self.devices:
            watched = self.random.sample(self.devices, 1)
            self.claim(98, watched, adminAccess=True)

    def claim(self, number: int, devices: list[tuple[str, str, str]], **extra: Any) -> None:
        kind = self.random.choice(("gpu.nvidia.com", "mig.nvidia.com", "nic"))
        wanted = {"deviceClassName": kind, "count": self.random.randint(1, 4), **extra}
        status: Object = {}
        if devices:
            results = [
                {"request": "r", "driver": driver, "pool": pool, "device": device, **extra}
                for driver, pool, device in devices
            ]
            status = {
                "allocation": {"devices": {"results": results}},
                "reservedFor": [{"resource": "pods", "name": f"user{number}", "uid": "u"}],
            }
        self.objects["claims"].append(
            {
                "metadata": {"name": f"c{number}", "namespace": "ml"},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": wanted}]}},
                "status": status,
            }
        )


def _class(name: str, expression: str) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
