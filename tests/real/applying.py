"""Random histories of objects that several managers write to and apply configurations to."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.differential.script import TYPES, Script, Step

MANAGERS = ("ann", "bob", "cid")
LENGTH = 7
"""Steps in a history."""


@dataclass(frozen=True, slots=True)
class Topic:
    path: str
    base: dict[str, Any]
    """What the object needs to be valid."""
    parts: tuple[dict[str, Any], ...]
    """What else it may have; those that set the same fields differ about them."""
    replaced: bool = True
    """Whether a PUT of the base with other parts can succeed."""
    patches: tuple[str, ...] = ("merge", "strategic")
    status: tuple[dict[str, Any], ...] = ()


def _workload(**container: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", **container}]}}}}


CONFIG_MAP = Topic(
    "/api/v1/namespaces/{ns}/configmaps",
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
    (
        {"data": {"one": "1"}},
        {"data": {"one": "2", "two": "2"}},
        {"data": {"two": "3"}, "binaryData": {"b": "AAAA"}},
        {"data": {}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"labels": {"a": "c", "x.y/z": "w"}, "annotations": {"n": "o<&>\n"}}},
        {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}},
        {"metadata": {"finalizers": ["example.com/c", "example.com/a"]}},
        {
            "metadata": {
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-1"},
                    {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "u-2"},
                ]
            }
        },
        {"immutable": False},
    ),
)

SERVICE = Topic(
    "/api/v1/namespaces/{ns}/services",
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "a"},
        "spec": {"clusterIP": "None", "ports": [{"port": 80, "name": "http"}]},
    },
    (
        {"spec": {"selector": {"app": "a"}}},
        {"spec": {"selector": {"app": "b", "tier": "c"}}},
        {"spec": {"ports": [{"port": 443, "name": "https", "protocol": "TCP"}]}},
        {"spec": {"ports": [{"port": 53, "name": "dns", "protocol": "UDP"}]}},
        {"spec": {"ports": [{"port": 80, "name": "web", "targetPort": "named"}]}},
        {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}},
        {"spec": {"publishNotReadyAddresses": True}},
        {"spec": {"sessionAffinity": "ClientIP"}},
        {"metadata": {"labels": {"app": "a"}}},
    ),
    status=({"status": {"loadBalancer": {"ingress": [{"ip": "10.1.1.1"}]}}},),
)

POD = Topic(
    "/api/v1/namespaces/{ns}/pods",
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "i"}],
        },
    },
    (
        {"spec": {"containers": [{"name": "main", "image": "j"}]}},
        {"spec": {"containers": [{"name": "main", "image": "k"}]}},
        {"spec": {"activeDeadlineSeconds": 60}},
        {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}},
        {"metadata": {"labels": {"a": "c"}}},
    ),
    replaced=False,
    status=(
        {"status": {"phase": "Running", "podIPs": [{"ip": "10.1.1.1"}], "podIP": "10.1.1.1"}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}], "hostIP": "1.1.1.1"}},
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"status": {"conditions": [{"type": "example.com/x", "status": "True"}]}},
    ),
)

DEPLOYMENT = Topic(
    "/apis/apps/v1/namespaces/{ns}/deployments",
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [{"name": "main", "image": "i"}]},
            },
        },
    },
    (
        {"spec": {"replicas": 2}},
        {"spec": {"replicas": 3}},
        {"spec": {"strategy": {"type": "Recreate"}}},
        {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}},
        {"spec": {"template": {"metadata": {"labels": {"b": "c"}}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s"}]}}}},
        {
            "spec": {
                "template": {
                    "spec": {
                        "volumes": [
                            {"name": "v", "emptyDir": {}},
                            {"name": "w", "configMap": {"name": "c", "items": []}},
                        ],
                        "initContainers": [{"name": "first", "image": "f", "args": ["a"]}],
                    }
                }
            }
        },
        {
            "spec": {
                "template": {
                    "spec": {
                        "securityContext": {"runAsUser": 1, "sysctls": []},
                        "nodeSelector": {"a": "b"},
                        "imagePullSecrets": [{"name": "s"}],
                        "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a", "b"]}],
                        "topologySpreadConstraints": [
                            {
                                "maxSkew": 1,
                                "topologyKey": "zone",
                                "whenUnsatisfiable": "ScheduleAnyway",
                            }
                        ],
                    }
                }
            }
        },
        _workload(ports=[{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]),
        _workload(ports=[{"containerPort": 443, "name": "tls"}]),
        _workload(env=[{"name": "A", "value": "1"}, {"name": "B<C", "value": "2"}]),
        _workload(env=[{"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        _workload(resources={"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}}),
        _workload(resources={"limits": {"cpu": "2000m", "memory": "1024Mi"}}),
        _workload(command=["a", "b"], args=["c"]),
        _workload(
            livenessProbe={"httpGet": {"path": "/x", "port": 80}, "periodSeconds": 7},
            volumeMounts=[{"name": "x", "mountPath": "/x"}],
        ),
        _workload(image="other"),
    ),
    status=(
        {"status": {"replicas": 2, "observedGeneration": 1}},
        {"status": {"conditions": [{"type": "Available", "status": "True"}]}},
        {"status": {"conditions": [{"type": "Progressing", "status": "True"}], "replicas": 3}},
    ),
)

TOPICS = {
    "configmap": CONFIG_MAP,
    "service": SERVICE,
    "pod": POD,
    "deployment": DEPLOYMENT,
}


def history(name: str, seed: int, topic: Topic | None = None) -> Script:
    """The script of one random history."""
    random, topic = Random(f"{name} {seed}"), topic or TOPICS[name]
    steps = [_create(topic, random) if random.random() < 0.5 else _apply(topic, random, True)]
    steps += [_step(topic, random) for _ in range(LENGTH - 1)]
    return Script("applying", f"{name}-{seed}", tuple(steps), managed=True)


def _step(topic: Topic, random: Random) -> Step:
    chance = random.random()
    if topic.status and chance < 0.2:
        return _status(topic, random)
    if chance < 0.65:
        return _apply(topic, random, random.random() < 0.7)
    if topic.replaced and chance < 0.75:
        return Step("PUT", _at(topic, random), _object(topic, random, base=True))
    return _patch(topic, random)


def _create(topic: Topic, random: Random) -> Step:
    path = f"{topic.path}?fieldManager={random.choice(MANAGERS)}"
    return Step("POST", path, _object(topic, random, base=True))


def _apply(topic: Topic, random: Random, base: bool) -> Step:
    path = _at(topic, random) + ("&force=true" if random.random() < 0.4 else "")
    return Step("PATCH", path, _object(topic, random, base=base), _type("apply"))


def _patch(topic: Topic, random: Random) -> Step:
    change = copy.deepcopy(random.choice(topic.parts))
    if random.random() < 0.3:
        _nullify(change, random)
    kind = random.choice(topic.patches)
    return Step("PATCH", _at(topic, random), change, _type(kind))


def _status(topic: Topic, random: Random) -> Step:
    part = copy.deepcopy(random.choice(topic.status))
    if random.random() < 0.5:
        return Step("PATCH", _at(topic, random, "/status"), part, _type("merge"))
    named = {key: topic.base[key] for key in ("apiVersion", "kind")}
    config = {**named, "metadata": {"name": "a"}, **part}
    force = "&force=true" if random.random() < 0.4 else ""
    return Step("PATCH", _at(topic, random, "/status") + force, config, _type("apply"))


def _at(topic: Topic, random: Random, part: str = "") -> str:
    return f"{topic.path}/a{part}?fieldManager={random.choice(MANAGERS)}"


def _type(short: str) -> dict[str, str]:
    return {"content-type": TYPES[short]}


def _object(topic: Topic, random: Random, *, base: bool) -> dict[str, Any]:
    named = {key: topic.base[key] for key in ("apiVersion", "kind", "metadata")}
    made: dict[str, Any] = copy.deepcopy(topic.base if base else named)
    for part in random.sample(topic.parts, random.randint(0, 3)):
        _combine(made, copy.deepcopy(part))
    return made


def _combine(into: Any, part: Any) -> None:
    """Merge a part as somebody writing both would: elements with one name are one element."""
    for key, value in part.items():
        here = into.get(key)
        if isinstance(here, dict) and isinstance(value, dict):
            _combine(here, value)
        elif isinstance(here, list) and isinstance(value, list):
            for element in value:
                _combine_element(here, element)
        else:
            into[key] = value


def _combine_element(into: list[Any], element: Any) -> None:
    if not isinstance(element, dict):
        if element not in into:
            into.append(element)
        return
    for other in into:
        if _identity(other) == _identity(element):
            _combine(other, element)
            return
    into.append(element)


def _identity(element: dict[str, Any]) -> Any:
    for keys in (("containerPort",), ("port",), ("uid",), ("name",), ("type",)):
        if keys[0] in element:
            protocol = element.get("protocol", "TCP") if keys[0].endswith(("port", "Port")) else ""
            return element[keys[0]], protocol
    return id(element)


def _nullify(change: dict[str, Any], random: Random) -> None:
    """Replace one value by null, which removes it."""
    key = random.choice(list(change))
    if isinstance(change[key], dict) and change[key] and random.random() < 0.7:
        _nullify(change[key], random)
    else:
        change[key] = None
