"""From a pod's spec to the `Launch` of one container: what it refers to is fetched and made."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from kvestigate.cluster.node.gpu.allocation import Allocation
from kvestigate.cluster.node.hosts.interface import Bind, Launch, Ownership, Process, RunKey
from kvestigate.cluster.node.hosts.process import ShimProcess
from kvestigate.cluster.node.net import files
from kvestigate.cluster.node.pods.claims import Claims
from kvestigate.cluster.node.pods.context import NodeContext
from kvestigate.cluster.node.pods.launching import ceiling, launch
from kvestigate.cluster.node.pods.model_server import SERVES
from kvestigate.cluster.node.spec import environment
from kvestigate.cluster.node.spec.environment import (
    MissingReference,
    Surroundings,
)
from kvestigate.cluster.node.spec.images import served_model
from kvestigate.cluster.node.spec.pod import (
    CONFIG_MAP,
    Container,
    Pod,
    Reference,
)
from kvestigate.cluster.node.volumes import making
from kvestigate.cluster.node.volumes.making import Mountable, Volumes
from kvestigate.cluster.node.volumes.sources import Sources, Tokens

LAST_WORDS = 4096
"""Bytes of a termination message that are kept: its last ones."""


PUBLISHED: Reference = (CONFIG_MAP, "kube-root-ca.crt")
"""What every pod mounts, and what a plane without certificates of its own does not have."""


class NotMounted(MissingReference):
    """A volume cannot be made yet."""


def recorded_launch(pod: Pod, container: Container, key: RunKey, env: Mapping[str, str]) -> Launch:
    """The launch of a container that only exists as a record."""
    words = (*container.command, *container.args)
    return Launch(
        key=key,
        argv=tuple(environment.expand(word, env) for word in words),
        env=env,
        hostname=environment.hostname(pod),
        binds=tuple(Bind("", mount.mount_path) for mount in container.volume_mounts),
        ceiling=ceiling(container),
    )


class Preparation:
    """How a node gets a container ready to start.

    This one is for containers that only exist as records: what they refer to has to be there, as
    for any other, but nothing is written.
    """

    simulated = True

    def __init__(self, context: NodeContext, devices: Allocation) -> None:
        self._context = context
        self._devices = devices
        self._sources = Sources(context.api)
        self._claims = Claims(context, devices.gpus, simulated=self.simulated)

    async def prepare_devices(self, pod: Pod) -> None:
        """Raises `Unprepared` until the pod has all devices that it claims."""
        await self._claims.prepare(pod)

    def _variables(self, pod: Pod, container: Container) -> dict[str, str]:
        """What tells a container of its devices, and its node of what to do in its place."""
        given = self._devices.variables(pod, container, self._claims.uuids(pod, container))
        model = served_model(container.image, container.command, container.args)
        return {**given, SERVES: model} if model else given

    async def prepare(self, pod: Pod, container: Container, key: RunKey) -> Launch:
        """Raises `MissingReference`, `NotMounted` or `EntrypointUnknown`."""
        mounted = {each for each in making.references(pod) if each != PUBLISHED}
        around = await self._surroundings(pod, mounted | environment.references(container))
        try:
            await making.check(pod, around, self._sources.bound_volume, besides=PUBLISHED)
        except MissingReference as missing:
            raise NotMounted(*missing.args) from missing
        env = environment.environment(pod, container, around)
        return recorded_launch(pod, container, key, env | self._variables(pod, container))

    async def _surroundings(self, pod: Pod, references: Iterable[Reference]) -> Surroundings:
        context = self._context
        wanted = sorted(set(references))
        fetched = await asyncio.gather(
            *(self._sources.data(pod, reference) for reference in wanted)
        )
        return Surroundings(
            data={reference: data for reference, (data, _) in zip(wanted, fetched, strict=True)},
            binary={reference: keys for reference, (_, keys) in zip(wanted, fetched, strict=True)},
            services=tuple(context.services),
            host_ip=context.config.address,
            pod_ip=context.pod_ip(pod),
            allocatable=context.allocatable,
            # In a network of their own, containers reach it at its Service's address.
            api=context.config.api_address if context.network is None else None,
        )

    def adopt(self, pod: Pod, process: Process) -> None:
        """Take over the network of a run that an earlier agent started."""

    def last_words(self, key: RunKey) -> str:
        """What a container left in its termination message."""
        return ""

    async def refresh(self, pod: Pod) -> None:
        """Bring the files of a running pod's volumes up to date."""

    def free(self, pod: Pod) -> None:
        """The pod's containers have ended for good: release its devices."""
        self._devices.release(pod.metadata.uid)
        self._claims.forget(pod)

    def forget(self, pod: Pod) -> None:
        self.free(pod)


