"""Objects that admission rules look at."""

from __future__ import annotations

from typing import Any

from tests.cluster.plane.conftest import Api

NAMESPACE = "/api/v1/namespaces/default"


def pod(name: str = "p", resources: Any = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": resources or {}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


async def made(api: Api, path: str, obj: dict[str, Any]) -> Any:
    """The object as it was stored."""
    answer = await api.post(path, obj)
    assert answer.status == 201, answer.body
    return answer.body


async def refusal(api: Api, path: str, obj: dict[str, Any]) -> str:
    answer = await api.post(path, obj)
    assert answer.status == 403, answer.body
    message: str = answer.body["message"]
    return message.partition(" is forbidden: ")[2]
