"""Our client on the real server, set up the way the commands do it: from a kubeconfig file."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from kvestigate.client.access import AccessOptions, resolve
from kvestigate.client.api import Api
from kvestigate.client.auth.interface import Now, wall_now
from kvestigate.client.connect import connect
from kvestigate.kube import builtins
from kvestigate.kube.views.meta import Metadata, View

# Nothing of the environment that the tests run in may choose a cluster or a proxy.
ENVIRONMENT = {"PATH": os.defpath}
CONFIG_MAPS = builtins.resource("configmaps")
REVIEWS = builtins.resource("selfsubjectreviews")


class ConfigMap(View, frozen=True):
    metadata: Metadata = Metadata()
    data: dict[str, str] = msgspec.field(default_factory=dict)


@asynccontextmanager
async def connected(kubeconfig: Path, *, now: Now = wall_now) -> AsyncIterator[Api]:
    access = resolve(AccessOptions(kubeconfig=str(kubeconfig)), ENVIRONMENT, None, now=now)
    async with connect(access) as api:
        yield api


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the server says we are."""

    name: str
    uid: str
    groups: tuple[str, ...]
    """Without the one that every authenticated user is in."""
    extra: Mapping[str, list[str]]


async def whoami(api: Api) -> Identity:
    body = {"apiVersion": REVIEWS.api_version, "kind": REVIEWS.kind}
    review = await api.create(REVIEWS, body)
    user = review["status"]["userInfo"]
    return Identity(
        user["username"],
        user.get("uid", ""),
        tuple(group for group in user.get("groups", ()) if group != "system:authenticated"),
        user.get("extra", {}),
    )


@dataclass(slots=True)
class Watch:
    """A clock that the test moves."""

    at: datetime = field(default_factory=wall_now)

    def __call__(self) -> datetime:
        return self.at

    def forward(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)
