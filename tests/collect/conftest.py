"""A plane on a loopback port, with a kubeconfig, and what tests put into it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from kvestigate.client.api import Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.errors import ApiError, to_status
from kvestigate.http.message import Handler, Request, Response, Upgrade
from kvestigate.kube import builtins
from tests.static_tokens import StaticTokens

DEPLOYMENTS = builtins.resource("deployments")


def deployment(name: str, image: str = "web:1") -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def image(text: str) -> dict[str, Any]:
    """A patch that changes the image."""
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": text}]}}}}


@dataclass
class Bed:
    """A plane, and a front that can refuse watches."""

    inner: Handler
    api: Api = field(init=False)
    refusing: list[ApiError] = field(default_factory=list)
    """What the next watches are answered with."""

    def __post_init__(self) -> None:
        self.api = Api(InProcessTransport(self.handle, headers=[("authorization", "Bearer t")]))

    async def handle(self, request: Request) -> Response | Upgrade:
        if "watch=true" in request.query and self.refusing:
            error = self.refusing.pop(0)
            body = msgspec.json.encode(to_status(error))
            return Response(error.http_code, [("content-type", "application/json")], body)
        return await self.inner(request)

    async def create(self, *names: str) -> None:
        for name in names:
            await self.api.create(DEPLOYMENTS, deployment(name), namespace="default")

    async def change(self, name: str, to: str) -> None:
        await self.api.patch(DEPLOYMENTS, name, image(to), namespace="default")

    async def delete(self, name: str) -> None:
        await self.api.delete(DEPLOYMENTS, name, namespace="default")


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with Store(MemoryBackend()) as store:
        tokens = StaticTokens({digest("t"): User("admin", (MASTERS, AUTHENTICATED))})
        yield Bed(ApiServer(store, tokens, AllowAll(), random=Random(1)).handle)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"
