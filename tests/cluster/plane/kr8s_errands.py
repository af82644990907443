"""Errands that kr8s runs on a plane: `python -m tests.cluster.plane.kr8s_errands KUBECONFIG NAME`.

In a process of its own, because it leaves connections open. What came of an errand is printed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from typing import Any

GROUP = "tests.example.com"
_SPEC = {"type": "object", "properties": {"level": {"type": "integer"}}}
_DEFINITION = {
    "metadata": {"name": f"gauges.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "gauges", "singular": "gauge", "kind": "Gauge"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC}}},
            }
        ],
    },
}
_TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "nginx"}]},
}
_DEPLOYMENT = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": _TEMPLATE,
    },
}


async def change(api: Any, objects: Any) -> Any:
    """Create, patch, label, select, delete."""
    metadata = {"name": "settings", "namespace": "default"}
    made = await objects.ConfigMap({"metadata": metadata, "data": {"a": "1"}}, api=api)
    await made.create()
    await made.patch({"data": {"b": "2"}})
    await made.label(checked="yes")
    found = await objects.ConfigMap.get("settings", namespace="default", api=api)
    listed = [each.name async for each in api.get("configmaps", label_selector={"checked": "yes"})]
    await found.delete()
    return [found.raw["data"], listed, await found.exists()]


async def roll_out(api: Any, objects: Any) -> Any:
    """A deployment that runs, is scaled, and goes."""
    deployment = await objects.Deployment(_DEPLOYMENT, api=api)
    await deployment.create()
    await deployment.wait("condition=Available", timeout=30)
    pods = [each.labels["app"] for each in await deployment.pods()]
    await deployment.scale(3)
    replicas = deployment.replicas
    await deployment.delete(propagation_policy="Background")
    await deployment.wait("delete", timeout=30)
    return [pods, replicas]


async def discover(api: Any, objects: Any) -> Any:
    """A kind that the plane did not have before."""
    await (await objects.CustomResourceDefinition(_DEFINITION, api=api)).create()
    gauges = objects.new_class("Gauge", version=f"{GROUP}/v1", asyncio=True, namespaced=True)
    gauge = await gauges({"metadata": {"name": "g"}, "spec": {"level": 1}}, api=api)
    await gauge.create()
    await gauge.patch({"spec": {"level": 2}})
    return [each.spec.level async for each in api.get(f"gauges.{GROUP}")]


async def watch(api: Any, objects: Any) -> Any:
    metadata = {"name": "seen", "namespace": "default", "labels": {"watched": "yes"}}
    made = await objects.ConfigMap({"metadata": metadata}, api=api)
    await made.create()
    seen: list[str] = []
    async for event, _ in api.watch("configmaps", label_selector={"watched": "yes"}):
        seen.append(event)
        if event == "ADDED":
            await made.patch({"data": {"a": "1"}})
        elif event == "MODIFIED":
            await made.delete()
        else:
            break
    return seen


ERRANDS = {"change": change, "roll_out": roll_out, "discover": discover, "watch": watch}


async def main(kubeconfig: str, name: str) -> None:
    kr8s: Any = import_module("kr8s.asyncio")
    objects: Any = import_module("kr8s.asyncio.objects")
    api = await kr8s.api(kubeconfig=kubeconfig)
    print(json.dumps(await ERRANDS[name](api, objects)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
