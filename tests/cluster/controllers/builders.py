"""Views for tests of pure decisions: what a test does not name is as the server defaults it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from kvestigate.kube.views.pods import Pod

T = TypeVar("T")

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC).timestamp()
"""A Sunday."""


def at(seconds: float = 0.0) -> str:
    """A time relative to `NOW`, as objects hold it."""
    return datetime.fromtimestamp(NOW + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def view(type: type[T], name: str = "x", *, meta: Any = None, **parts: Any) -> T:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "creationTimestamp": at(-3600),
        "generation": 1,
        **(meta or {}),
    }
    return msgspec.convert({"metadata": metadata, **parts}, type)


def pod(
    name: str,
    phase: str = "Running",
    *,
    ready: bool | None = None,
    since: float = -600,
    owner: str = "",
    meta: Any = None,
    spec: Any = None,
    **status: Any,
) -> Pod:
    """Ready if it runs, unless told otherwise."""
    is_ready = phase == "Running" if ready is None else ready
    conditions = [
        {"type": "Ready", "status": str(is_ready), "lastTransitionTime": at(since)},
        *status.pop("conditions", ()),
    ]
    metadata = dict(meta or {})
    if owner:
        reference = {"kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}
        metadata["ownerReferences"] = [reference]
    return view(
        Pod,
        name,
        meta=metadata,
        spec=spec or {},
        status={"phase": phase, "conditions": conditions, **status},
    )
