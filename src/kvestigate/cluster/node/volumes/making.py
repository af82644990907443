"""A pod's volumes as directories of the machine, and where containers see them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kvestigate.cluster.node.hosts import ownership
from kvestigate.cluster.node.hosts.interface import Bind, Ownership, Propagation
from kvestigate.cluster.node.spec.environment import (
    MissingReference,
    Surroundings,
    expand,
    names_in,
)
from kvestigate.cluster.node.spec.pod import (
    Container,
    DownwardSource,
    KeySource,
    Mount,
    Pod,
    ProjectedPart,
    Reference,
    TokenSource,
    Volume,
)
from kvestigate.cluster.node.volumes.files import File, chosen, downward, write_atomically
from kvestigate.cluster.node.volumes.sources import Claimed
from kvestigate.kube import quantities

_PROPAGATIONS = {
    "HostToContainer": Propagation.FROM_HOST,
    "Bidirectional": Propagation.BOTH,
}

# Container runtimes make a missing directory when the type says nothing.
_CREATED = {"": "directory", "DirectoryOrCreate": "directory", "FileOrCreate": "file"}

_PRIVATE_TOKEN_MODE = 0o600
"""The mode of a token in a pod that names a user or group for it."""

TokenIssuer = Callable[[Pod, TokenSource], Awaitable[str]]


ClaimFinder = Callable[[Pod, str], Awaitable[Claimed]]
"""Raises `MissingReference`."""


@dataclass(frozen=True, slots=True)
class Mountable:
    """One volume, made."""

    source: str
    on_node: bool = False
    create: str = ""
    memory: int | None = None
    read_only: bool = False
    takes_group: bool = False
    """Whether the host has to give it to the pod's group."""


def references(pod: Pod) -> set[Reference]:
    """The ConfigMaps and Secrets that the volumes are made from."""
    return {source.reference for volume in pod.spec.volumes for source in _sources(volume)}


def is_written(volume: Volume) -> bool:
    """Whether a volume's files come from the API, and so may change."""
    sources = (volume.config_map, volume.secret, volume.projected, volume.downward_api)
    return any(source is not None for source in sources)


class Volumes:
    """Makes volumes below `root`, one directory a pod."""

    def __init__(self, root: Path, *, token: TokenIssuer, claim: ClaimFinder) -> None:
        self._root = root
        self._token = token
        self._claim = claim

    async def make(self, pod: Pod, around: Surroundings, now: float) -> dict[str, Mountable]:
        """All volumes by name. Raises `MissingReference` for what is not there yet."""
        made: dict[str, Mountable] = {}
        for volume in pod.spec.volumes:
            try:
                made[volume.name] = await self._one(pod, volume, around, now)
            except MissingReference as missing:
                raise _unmounted(pod, volume, missing) from missing
        return made

    async def _one(self, pod: Pod, volume: Volume, around: Surroundings, now: float) -> Mountable:
        directory = self._root / pod.metadata.uid / volume.name
        if volume.host_path is not None:
            create = _CREATED.get(volume.host_path.type, "")
            return Mountable(volume.host_path.path, on_node=True, create=create)
        if volume.persistent_volume_claim is not None:
            claim = volume.persistent_volume_claim
            return _mountable(await self._claim(pod, claim.claim_name), claim.read_only)
        if volume.ephemeral is not None:
            return _mountable(await self._claim(pod, f"{pod.metadata.name}-{volume.name}"))
        group = pod.spec.security_context.fs_group
        if volume.empty_dir is not None:
            if not directory.exists():
                _make_shared(directory)
                if group is not None:
                    ownership.give(directory, group)
            if volume.empty_dir.medium != "Memory":
                return Mountable(str(directory))
            limit = volume.empty_dir.size_limit
            return Mountable(str(directory), memory=quantities.whole(limit) if limit else 0)
        files = await self._files(pod, volume, around)
        if files is None:
            raise MissingReference(
                f'volume "{volume.name}" has a type that this node does not support'
            )
        write_atomically(directory, files, now, group)
        return Mountable(str(directory), read_only=True)

    async def _files(
        self, pod: Pod, volume: Volume, around: Surroundings
    ) -> dict[str, File] | None:
        if volume.projected is None:
            own = (volume.config_map, volume.secret, volume.downward_api)
            source = next((source for source in own if source is not None), None)
            return None if source is None else _filled(pod, source, source.default_mode, around)
        files: dict[str, File] = {}
        for part in volume.projected.sources:
            files |= await self._projected(pod, part, volume.projected.default_mode, around)
        return files

    async def _projected(
        self, pod: Pod, part: ProjectedPart, mode: int, around: Surroundings
    ) -> dict[str, File]:
        source = part.config_map or part.secret or part.downward_api
        if source is not None:
            return _filled(pod, source, mode, around)
        if part.service_account_token is not None:
            wanted = part.service_account_token
            user = _only_user(pod)
            if user is not None or pod.spec.security_context.fs_group is not None:
                mode = _PRIVATE_TOKEN_MODE
            return {wanted.path: File((await self._token(pod, wanted)).encode(), mode, user)}
        raise MissingReference(
            "the projected volume has a source of a type that this node does not support"
        )


