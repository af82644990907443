"""Environments and command lines."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.node.spec.environment import (
    MissingReference,
    Surroundings,
    environment,
    expand,
    hostname,
    references,
)
from kvestigate.cluster.node.spec.pod import (
    CONFIG_MAP,
    SECRET,
    Container,
    Pod,
)
from kvestigate.kube.views.network import Service

DATA = {
    (CONFIG_MAP, "conf"): {"a": b"1", "b": b"2"},
    (SECRET, "sec"): {"pw": b"hunter"},
    (CONFIG_MAP, "none"): None,
}


def variables(container: dict[str, Any], **around: Any) -> dict[str, str]:
    made = msgspec.convert(
        {
            "metadata": {
                "name": "web-0",
                "namespace": "shop",
                "uid": "u1",
                "labels": {"app": "web", "tier": 'a"b'},
                "annotations": {"x/y": "z"},
            },
            "spec": {"nodeName": "n1", "containers": [{"name": "c", **container}]},
        },
        Pod,
    )
    surroundings = Surroundings(
        data=DATA,
        host_ip="127.0.0.1",
        pod_ip="10.244.0.9",
        allocatable={"cpu": "4", "memory": "8Gi"},
        **around,
    )
    env = environment(made, made.spec.containers[0], surroundings)
    env.pop("HOSTNAME")
    return env


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "web-0"),
        ({"hostname": "rank-0"}, "rank-0"),
        ({"hostNetwork": True}, "n1"),
    ],
)
def test_a_pod_in_the_network_of_its_node_has_its_name(spec: dict[str, Any], expected: str) -> None:
    pod = {"metadata": {"name": "web-0"}, "spec": {"nodeName": "n1", "containers": [], **spec}}
    assert hostname(msgspec.convert(pod, Pod)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y2"),
        ("$(MISSING)", "$(MISSING)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A $", "$A $"),
        ("$(A", "$(A"),
        ("$()", "$()"),
    ],
)
def test_expansion(text: str, expected: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expected


@given(st.text(alphabet="abc $()"))
def test_text_without_a_known_name_loses_only_doubled_dollars(text: str) -> None:
    assert expand(text, {}) == text.replace("$$", "$")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"fieldRef": {"fieldPath": "metadata.name"}}, "web-0"),
        ({"fieldRef": {"fieldPath": "metadata.namespace"}}, "shop"),
        ({"fieldRef": {"fieldPath": "metadata.labels['app']"}}, "web"),
        ({"fieldRef": {"fieldPath": "metadata.annotations['x/y']"}}, "z"),
        ({"fieldRef": {"fieldPath": "metadata.labels"}}, 'app="web"\ntier="a\\"b"'),
        ({"fieldRef": {"fieldPath": "spec.nodeName"}}, "n1"),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, "10.244.0.9"),
        ({"fieldRef": {"fieldPath": "status.hostIP"}}, "127.0.0.1"),
        ({"resourceFieldRef": {"resource": "limits.cpu"}}, "2"),
        ({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}, "1500"),
        ({"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}, "64"),
        ({"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Gi"}}, "8"),
        ({"configMapKeyRef": {"name": "conf", "key": "a"}}, "1"),
        ({"secretKeyRef": {"name": "sec", "key": "pw"}}, "hunter"),
        ({"configMapKeyRef": {"name": "none", "key": "a", "optional": True}}, None),
        ({"secretKeyRef": {"name": "sec", "key": "nope", "optional": True}}, None),
    ],
)
def test_a_variable_from_elsewhere(source: dict[str, Any], expected: str | None) -> None:
    container = {
        "env": [{"name": "V", "valueFrom": source}],
        "resources": {"limits": {"cpu": "1500m"}, "requests": {"memory": "64Mi"}},
    }
    assert variables(container).get("V") == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapKeyRef": {"name": "none", "key": "a"}}, 'configmap "none" not found'),
        ({"secretKeyRef": {"name": "sec", "key": "x"}}, "couldn't find key x in Secret shop/sec"),
        ({"fieldRef": {"fieldPath": "spec.nope"}}, 'fieldPath "spec.nope" is not supported'),
    ],
)
def test_what_is_missing_is_named(source: dict[str, Any], message: str) -> None:
    with pytest.raises(MissingReference, match=message):
        variables({"env": [{"name": "V", "valueFrom": source}]})


def test_later_variables_see_earlier_ones_and_win_over_whole_maps() -> None:
    env = variables(
        {
            "envFrom": [
                {"prefix": "P_", "configMapRef": {"name": "conf"}},
                {"secretRef": {"name": "sec"}},
            ],
            "env": [
                {"name": "P_b", "value": "own"},
                {"name": "ALL", "value": "$(P_a)-$(P_b)-$(pw)"},
            ],
        }
    )
    assert env == {"P_a": "1", "P_b": "own", "pw": "hunter", "ALL": "1-own-hunter"}


def test_services_are_told_as_links() -> None:
    service = msgspec.convert(
        {
            "metadata": {"name": "my-db", "namespace": "shop"},
            "spec": {"clusterIP": "10.0.0.7", "ports": [{"name": "sql", "port": 5432}]},
        },
        Service,
    )
    env = variables({}, services=(service,), api=("127.0.0.1", 6443))
    assert env["MY_DB_SERVICE_HOST"] == "10.0.0.7"
    assert env["MY_DB_SERVICE_PORT_SQL"] == "5432"
    assert env["MY_DB_PORT_5432_TCP"] == "tcp://10.0.0.7:5432"
    assert env["KUBERNETES_SERVICE_HOST"] == "127.0.0.1"
    assert env["KUBERNETES_SERVICE_PORT"] == "6443"


def test_references_are_found_before_they_are_needed() -> None:
    container = msgspec.convert(
        {
            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            "envFrom": [{"configMapRef": {"name": "c"}}],
        },
        Container,
    )
    assert references(container) == {(SECRET, "s"), (CONFIG_MAP, "c")}
