"""What every namespace needs before a pod can run in it: the default service account."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvestigate import errors
from kvestigate.client.cache import Change, Key
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import NAMESPACES, SERVICE_ACCOUNTS

NAME = "default"


def namespace_key(name: str) -> Any:
    """A change of the object with this name concerns its namespace."""

    def keys(change: Change[Any]) -> Iterable[Key]:
        if change.key.name == name:
            yield Key("", change.key.namespace)

    return keys


class ServiceAccountController:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._namespaces = context.watch(NAMESPACES, owners.itself)
        self._accounts = context.watch(SERVICE_ACCOUNTS, namespace_key(NAME))

    async def reconcile(self, key: Key) -> float | None:
        namespace = self._namespaces.get(key)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return None
        if self._accounts.get(Key(key.name, NAME)) is None:
            body = {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": NAME, "namespace": key.name},
            }
            try:
                await self._context.create(SERVICE_ACCOUNTS, body)
            except errors.AlreadyExists:
                pass
        return None
