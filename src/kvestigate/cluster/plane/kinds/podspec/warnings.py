"""Advice about pod specs that work, but not as their author may think. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from kvestigate.cluster.plane.kinds.podspec.spec import each_container
from kvestigate.kube import names, quantities

Object = dict[str, Any]

DEPRECATED_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
    "security.alpha.kubernetes.io/unsafe-sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_MOST = 1000
"""Warnings on one object: more do not fit into headers anyway."""
_COMPARED = 32
"""Earlier ports that a port is compared with: a pod may repeat one thousands of times."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_SELECTOR = "a null labelSelector results in matching no pod"


def warn_of_pod(pod: Object) -> list[str]:
    return list(islice(_warnings(pod, ""), _MOST))


def warn_of_template(template: Object, path: str) -> list[str]:
    """Of a workload's template at a path such as `spec.template`."""
    return list(islice(_warnings(template, f"{path}."), _MOST))


def hostname_warnings(name: str) -> list[str]:
    """A warning if the pod's name is not a DNS label, as it becomes the hostname."""
    problems = names.label_problems(name) if name else []
    if not problems:
        return []
    return [
        "metadata.name: this is used in the Pod's hostname, which can result in surprising "
        f"behavior; a DNS label is recommended: [{' '.join(problems)}]"
    ]


def _warnings(pod: Object, at: str) -> Iterator[str]:
    spec, annotations = pod["spec"], (pod.get("metadata") or {}).get("annotations", {})
    for field in filter(spec.__contains__, _FIELDS):
        yield from _FIELDS[field](f"{at}spec.{field}", spec[field])
    for key in filter(annotations.__contains__, _ANNOTATIONS):
        yield f"{at}metadata.annotations[{key}]: {_ANNOTATIONS[key]}"
    yield from _containers(spec, f"{at}spec")
    if spec["terminationGracePeriodSeconds"] < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{at}spec.terminationGracePeriodSeconds: {why}"


def _containers(spec: Object, at: str) -> Iterator[str]:
    ports = 0
    for path, container in each_container(spec, at):
        if resources := container["resources"]:
            for kind in filter(resources.__contains__, ("limits", "requests")):
                yield from _fractional(f"{path}.resources.{kind}", resources[kind])
        if len(container.get("env", ())) > 1:
            yield from _hidden(f"{path}.env", container["env"])
        if "ports" in container:
            ports += len(container["ports"])
            yield from _unbound(f"{path}.ports", container["ports"])
    if ports > 1:
        yield from _ports(list(each_container(spec, at)))


def _unbound(path: str, ports: list[Object]) -> Iterator[str]:
    for index, port in enumerate(ports):
        if "hostIP" in port and not port.get("hostPort"):
            shown = (
                f"{{Name:{port.get('name', '')} HostPort:0 ContainerPort:{port['containerPort']} "
                f"Protocol:{port['protocol']} HostIP:{port['hostIP']}}}"
            )
            yield f"{path}[{index}]: hostIP set without hostPort: {shown}"


def _node_selector(path: str, selector: dict[str, str]) -> Iterator[str]:
    for key in filter(DEPRECATED_NODE_LABELS.__contains__, selector):
        yield f"{path}[{key}]: {DEPRECATED_NODE_LABELS[key]}"


def _volumes(path: str, volumes: list[Object]) -> Iterator[str]:
    for index, volume in enumerate(volumes):
        for source in filter(_VOLUMES.__contains__, volume):
            yield f"{path}[{index}].{source}: {_VOLUMES[source]}"


def _affinity(path: str, affinity: Object) -> Iterator[str]:
    if "nodeAffinity" in affinity:
        yield from _node_affinity(f"{path}.nodeAffinity", affinity["nodeAffinity"])
    for name in filter(affinity.__contains__, ("podAffinity", "podAntiAffinity")):
        yield from _pod_affinity(f"{path}.{name}", affinity[name])


def _node_affinity(path: str, affinity: Object) -> Iterator[str]:
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        yield from _node_term(f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]", term)
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        yield from _node_term(f"{path}.{_PREFERRED}[{index}].preference", weighted["preference"])