class RealPreparation(Preparation):
    """For containers that are processes: volumes on disk, the whole environment."""

    simulated = False

    def __init__(self, context: NodeContext, root: Path, devices: Allocation) -> None:
        super().__init__(context, devices)
        self._root = root
        self._tokens = Tokens(self._sources.token, context.clock)
        self._volumes = Volumes(root, token=self._tokens.get, claim=self._sources.claim)
        self._made: dict[str, dict[str, Mountable]] = {}
        """By the pod's uid."""
        self._given: dict[str, set[str]] = {}
        """The volumes that a container of the pod has been started with, by its uid."""

    async def prepare(self, pod: Pod, container: Container, key: RunKey) -> Launch:
        made = self._made.get(pod.metadata.uid)
        wanted = environment.references(container)
        if made is None:
            wanted |= making.references(pod)
        around = await self._surroundings(pod, wanted)
        if made is None:
            try:
                made = await self._volumes.make(pod, around, self._context.clock.now())
            except MissingReference as missing:
                raise NotMounted(*missing.args) from missing
            self._made[pod.metadata.uid] = made
        devices = self._variables(pod, container)
        prepared = launch(pod, container, key, around, made, self._message(key), devices)
        prepared = replace(prepared, ownerships=self._giving(pod, container, made))
        network = self._context.network
        if network is None:
            return prepared
        own = files.binds(pod, container, self._root, around.pod_ip, network.resolver)
        return replace(
            prepared,
            binds=(*prepared.binds, *own),
            network=network.of(pod, around.pod_ip),
        )

    def _giving(
        self, pod: Pod, container: Container, made: Mapping[str, Mountable]
    ) -> tuple[Ownership, ...]:
        """The volumes that change owner now: each once, with the first container that mounts it."""
        given = self._given.setdefault(pod.metadata.uid, set())
        mounted = {mount.name for mount in container.volume_mounts} - given
        given |= mounted
        return making.ownerships(pod, {name: made[name] for name in sorted(mounted)})

    def adopt(self, pod: Pod, process: Process) -> None:
        network = self._context.network
        if network is not None and isinstance(process, ShimProcess):
            process.join(network.of(pod, self._context.pod_ip(pod)))

    async def refresh(self, pod: Pod) -> None:
        if pod.metadata.uid in self._made and any(map(making.is_written, pod.spec.volumes)):
            around = await self._surroundings(pod, making.references(pod))
            try:
                await self._volumes.make(pod, around, self._context.clock.now())
            except MissingReference:
                pass  # what was deleted since stays as it was

    def last_words(self, key: RunKey) -> str:
        try:
            with self._message(key).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - LAST_WORDS))
                return file.read(LAST_WORDS).decode("utf-8", "replace")
        except OSError:
            return ""

    def forget(self, pod: Pod) -> None:
        self._made.pop(pod.metadata.uid, None)
        self._given.pop(pod.metadata.uid, None)
        self._tokens.forget(pod.metadata.uid)
        super().forget(pod)

    def _message(self, key: RunKey) -> Path:
        return self._root / key.pod_uid / ".messages" / f"{key.container}-{key.attempt}"
