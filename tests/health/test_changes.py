"""A finding says who last changed its object, and claims nothing that the server does not know."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kvestigate.client.access import resolve
from kvestigate.client.choice import AccessOptions
from kvestigate.client.connect import connect
from kvestigate.health.changes import Written, last_change, with_changes
from kvestigate.health.model import Effect, Finding, Subject
from kvestigate.kube import builtins
from kvestigate.render.severity import Severity
from tests.conftest import Cluster

WEB = Subject("Deployment", "web", "shop")
SPEC: dict[str, Any] = {"f:spec": {"f:replicas": {}}}


def writer(name: str, minute: int, fields: Any = None, **more: Any) -> dict[str, Any]:
    time = f"2026-03-01T12:{minute:02}:00Z"
    return {"manager": name, "time": time, "fieldsV1": fields or SPEC, **more}


@pytest.mark.parametrize(
    ("writers", "by"),
    [
        ([writer("helm", 0)], None),
        ([writer("helm", 0), writer("kubectl-edit", 30)], "kubectl-edit"),
        ([writer("kubectl-edit", 30), writer("argocd", 20)], "kubectl-edit"),
        ([writer("helm", 0), writer("kcm", 40, {"f:status": {}}, subresource="status")], None),
        ([writer("helm", 0), writer("kcm", 40, {"f:metadata": {"f:annotations": {}}})], None),
        ([writer("helm", 0), writer("hpa", 40, subresource="scale")], "hpa"),
        ([writer("helm", 0), writer("cm", 40, {"f:data": {}})], "cm"),
        ([writer("", 40)], None),
        ([], None),
    ],
)
def test_the_last_writer_of_the_content_counts(writers: list[Any], by: str | None) -> None:
    meta = {"creationTimestamp": "2026-03-01T12:00:00Z", "managedFields": writers}
    change = last_change(WEB, msgspec.convert({"metadata": meta}, Written, strict=False))
    assert (change.by if change else None) == by


def finding(subject: Subject, *effects: Subject) -> Finding:
    return Finding(
        rule="crash-loop",
        severity=Severity.CRITICAL,
        subject=subject,
        evidence="x",
        why="y",
        command="z",
        effects=tuple(Effect("a", one, "b") for one in effects),
    )


async def test_the_object_of_a_missing_one_is_asked_for(cluster: Cluster) -> None:
    """What was only just created has no change yet; what does not exist has none at all."""
    environ = {"KUBECONFIG": str(cluster.admin_kubeconfig()), "PATH": "/usr/bin:/bin"}
    config_map = Subject("ConfigMap", "settings", "default")
    secret = Subject("Secret", "gone", "default")
    async with connect(resolve(AccessOptions(), environ, None)) as api:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
        await api.create(builtins.resource("configmaps"), body, namespace="default")
        asked = [finding(secret, config_map), finding(secret), finding(config_map)]
        assert await with_changes(api, asked, ()) == tuple(asked)


def test_a_change_reads_as_a_sentence() -> None:
    meta = {
        "creationTimestamp": "2026-03-01T12:00:00Z",
        "managedFields": [writer("kubectl-edit", 30)],
    }
    change = last_change(WEB, msgspec.convert({"metadata": meta}, Written, strict=False))
    assert change is not None
    assert change.at == datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    assert str(change) == (
        "Deployment shop/web was last changed by kubectl-edit at 2026-03-01 12:30 UTC"
    )