def _node_term(path: str, term: Object) -> Iterator[str]:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key", "")
        if key in DEPRECATED_NODE_LABELS:
            at = f"{path}.matchExpressions[{index}].key"
            yield f"{at}: {key} is {DEPRECATED_NODE_LABELS[key]}"


def _spreading(path: str, constraints: list[Object]) -> Iterator[str]:
    for index, constraint in enumerate(constraints):
        key = constraint["topologyKey"]
        if key in DEPRECATED_NODE_LABELS:
            yield f"{path}[{index}].topologyKey: {key} is {DEPRECATED_NODE_LABELS[key]}"
        if "labelSelector" not in constraint:
            yield f"{path}[{index}].labelSelector: {_NO_SELECTOR}"


def _repeated(field: str) -> Callable[[str, list[Object]], Iterator[str]]:
    """Warnings about items that name the same."""

    def check(path: str, items: list[Object]) -> Iterator[str]:
        seen: set[str] = set()
        for index, item in enumerate(items):
            value = item.get(field, "")
            if value in seen:
                yield f'{path}[{index}].{field}: duplicate {field} "{value}"'
            seen.add(value)
            if not value:
                yield f'{path}[{index}].{field}: invalid empty {field} ""'

    return check


def _fractional(path: str, amounts: Object) -> Iterator[str]:
    for name in filter(amounts.__contains__, ("memory", "ephemeral-storage")):
        amount = amounts[name]
        if amount[-1] == "m" and quantities.millis(amount) % 1000:
            why = f'fractional byte value "{amount}" is invalid, must be an integer'
            yield f"{path}[{name}]: {why}"


def _hidden(path: str, variables: list[Object]) -> Iterator[str]:
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name = variable["name"]
        if name in seen and _hides(variable):
            yield (
                f'{path}[{index}]: hides previous definition of "{name}", which may be '
                "dropped when using apply"
            )
        seen.add(name)


def _hides(variable: Object) -> bool:
    """Whether a repeated variable replaces the earlier one instead of extending it."""
    earlier, value = f"$({variable.get('name', '')})", variable.get("value", "")
    return "valueFrom" in variable or value == earlier or earlier not in value


def _ports(containers: list[tuple[str, Object]]) -> Iterator[str]:
    ports = [
        (f"{path}.ports[{index}]", port)
        for path, container in containers
        for index, port in enumerate(container.get("ports") or ())
    ]
    known: dict[tuple[int, str], list[tuple[str, Object]]] = {}
    for at, port in ports:
        others = known.setdefault((port["containerPort"], port["protocol"]), [])
        for other_at, other in others[:_COMPARED]:
            if clash := _clash(port, other):
                yield f"{at}: {clash} port definition with {other_at}"
        others.append((at, port))
    named: dict[str, str] = {}
    for at, port in ports:
        name = port.get("name", "")
        if name in named:
            yield (
                f'{at}: duplicate port name "{name}" with {named[name]}, services and probes that '
                f"select ports by name will use {named[name]}"
            )
        elif name:
            named[name] = at


def _clash(port: Object, other: Object) -> str:
    here, there = port.get("hostPort", 0), other.get("hostPort", 0)
    ip, other_ip = port.get("hostIP", ""), other.get("hostIP", "")
    if (here, ip) == (there, other_ip):
        return "duplicate"
    if not here or not there:
        return "overlapping"
    return "dangerously ambiguous" if here == there and bool(ip) != bool(other_ip) else ""


def _pod_affinity(path: str, affinity: Object) -> Iterator[str]:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        if "labelSelector" not in term:
            yield f"{path}.{_REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        if "labelSelector" not in weighted["podAffinityTerm"]:
            yield f"{path}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


_FIELDS: dict[str, Callable[[str, Any], Iterator[str]]] = {
    "nodeSelector": _node_selector,
    "affinity": _affinity,
    "topologySpreadConstraints": _spreading,
    "volumes": _volumes,
    "hostAliases": _repeated("ip"),
    "imagePullSecrets": _repeated("name"),
    "overhead": _fractional,
}
