"""The clusters of a kubeconfig: each is connected when its first page is asked for."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

from msgspec.structs import replace

from kvestigate.aio.aside import Aside
from kvestigate.aio.clock import Clock, WallClock
from kvestigate.aio.supervisor import Supervisor
from kvestigate.client.access import Access, AccessOptions
from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.client.discovery import Discovery
from kvestigate.console.auditing import LiveAudit
from kvestigate.console.tables import LiveTable
from kvestigate.errors import UsageError, did_you_mean
from kvestigate.kube.resources import Resource

_MOST_TABLES = 8
"""Kinds of one cluster that are followed at a time; the one that was not asked for longest ends."""


class Cluster:
    """One cluster as all viewers see it: one connection, one audit, one watch for each kind."""

    def __init__(
        self, access: Access, api: Api, tasks: Supervisor, aside: Aside, clock: Clock
    ) -> None:
        self.access = access
        self.api = api
        self.discovery = Discovery(api)
        self.audit = LiveAudit(api, access, aside, clock)
        self._tasks = tasks
        self._tables: OrderedDict[Resource, tuple[LiveTable, Callable[[], object]]] = OrderedDict()
        tasks.spawn("audit", self.audit.run())

    def table(self, resource: Resource) -> LiveTable:
        """The rows of a resource, current from the moment its `synced` is set."""
        if resource in self._tables:
            self._tables.move_to_end(resource)
            return self._tables[resource][0]
        table = LiveTable(self.api, resource)
        task = self._tasks.spawn(f"table {resource.qualified}", table.run())
        self._tables[resource] = (table, task.cancel)
        if len(self._tables) > _MOST_TABLES:
            _, (_, stop) = self._tables.popitem(last=False)
            stop()
        return table


class Contexts:
    """All contexts of the kubeconfig."""

    def __init__(
        self,
        names: Sequence[str],
        default: str,
        wanted: AccessOptions,
        resolve: Callable[[AccessOptions], Access],
        tasks: Supervisor,
        stack: AsyncExitStack,
        connected: Callable[[Access], Awaitable[Api]] | None = None,
    ) -> None:
        """`stack` closes the connections in the end."""
        self.names = tuple(names)
        self.default = default
        self._wanted, self._resolve = wanted, resolve
        self._tasks, self._stack = tasks, stack
        self._connected = connected or self._connect
        self._aside, self._clock = Aside(), WallClock()
        self._clusters: dict[str, Cluster] = {}
        self._lock = asyncio.Lock()

    async def cluster(self, context: str) -> Cluster:
        """The cluster of a context; UsageError if the kubeconfig has no such context."""
        if context not in self.names:
            hint = did_you_mean(context, self.names, f"there are: {', '.join(self.names)}")
            raise UsageError(f"context {context!r} is not in the kubeconfig", hint=hint)
        async with self._lock:
            if context not in self._clusters:
                access = self.access(context)
                api = await self._connected(access)
                cluster = Cluster(access, api, self._tasks, self._aside, self._clock)
                self._clusters[context] = cluster
            return self._clusters[context]

    def access(self, context: str, namespace: str = "") -> Access:
        """How to reach the cluster of a context, as the operator; in a namespace, if one is given.

        An empty context is what the options say without one: a cluster without a kubeconfig.
        """
        chosen = replace(self._wanted, context=context) if context else self._wanted
        access = self._resolve(chosen)
        return replace(access, namespace=namespace) if namespace else access

    async def _connect(self, access: Access) -> Api:
        return await self._stack.enter_async_context(connect(access))
