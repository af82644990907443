"""What `describe` tells of an object, and what it keeps to itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kvestigate.inspection.description import Description, blocks, describe
from kvestigate.kube import builtins
from kvestigate.kube.decode import decode
from kvestigate.render.encode import to_json
from kvestigate.render.plain import to_text
from kvestigate.snapshot import listings
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.pods import Pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "app:1"}]},
}


def described(resource: str, body: dict[str, Any], *pods: dict[str, Any]) -> Description:
    seen = tuple(decode(to_json(it), Pod) for it in pods)
    besides = Snapshot(NOW, listed={listings.PODS_IN_FULL: seen, listings.ENDPOINT_SLICES: ()})
    return describe(builtins.resource(resource), body, besides)


def pod(name: str, labels: dict[str, str], **container: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "shop", "labels": labels, "uid": name},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "image": "app:1", **container}],
        },
        "status": {"phase": "Running"},
    }


def rows(found: Description, title: str) -> tuple[tuple[str, ...], ...]:
    return next((it.rows for it in found.sections if it.title == title), ())


@pytest.mark.parametrize(
    ("container", "title", "expected"),
    [
        ({"command": ["sh", "-c", "a b"]}, "Commands", ("main", "sh -c 'a b'")),
        ({"args": ["--fast"]}, "Commands", ("main", "(entrypoint of the image) --fast")),
        (
            {"ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}]},
            "Ports",
            ("main", "80/TCP", "http"),
        ),
        ({"env": [{"name": "MODE", "value": "fast"}]}, "Environment", ("main", "MODE", "fast")),
        (
            {"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]},
            "Environment",
            ("main", "DB_PASSWORD", "(hidden)"),
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
            "Environment",
            ("main", "A", "from Secret s, key k"),
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]},
            "Environment",
            ("main", "A", "from field spec.nodeName"),
        ),
        (
            {"envFrom": [{"prefix": "X_", "configMapRef": {"name": "c"}}]},
            "Environment",
            ("main", "X_*", "all of ConfigMap c"),
        ),
        (
            {"command": ["serve", "--password=hunter2"], "args": ["--token", "abc", "-v"]},
            "Commands",
            ("main", "serve '--password=***' --token '***' -v"),
        ),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/d", "subPath": "p", "readOnly": True}]},
            "Mounts",
            ("main", "/d", "v, path p", "read only"),
        ),
    ],
)
def test_what_a_container_is_given(
    container: dict[str, Any], title: str, expected: tuple[str, ...]
) -> None:
    assert rows(described("pods", pod("p", {}, **container)), title) == (expected,)


@pytest.mark.parametrize(
    ("resource", "spec", "status", "fact"),
    [
        (
            "statefulsets",
            {"replicas": 3, "serviceName": "db"},
            {"updatedReplicas": 3, "readyReplicas": 2, "availableReplicas": 2},
            ("replicas", "3 desired, 3 updated, 2 ready, 2 available"),
        ),
        (
            "daemonsets",
            {"updateStrategy": {"type": "OnDelete"}},
            {"desiredNumberScheduled": 2, "numberReady": 1},
            ("pods", "2 desired, 0 updated, 1 ready, 0 available"),
        ),
        ("replicasets", {"replicas": 1}, {}, ("replicas", "1 desired, 0 ready, 0 available")),
        (
            "jobs",
            {"parallelism": 2, "completions": 4},
            {"active": 1, "succeeded": 3},
            ("pods", "2 in parallel, 4 wanted, 1 active, 3 succeeded, 0 failed"),
        ),
        ("jobs", {"suspend": True}, {}, ("suspended", "yes (no pods are created)")),
    ],
)
def test_whatever_makes_pods_is_shown_with_them(
    resource: str, spec: dict[str, Any], status: dict[str, Any], fact: tuple[str, str]
) -> None:
    body = {
        "metadata": {"name": "web", "namespace": "shop", "uid": "1"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE, **spec},
        "status": status,
    }
    found = described(resource, body, pod("web-0", {"app": "web"}), pod("other", {"app": "db"}))
    assert fact in found.facts
    assert [row[0] for row in rows(found, "Pods")] == ["web-0"]
    assert rows(found, "Containers") == (("main", "app:1", "-", "-"),)


def test_lines_of_a_value_stay_lines() -> None:
    body = {"metadata": {"name": "c", "uid": "1"}, "data": {"conf": "a: 1\nb: 2\n"}}
    shown = to_text(blocks(described("configmaps", body)))
    assert "data.conf:      a: 1\n                b: 2\n" in shown
