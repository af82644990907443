"""The files on a volume, listed and copied through a temporary pod that mounts the volume."""

from __future__ import annotations

import asyncio
import posixpath
import tarfile
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.client.streams import Channel, Session
from kvestigate.errors import DeadlineExceeded, InputError, KvestigateError, NotFound
from kvestigate.jobs.answers import VolumeFiles
from kvestigate.jobs.interface import PathRequest
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.ids import new_id
from kvestigate.jobs.tasks.model import DEFAULT_IMAGE
from kvestigate.jobs.users import User
from kvestigate.jobs.volumes.claims import claim_of, pods_with
from kvestigate.kube.views.meta import PartialObject
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.storage import PersistentVolumeClaim
from kvestigate_client.extraction import extract
from kvestigate_client.members import ArchiveRefused

ROOT = "/volume"
_CONTAINER = "files"
_START_SECONDS = 180.0
_LIFE_SECONDS = 3600
_PIECE = 64 * 1024
_IN_MEMORY = 8 << 20


async def list_files(api: Api, user: User, request: PathRequest) -> VolumeFiles:
    claim = await claim_of(api, user, request.volume_id)
    target = _inside(request.path)
    async with _helper(api, user, claim) as pod:
        listed = await _run(api, pod, ["ls", "-lA", "--", target], None, None)
    lines = listed.decode(errors="replace").splitlines()
    return VolumeFiles(request.volume_id, request.path, tuple(lines))


async def copy_in(api: Api, user: User, there: tuple[str, str], source: Path) -> None:
    """Copy a file or directory to a path on a volume; missing directories are made."""
    volume, path = there
    claim = await claim_of(api, user, volume)
    target = _inside(path)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        name = ""
        if not path.endswith("/") and target != ROOT:
            target, name = posixpath.split(target)
        await asyncio.to_thread(_pack, source, name, file)
        command = ["/bin/sh", "-c", 'mkdir -p "$1" && tar -xf - -C "$1"', "sh", target]
        async with _helper(api, user, claim) as pod:
            await _run(api, pod, command, file, None)


async def copy_out(api: Api, user: User, there: tuple[str, str], target: Path) -> tuple[str, ...]:
    """Copy a file or directory of a volume into the directory `target`, or to that name.

    The result names links to elsewhere, devices and such, which were not made.
    """
    volume, path = there
    claim = await claim_of(api, user, volume)
    parent, name = posixpath.split(_inside(path))
    if _inside(path) == ROOT:
        parent, name = ROOT, "."
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        async with _helper(api, user, claim) as pod:
            await _run(api, pod, ["tar", "-cf", "-", "-C", parent, "--", name], None, file)
        file.seek(0)
        return await asyncio.to_thread(_unpack, file, name, target)


def _pack(source: Path, name: str, file: IO[bytes]) -> None:
    try:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            tar.add(source, arcname=name or source.resolve().name)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(source)) from error
    file.seek(0)


def _unpack(file: IO[bytes], name: str, target: Path) -> tuple[str, ...]:
    """What could not be made here."""
    into, rename = (
        (target, None) if target.is_dir() or name == "." else (target.parent, target.name)
    )
    try:
        into.mkdir(parents=True, exist_ok=True)
        return extract(file, into, name=rename).skipped
    except (OSError, ArchiveRefused) as error:
        raise InputError(f"cannot be written: {error}", where=str(target)) from error


def _inside(path: str) -> str:
    """The path in the helper's container; nothing but the volume can be meant."""
    if "\0" in path or ".." in path.split("/"):
        raise InputError(f"path: {path!r} leads out of the volume")
    return posixpath.normpath(f"{ROOT}/{path}")


@asynccontextmanager
async def _helper(api: Api, user: User, claim: PersistentVolumeClaim) -> AsyncIterator[str]:
    name = f"volume-files-{new_id()}"
    await api.create(PODS, await _pod(api, user, claim, name), type=PartialObject)
    try:
        await _started(api, name)
        yield name
    finally:
        try:
            await api.delete(PODS, name, namespace=api.namespace, grace_seconds=0, type=bytes)
        except NotFound:
            pass


async def _pod(api: Api, user: User, claim: PersistentVolumeClaim, name: str) -> dict[str, Any]:
    volume = claim.metadata.name
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        # Whatever becomes of us, it does not stay.
        "activeDeadlineSeconds": _LIFE_SECONDS,
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": _CONTAINER,
                "image": DEFAULT_IMAGE,
                "command": ["sleep", str(_LIFE_SECONDS)],
                "volumeMounts": [{"name": "volume", "mountPath": ROOT}],
            }
        ],
        "volumes": [{"name": "volume", "persistentVolumeClaim": {"claimName": volume}}],
    }
    machines = {pod.spec.node_name for pod in await pods_with(api, volume)} - {""}
    if machines and "ReadWriteOnce" in claim.spec.access_modes:
        # One machine at a time may mount it: the one that has it.
        term = {
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": [min(machines)]}]
        }
        required = {"nodeSelectorTerms": [term]}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
        }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": api.namespace,
            "labels": labels.of_user(user),
        },
        "spec": spec,
    }


async def _started(api: Api, name: str) -> None:
    selection = Selection(api.namespace, fields=f"metadata.name={name}")
    waits_for = ""
    try:
        async with (
            asyncio.timeout(_START_SECONDS),
            api.watch(PODS, selection, type=Pod) as events,
        ):
            async for event in events:
                pod = event.object
                if pod.status.phase in ("Failed", "Succeeded"):
                    raise KvestigateError(f"pod {name} ended: {pod.status.message or 'no reason'}")
                if any(item.state.running is not None for item in pod.status.container_statuses):
                    return
                waits_for = "; ".join(
                    item.message for item in pod.status.conditions if item.message
                )
    except TimeoutError:
        raise DeadlineExceeded(
            f"the volume was not mounted within {_START_SECONDS:g} s: {waits_for or 'no reason'}"
        ) from None


async def _run(
    api: Api, pod: str, command: Sequence[str], source: IO[bytes] | None, sink: IO[bytes] | None
) -> bytes:
    """Run a command; its output goes to `sink` or, if there is none, is the result."""
    running = api.exec(
        pod, command, namespace=api.namespace, container=_CONTAINER, stdin=source is not None
    )
    output, complaint = bytearray(), bytearray()
    async with running:
        feeding = asyncio.ensure_future(_feed(running, source)) if source is not None else None
        try:
            async for piece in running:
                if piece.channel is Channel.STDERR:
                    complaint += piece.data[:_PIECE]
                elif sink is not None:
                    sink.write(piece.data)
                else:
                    output += piece.data
        finally:
            if feeding is not None:
                feeding.cancel()
                await asyncio.wait({feeding})
    if running.exit_code:
        reason = complaint.decode(errors="replace").strip().replace(ROOT, "")
        raise InputError(f"on the volume: {reason or f'exit code {running.exit_code}'}")
    return bytes(output)


async def _feed(running: Session, source: IO[bytes]) -> None:
    while piece := source.read(_PIECE):
        await running.write(piece)
    await running.end_stdin()
