"""The two resources of metrics.k8s.io/v1beta1, made up from what the scraper knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvestigate.cluster.assembly.metrics.scrape import Scraper
from kvestigate.cluster.assembly.metrics.usage import NodeUsage, node_metrics, pod_metrics
from kvestigate.cluster.plane.kinds.registry import builtin
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.request.selection import selection
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.verbs.lookup import Aggregated
from kvestigate.errors import NotFound
from kvestigate.http.message import Response
from kvestigate.kube import builtins

GROUP, VERSION = builtins.POD_METRICS.group, builtins.POD_METRICS.version
_NODES, _PODS = builtin()["", "v1", "nodes"], builtin()["", "v1", "pods"]

API_SERVICE: dict[str, Any] = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": f"{VERSION}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "version": VERSION,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    },
}


def metrics_group(scraper: Scraper) -> list[Aggregated]:
    """What a server has to be given to serve the group."""
    nodes, pods = _NodeMetrics(scraper), _PodMetrics(scraper)
    return [
        Aggregated(Kind(builtins.NODE_METRICS), {"get": nodes.get, "list": nodes.list}),
        Aggregated(Kind(builtins.POD_METRICS), {"get": pods.get, "list": pods.list}),
    ]


class _NodeMetrics:
    def __init__(self, scraper: Scraper) -> None:
        self._scraper = scraper

    async def get(self, call: Call) -> Response:
        name = call.info.name
        item = call.plane.state.get(_NODES.key, "", name)
        used = (await self._scraper.of([name])).get(name) if item is not None else None
        if item is None or used is None:
            raise _missing("nodemetrics", name)
        return answer.one(call, _item(call.kind, node_metrics(name, item.labels, used)))

    async def list(self, call: Call) -> Response:
        chosen = list(_selected(call, _NODES))
        usages = await self._scraper.of(item.name for item in chosen)
        known = call.plane.state.collection(_NODES.key)
        self._scraper.keep_only(item.name for item in known.items())
        made = [
            _item(call.kind, node_metrics(item.name, item.labels, usages[item.name]))
            for item in chosen
            if item.name in usages
        ]
        return await answer.many(call, made, {})


class _PodMetrics:
    def __init__(self, scraper: Scraper) -> None:
        self._scraper = scraper

    async def get(self, call: Call) -> Response:
        namespace, name = call.info.namespace, call.info.name
        item = call.plane.state.get(_PODS.key, namespace, name)
        if item is not None:
            node = _node_of(item)
            used = (await self._scraper.of([node] if node else [])).get(node)
            if used is not None and (namespace, name) in used.pods:
                return answer.one(call, _pod(call.kind, item, used))
        raise _missing("podmetrics", f"{namespace}/{name}")

    async def list(self, call: Call) -> Response:
        placed = [(item, _node_of(item)) for item in _selected(call, _PODS)]
        usages = await self._scraper.of(node for _, node in placed if node)
        made = [
            _pod(call.kind, item, usages[node])
            for item, node in placed
            if node in usages and (item.namespace, item.name) in usages[node].pods
        ]
        return await answer.many(call, made, {})


def _selected(call: Call, kind: Kind) -> Iterator[Item]:
    """The nodes or pods themselves that the selectors are about."""
    chosen = selection(call.info, kind)
    items = call.plane.state.collection(kind.key).items(chosen.namespace or None)
    return (item for item in items if chosen.has(item))


def _node_of(pod: Item) -> str:
    """Known without parsing the pod."""
    node: str = objects.fields_of(pod, _PODS)["spec.nodeName"]
    return node


def _pod(kind: Kind, item: Item, used: NodeUsage) -> Item:
    return _item(kind, pod_metrics(item.namespace, item.name, item.labels, used))


def _item(kind: Kind, obj: Object) -> Item:
    """As if it had been stored."""
    meta = obj["metadata"]
    data = kind.head + answer.encode(obj)[1:]
    return Item(meta.get("namespace", ""), meta["name"], "", 0, 0, data)


def _missing(kind: str, name: str) -> NotFound:
    return NotFound(
        f'{kind}.{GROUP} "{name}" not found', details={"name": name, "group": GROUP, "kind": kind}
    )
