"""Random clusters with devices: nodes, slices, classes, devices in use, and a pod with claims.

Each case has nodes, a driver and classes of its own, so that hundreds of them fit side by side
into one cluster and do not touch each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.bed import Object
from tests.cluster.scheduler.conftest import node, pod

SHARE = "6f1c3a52-6a0e-4c58-9d5c-0d3f5b1f2a0{}"


@dataclass
class Case:
    number: int
    random: Random
    nodes: list[Object] = field(default_factory=list)
    slices: list[Object] = field(default_factory=list)
    classes: list[Object] = field(default_factory=list)
    claims: list[Object] = field(default_factory=list)
    held: Object | None = None
    """A claim of somebody else, with the status that makes it hold devices."""

    @property
    def name(self) -> str:
        return f"case-{self.number}"

    @property
    def driver(self) -> str:
        return f"case-{self.number}.example.com"

    def pod(self, scheduler: str) -> Object:
        names = [each["metadata"]["name"] for each in self.claims]
        return pod(
            self.name,
            schedulerName=scheduler,
            nodeSelector={"case": self.name},
            resourceClaims=[{"name": name, "resourceClaimName": name} for name in names],
        )

    # -- parts ---------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def make(self) -> Case:
        for number in range(self.random.choice((1, 1, 2))):
            labels = {"case": self.name, "zone": self.random.choice("ab")}
            self.nodes.append(node(f"{self.name}-{number}", labels))
        for number in range(self.random.randint(1, 3)):
            self._pool(f"{self.name}-pool-{number}")
        self._class("any")
        self._class("large", f'device.capacity["{self.driver}"].memory.isGreaterThan('
                    'quantity("20Gi"))')  # fmt: skip
        self._hold()
        for number in range(self.random.choice((1, 1, 2))):
            self._claim(f"{self.name}-{number}")
        return self

    def _class(self, name: str, *expressions: str) -> None:
        listed = [f'device.driver == "{self.driver}"', *expressions]
        spec: Object = {"selectors": [{"cel": {"expression": each}} for each in listed]}
        if self.chance(0.2):
            spec["config"] = [_setting(self.driver, name)]
        self.classes.append({"metadata": {"name": f"{self.name}-{name}"}, "spec": spec})

    def _place(self) -> Object:
        choice = self.random.random()
        if choice < 0.6:
            return {"nodeName": self.random.choice(self.nodes)["metadata"]["name"]}
        if choice < 0.85:
            return {"nodeSelector": self._selector()}
        return {"perDeviceNodeSelection": True}

    def _selector(self) -> Object:
        wanted = [{"key": "case", "operator": "In", "values": [self.name]}]
        if self.chance(0.5):
            wanted.append({"key": "zone", "operator": "In", "values": ["a"]})
        return {"nodeSelectorTerms": [{"matchExpressions": wanted}]}

    def _pool(self, name: str) -> None:
        place, parts = self._place(), self.random.choice((1, 1, 2))
        shared = self.chance(0.3)
        generation = self.random.choice((1, 1, 2))
        count = parts + shared + (self.random.choice((-1, 1)) if self.chance(0.1) else 0)
        pool = {"name": name, "generation": generation, "resourceSliceCount": max(1, count)}
        if shared:
            counters = {"memory": {"value": "80Gi"}, "slices": {"value": "7"}}
            sets = [{"name": "gpu", "counters": counters}]
            self._slice(f"{name}-shared", pool, place, sharedCounters=sets)
        taken = 0
        for part in range(parts):
            number = self.random.randint(1, 4)
            listed = [self._device(f"d{taken + i}", place, shared) for i in range(number)]
            taken += number - self.chance(0.05)  # a name that is given twice
            self._slice(f"{name}-{part}", pool, place, devices=listed)
        if generation == 2 and self.chance(0.5):
            old = {**pool, "generation": 1}
            self._slice(f"{name}-old", old, place, devices=[self._device("old", place, False)])

    def _slice(self, name: str, pool: Object, place: Object, **spec: Any) -> None:
        if "sharedCounters" in spec and "perDeviceNodeSelection" in place:
            place = {"nodeSelector": self._selector()}
        body = {"driver": self.driver, "pool": pool, **place, **spec}
        self.slices.append({"metadata": {"name": name}, "spec": body})

    def _device(self, name: str, place: Object, shared: bool) -> Object:
        attributes: Object = {"model": {"string": self.random.choice("xy")}}
        if self.chance(0.9):
            attributes["numa"] = {"int": self.random.randrange(3)}
        if self.chance(0.3):
            attributes["version"] = {"version": self.random.choice(("1.2.3", "2.0.0"))}
        capacity: Object = {"memory": {"value": self.random.choice(("10Gi", "40Gi", "80Gi"))}}
        device: Object = {"name": name, "attributes": attributes, "capacity": capacity}
        if "perDeviceNodeSelection" in place:
            named = self.random.choice(self.nodes)["metadata"]["name"]
            device |= (
                {"nodeName": named} if self.chance(0.6) else {"nodeSelector": self._selector()}
            )
        if self.chance(0.1):
            effect = self.random.choice(("NoSchedule", "NoExecute", "None"))
            device["taints"] = [{"key": "sick", "value": "yes", "effect": effect}]
        if self.chance(0.15):
            device["allowMultipleAllocations"] = True
            capacity["memory"] |= self._policy()
        if shared and self.chance(0.8):
            counters = {
                "memory": {"value": self.random.choice(("10Gi", "40Gi"))},
                "slices": {"value": self.random.choice("123")},
            }
            missing = self.chance(0.04)
            device["consumesCounters"] = [
                {"counterSet": "none" if missing else "gpu", "counters": counters}
            ]
        return device

    def _policy(self) -> Object:
        choice = self.random.random()
        if choice < 0.3:
            return {}
        if choice < 0.6:
            valid: Object = {"validRange": {"min": "1Gi", "step": "1Gi", "max": "8Gi"}}
        else:
            valid = {"validValues": ["1Gi", "2Gi", "4Gi"]}
        return {"requestPolicy": {"default": "1Gi", **valid}}

    def _hold(self) -> None:
        """Some devices are in use."""
        results = []
        seen = set()
        for one in self.slices:
            for each in one["spec"].get("devices", ()):
                device = (one["spec"]["pool"]["name"], each["name"])
                if device in seen or not self.chance(0.2):
                    continue
                seen.add(device)
                result = {"request": "r", "driver": self.driver, "pool": device[0],
                          "device": each["name"]}  # fmt: skip
                if each.get("allowMultipleAllocations"):
                    result |= {
                        "shareID": SHARE.format(self.random.randrange(10)),
                        "consumedCapacity": {"memory": self.random.choice(("1Gi", "8Gi"))},
                    }
                elif self.chance(0.1):
                    result["adminAccess"] = True
                results.append(result)
        if not results:
            return
        request = {"deviceClassName": f"{self.name}-any", "count": len(results)}
        if any(each.get("adminAccess") for each in results):
            request["adminAccess"] = True
        spec = {"devices": {"requests": [{"name": "r", "exactly": request}]}}
        name = f"{self.name}-held"
        status = {"allocation": {"devices": {"results": results}}}
        self.held = {"metadata": {"name": name}, "spec": spec, "status": status}

    def _claim(self, name: str) -> None:
        requests = [self._request(f"r{number}") for number in range(self.random.choice((1, 1, 2)))]
        devices: Object = {"requests": requests}
        if self.chance(0.4):
            kind = "distinctAttribute" if self.chance(0.4) else "matchAttribute"
            constraint: Object = {kind: f"{self.driver}/{self.random.choice(('numa', 'model'))}"}
            if self.chance(0.4):
                constraint["requests"] = ["r0"]
            devices["constraints"] = [constraint]
        if self.chance(0.2):
            setting = _setting(self.driver, "claim")
            if self.chance(0.6):
                setting["requests"] = [each["name"] for each in requests]
            devices["config"] = [setting]
        self.claims.append({"metadata": {"name": name}, "spec": {"devices": devices}})

    def _request(self, name: str) -> Object:
        if self.chance(0.25):
            wishes = [self._wish() for _ in range(self.random.randint(2, 3))]
            named = [{"name": f"s{number}", **wish} for number, wish in enumerate(wishes)]
            return {"name": name, "firstAvailable": named}
        wish = self._wish()
        if self.chance(0.06):
            wish["adminAccess"] = True
        return {"name": name, "exactly": wish}

    def _wish(self) -> Object:
        kind = self.random.choices(("any", "large", "none"), (70, 27, 3))[0]
        wish: Object = {"deviceClassName": f"{self.name}-{kind}"}
        if self.chance(0.15):
            wish["allocationMode"] = "All"
        else:
            wish["count"] = self.random.choices((1, 2, 3, 5), (50, 30, 15, 5))[0]
        if self.chance(0.3):
            wish["selectors"] = [{"cel": {"expression": self._expression()}}]
        if self.chance(0.2):
            wish["tolerations"] = [{"key": "sick", "operator": "Exists"}]
        if self.chance(0.1):
            wish["capacity"] = {
                "requests": {"memory": self.random.choice(("500Mi", "3Gi", "9Gi", "100Gi"))}
            }
        return wish

    def _expression(self) -> str:
        own = f'device.attributes["{self.driver}"]'
        return self.random.choices(
            (
                f'{own}.model == "x"',
                f'"numa" in {own} && {own}.numa < 2',
                f"{own}.numa == 1",  # an error where the attribute is missing
                f'{own}.?version.orValue(semver("0.0.1")).isGreaterThan(semver("1.9.0"))',
                f'device.capacity["{self.driver}"].memory == quantity("40Gi")',
                "device.allowMultipleAllocations",
                f'{own}.model.matches("^[xz]$") || has({own}.version)',
            ),
            (4, 3, 1, 2, 2, 1, 2),
        )[0]


def _setting(driver: str, name: str) -> Object:
    return {"opaque": {"driver": driver, "parameters": {"for": name}}}


def cases(count: int, seed: int) -> list[Case]:
    return [Case(number, Random(f"{seed}/{number}")).make() for number in range(count)]
