"""Where a pod can be, worked out the slow way from manifests: no indexes, no memory, no sharing.

Written from the documentation of each field, to judge the scheduler by. It knows the shapes that
`test_decision` generates and no others.
"""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def feasible(pod: Object, nodes: list[Object], placed: list[Object]) -> set[str]:
    """Names of the nodes on which the pod can be."""
    return {
        node["metadata"]["name"]
        for node in nodes
        if _tolerated(pod, node)
        and _wanted(pod, node)
        and _fits(pod, node, placed)
        and _ports_free(pod, node, placed)
        and _spread(pod, node, nodes, placed)
        and _neighbours(pod, node, nodes, placed)
    }


def _spec(pod: Object) -> Object:
    spec: Object = pod["spec"]
    return spec


def _labels(thing: Object) -> dict[str, str]:
    labels: dict[str, str] = thing["metadata"].get("labels") or {}
    return labels


def _on(node: Object, placed: list[Object]) -> list[Object]:
    return [pod for pod in placed if _spec(pod)["nodeName"] == node["metadata"]["name"]]


def _tolerated(pod: Object, node: Object) -> bool:
    tolerations = list(_spec(pod).get("tolerations", ()))
    taints = list(node["spec"].get("taints", ()))
    if node["spec"].get("unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    for taint in taints:
        if taint["effect"] == "PreferNoSchedule":
            continue
        helped = False
        for toleration in tolerations:
            same_effect = toleration.get("effect", "") in ("", taint["effect"])
            same_key = toleration.get("key", "") in ("", taint["key"])
            exists = toleration.get("operator") == "Exists"
            same_value = toleration.get("value", "") == taint.get("value", "")
            helped = helped or (same_effect and same_key and (exists or same_value))
        if not helped:
            return False
    return True


def _wanted(pod: Object, node: Object) -> bool:
    labels = _labels(node)
    for key, value in _spec(pod).get("nodeSelector", {}).items():
        if labels.get(key) != value:
            return False
    affinity = _spec(pod).get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED)
    if affinity is None:
        return True
    return any(
        term["matchExpressions"]
        and all(_expression(item, labels) for item in term["matchExpressions"])
        for term in affinity["nodeSelectorTerms"]
    )


def _expression(item: Object, labels: dict[str, str]) -> bool:
    key, values = item["key"], item.get("values", [])
    if item["operator"] == "In":
        return key in labels and labels[key] in values
    if item["operator"] == "NotIn":
        return key not in labels or labels[key] not in values
    if item["operator"] == "Exists":
        return key in labels
    return key not in labels


def _fits(pod: Object, node: Object, placed: list[Object]) -> bool:
    here = _on(node, placed)
    room = node["status"]["allocatable"]
    if len(here) + 1 > int(room["pods"]):
        return False
    for resource in ("cpu", "example.com/dongle"):
        need = _need(pod, resource)
        used = sum(_need(other, resource) for other in here)
        if need and used + need > int(room.get(resource, 0)):
            return False
    return True


def _need(pod: Object, resource: str) -> int:
    return sum(
        int(container["resources"]["requests"].get(resource, 0))
        for container in _spec(pod)["containers"]
    )


def _ports(pod: Object) -> list[tuple[str, int]]:
    return [
        (port.get("hostIP", "0.0.0.0"), port["hostPort"])
        for container in _spec(pod)["containers"]
        for port in container.get("ports", ())
    ]


def _ports_free(pod: Object, node: Object, placed: list[Object]) -> bool:
    taken = [port for other in _on(node, placed) for port in _ports(other)]
    for address, number in _ports(pod):
        for other_address, other_number in taken:
            if number == other_number and (
                address == other_address or "0.0.0.0" in (address, other_address)
            ):
                return False
    return True


def _spread(pod: Object, node: Object, nodes: list[Object], placed: list[Object]) -> bool:
    constraints = [
        item
        for item in _spec(pod).get("topologySpreadConstraints", ())
        if item["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    keys = [item["topologyKey"] for item in constraints]
    for item in constraints:
        key = item["topologyKey"]
        if key not in _labels(node):
            return False
        counts: dict[str, int] = {}
        for each in nodes:
            if not all(wanted in _labels(each) for wanted in keys):
                continue
            if item.get("nodeAffinityPolicy", "Honor") == "Honor" and not _wanted(pod, each):
                continue
            if item.get("nodeTaintsPolicy", "Ignore") == "Honor":
                bare = {**each, "spec": {"taints": each["spec"].get("taints", [])}}
                if not _tolerated(pod, bare):
                    continue
            value = _labels(each)[key]
            counts[value] = counts.get(value, 0) + sum(
                _selected(item["labelSelector"], other)
                and other["metadata"]["namespace"] == pod["metadata"]["namespace"]
                for other in _on(each, placed)
            )
        least = min(counts.values(), default=0)
        if len(counts) < item.get("minDomains", 1):
            least = 0
        mine = counts.get(_labels(node)[key], 0) + _selected(item["labelSelector"], pod)
        if mine - least > item["maxSkew"]:
            return False
    return True


def _selected(selector: Object, pod: Object) -> bool:
    labels = _labels(pod)
    return all(labels.get(key) == value for key, value in selector["matchLabels"].items())


def _terms(pod: Object, kind: str) -> list[Object]:
    terms: list[Object] = _spec(pod).get("affinity", {}).get(kind, {}).get(REQUIRED, [])
    return terms


def _means(term: Object, holder: Object, other: Object) -> bool:
    """Whether the term of one pod is about another."""
    namespaces = term.get("namespaces") or [holder["metadata"]["namespace"]]
    return other["metadata"]["namespace"] in namespaces and _selected(term["labelSelector"], other)


def _neighbours(pod: Object, node: Object, nodes: list[Object], placed: list[Object]) -> bool:
    by_name = {each["metadata"]["name"]: each for each in nodes}

    def together(other: Object, key: str) -> bool:
        home = _labels(by_name[_spec(other)["nodeName"]])
        return key in home and home[key] == _labels(node).get(key)

    for term in _terms(pod, "podAntiAffinity"):
        for other in placed:
            if _means(term, pod, other) and together(other, term["topologyKey"]):
                return False
    for other in placed:
        for term in _terms(other, "podAntiAffinity"):
            if _means(term, other, pod) and together(other, term["topologyKey"]):
                return False
    terms = _terms(pod, "podAffinity")
    if not terms:
        return True
    if any(term["topologyKey"] not in _labels(node) for term in terms):
        return False
    matching = [other for other in placed if all(_means(term, pod, other) for term in terms)]
    if all(any(together(other, term["topologyKey"]) for other in matching) for term in terms):
        return True
    anywhere = any(
        term["topologyKey"] in _labels(by_name[_spec(other)["nodeName"]])
        for other in matching
        for term in terms
    )
    return not anywhere and all(_means(term, pod, pod) for term in terms)
