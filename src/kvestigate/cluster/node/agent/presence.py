"""A node's presence in the API: its Node object, its status and its lease."""

from __future__ import annotations

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.client.api import Api, PatchType
from kvestigate.client.call import Selection
from kvestigate.cluster.node.agent import registration
from kvestigate.cluster.node.agent.registration import LEASE_NAMESPACE, LEASES, NODES, SLICES
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.gpu.slices import DRA_DRIVER, resource_slices
from kvestigate.cluster.node.hosts.interface import Facts
from kvestigate.kube.times import micro_text
from kvestigate.kube.views.core import Node


class Presence:
    """Registers a node once and then keeps saying that it lives."""

    def __init__(
        self, api: Api, config: NodeConfig, facts: Facts, clock: Clock, *, port: int
    ) -> None:
        self._api = api
        self._config = config
        self._facts = facts
        self._clock = clock
        self._port = port
        self._since = clock.now()
        self._uid = ""

    async def register(self, existing: Node | None = None) -> None:
        """Create the Node, status included, or take over the one that is there.

        `existing` is the Node of an earlier agent, if it is known.
        """
        if existing is not None and registration.is_current(existing, self._config, self._facts):
            self._uid = existing.metadata.uid
            await self._renew()
            await self._publish()
            return
        node = registration.node_object(self._config, self._facts)
        try:
            created = await self._api.create(NODES, node | {"status": self._status()})
        except errors.AlreadyExists:
            change = {"metadata": {"labels": node["metadata"]["labels"]}}
            created = await self._api.patch(NODES, self._config.name, change)
            created.pop("status", None)
        self._uid = created["metadata"]["uid"]
        if not (created.get("status") or {}).get("conditions"):
            await self._report()
        await self._claim()
        await self._publish()

    async def heartbeat(self) -> None:
        """Until cancelled."""
        reported = self._clock.now()
        while True:
            await self._clock.routine().sleep(self._config.heartbeat)
            try:
                await self._renew()
                if self._clock.now() - reported >= self._config.report:
                    await self._report()
                    reported = self._clock.now()
            except errors.KvestigateError:
                pass  # the lease says by its age that we could not

    def _status(self) -> dict[str, object]:
        return registration.node_status(
            self._config,
            self._facts,
            port=self._port,
            now=self._clock.now(),
            since=self._since,
        )

    async def _report(self) -> None:
        await self._api.patch(
            NODES,
            self._config.name,
            {"status": self._status()},
            PatchType.STRATEGIC,
            subresource="status",
            type=bytes,
        )

    async def _publish(self) -> None:
        """Offer GPUs for dynamic allocation; slices of other GPUs are replaced as a whole."""
        name, gpus = self._config.name, self._config.gpus
        if not gpus:
            return
        where = Selection(fields=f"spec.nodeName={name},spec.driver={DRA_DRIVER}")
        present = (await self._api.list(SLICES, where)).items
        latest = max((each["spec"]["pool"]["generation"] for each in present), default=0)
        wanted = resource_slices(name, self._uid, gpus, latest + 1)
        if [each["spec"].get("devices") for each in present] == [
            each["spec"]["devices"] for each in wanted
        ]:
            return
        for each in present:
            await self._api.delete(SLICES, each["metadata"]["name"], type=bytes)
        for each in wanted:
            await self._api.create(SLICES, each, type=bytes)

    async def _claim(self) -> None:
        lease = registration.lease_object(self._config, self._clock.now(), self._uid)
        try:
            await self._api.create(LEASES, lease, namespace=LEASE_NAMESPACE, type=bytes)
        except errors.AlreadyExists:
            await self._renew()

    async def _renew(self) -> None:
        change = {"spec": {"renewTime": micro_text(self._clock.now())}}
        try:
            await self._api.patch(
                LEASES, self._config.name, change, namespace=LEASE_NAMESPACE, type=bytes
            )
        except errors.NotFound:
            await self._claim()