def _unmounted(pod: Pod, volume: Volume, why: MissingReference) -> MissingReference:
    """The kubelet's words for a volume that cannot be mounted."""
    if _claim_name(pod, volume) is None:
        return MissingReference(f'MountVolume.SetUp failed for volume "{volume.name}" : {why}')
    failed = f"unmounted volumes=[{volume.name}], unattached volumes=[]"
    message = f"Unable to attach or mount volumes: {failed}, failed to process volumes"
    return MissingReference(f"{message}=[{volume.name}]: {why}")


def _claim_name(pod: Pod, volume: Volume) -> str | None:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


async def check(
    pod: Pod,
    around: Surroundings,
    bound_volume: Callable[[Pod, str], Awaitable[object]],
    *,
    besides: Reference,
) -> None:
    """Raise MissingReference if a volume could not be made, without making any."""
    for volume in pod.spec.volumes:
        try:
            claim = _claim_name(pod, volume)
            if claim is not None:
                await bound_volume(pod, claim)
            for source in _sources(volume):
                if source.reference != besides:
                    _filled(pod, source, 0, around)
        except MissingReference as missing:
            raise _unmounted(pod, volume, missing) from missing


def _sources(volume: Volume) -> list[KeySource]:
    parts: list[Volume | ProjectedPart] = [volume]
    parts += volume.projected.sources if volume.projected is not None else ()
    every = [source for part in parts for source in (part.config_map, part.secret)]
    return [source for source in every if source is not None]


def _filled(
    pod: Pod, source: KeySource | DownwardSource, mode: int, around: Surroundings
) -> dict[str, File]:
    """The files of a ConfigMap, a Secret or the downward API."""
    if isinstance(source, DownwardSource):
        return downward(pod, source, mode, around)
    data = around.data.get(source.reference)
    if data is None and not source.optional:
        plural, name = source.reference
        raise MissingReference(f'{plural.removesuffix("s")} "{name}" not found')
    return chosen(data, source.items, mode, source.optional)


def ownerships(pod: Pod, made: Mapping[str, Mountable]) -> tuple[Ownership, ...]:
    """The directories of volumes that are handed to the pod's fsGroup."""
    security = pod.spec.security_context
    if security.fs_group is None:
        return ()
    lenient = security.fs_group_change_policy == "OnRootMismatch"
    return tuple(
        Ownership(volume.source, security.fs_group, lenient)
        for volume in made.values()
        if volume.takes_group and not volume.read_only
    )


def _mountable(claimed: Claimed, read_only: bool = False) -> Mountable:
    return Mountable(
        claimed.path,
        on_node=True,
        create="shared",
        read_only=read_only,
        takes_group=claimed.takes_group,
    )


def _only_user(pod: Pod) -> int | None:
    """The user that all containers but ephemeral ones run as; None if they differ."""
    outer = pod.spec.security_context.run_as_user
    users = {
        outer
        if container.security_context.run_as_user is None
        else container.security_context.run_as_user
        for container in pod.spec.init_containers + pod.spec.containers
    }
    return users.pop() if len(users) == 1 else None


def binds(
    pod: Pod, container: Container, made: Mapping[str, Mountable], env: Mapping[str, str]
) -> tuple[Bind, ...]:
    """Where one container sees the volumes."""
    group = pod.spec.security_context.fs_group
    return tuple(_bind(mount, made, env, group) for mount in container.volume_mounts)


def _bind(
    mount: Mount, made: Mapping[str, Mountable], env: Mapping[str, str], group: int | None
) -> Bind:
    volume = made.get(mount.name)
    if volume is None:
        raise MissingReference(f'there is no volume "{mount.name}"')
    below = _expanded(mount.sub_path_expr, env) if mount.sub_path_expr else mount.sub_path
    source = volume.source
    if below:
        if ".." in Path(below).parts or below.startswith("/"):
            raise MissingReference(f'subPath "{below}" points outside the volume')
        source = str(Path(source) / below)
        if not volume.on_node and not Path(source).exists():
            _make_shared(Path(source))
            if group is not None:
                ownership.give(Path(source), group)
    return Bind(
        source=source,
        target=mount.mount_path,
        read_only=mount.read_only or volume.read_only,
        on_node=volume.on_node,
        create=volume.create,
        propagation=_PROPAGATIONS.get(mount.mount_propagation, Propagation.NONE),
        memory=volume.memory,
        group=group,
    )


def _expanded(text: str, env: Mapping[str, str]) -> str:
    missing = sorted(name for name in names_in(text) if not env.get(name))
    if missing:
        raise MissingReference(f"missing value for {', '.join(missing)}")
    return expand(text, env)


def _make_shared(directory: Path) -> None:
    """A directory that any user in the pod may write to."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o777)
