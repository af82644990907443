"""Objects that subresources act on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.cluster.plane.conftest import Api

PODS = "/api/v1/namespaces/default/pods"

MakePod = Callable[..., Awaitable[Any]]


@pytest.fixture
def make_pod(api: Api) -> MakePod:
    """Create a pod in the default namespace; keyword arguments go into its spec."""

    async def make(
        name: str,
        phase: str = "",
        *,
        ready: bool = True,
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> Any:
        pod = {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"containers": [{"name": "main", "image": "image"}], **spec},
        }
        made = await api.post(PODS, pod)
        assert made.status == 201, made.body
        if not phase:
            return made.body
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        status = {"status": {"phase": phase, "conditions": conditions}}
        patched = await api.patch(f"{PODS}/{name}/status", status)
        assert patched.status == 200, patched.body
        return patched.body

    return make
