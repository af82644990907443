"""Volumes: PersistentVolumeClaims that belong to a user."""

from __future__ import annotations

from collections.abc import Iterable

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.errors import Conflict, Forbidden, InputError, NotFound, did_you_mean
from kvestigate.jobs import answers
from kvestigate.jobs.interface import ACCESS_MODES, OneVolume, ResizeRequest, VolumeRequest
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.compile import object_name
from kvestigate.jobs.tasks.ids import is_id, new_id
from kvestigate.jobs.users import Caller, Role, User
from kvestigate.kube import builtins, quantities
from kvestigate.kube.names import SUBDOMAIN_MAX
from kvestigate.kube.views.meta import PartialObject
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.storage import PersistentVolume, PersistentVolumeClaim

CLAIMS = builtins.resource("persistentvolumeclaims")
CLASSES = builtins.resource("storageclasses")
VOLUMES = builtins.resource("persistentvolumes")
_FINISHED = ("Succeeded", "Failed")
_LONGEST_NAME = 200


async def create(api: Api, user: User, request: VolumeRequest) -> answers.VolumeCreateResponse:
    volume_id = new_id()
    _check(request)
    if request.name in {_name(claim) for claim in await _claims(api, user)}:
        raise Conflict(
            f"a volume named {request.name!r} already exists",
            hint="`k8s-cli volumes list` shows it; choose another name or delete it",
        )
    if request.storage_class:
        await _check_class(api, request.storage_class)
    ending = f"-{volume_id}"
    spec = {
        "accessModes": list(request.access_modes),
        "resources": {"requests": {"storage": request.size}},
    }
    if request.storage_class:
        spec["storageClassName"] = request.storage_class
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": object_name(request.name)[: SUBDOMAIN_MAX - len(ending)] + ending,
            "labels": labels.of_volume(user, volume_id, request.name),
            "annotations": {labels.EXACT_NAME: request.name},
        },
        "spec": spec,
    }
    await api.create(CLAIMS, body, namespace=api.namespace)
    message = f"Volume created successfully with ID: {volume_id}"
    return answers.VolumeCreateResponse(volume_id, "created", message)


async def _check_class(api: Api, name: str) -> None:
    """InputError if the storage class does not exist: its claim would stay Pending for ever.

    A class without an object exists if PersistentVolumes name it.
    """
    try:
        classes = await api.list(CLASSES, type=PartialObject)
        names = sorted(item.metadata.name for item in classes.items)
        volumes = () if name in names else (await api.list(VOLUMES, type=PersistentVolume)).items
    except Forbidden:
        return  # who may not look has to know
    if name not in names and all(item.spec.storage_class_name != name for item in volumes):
        raise InputError(
            f"storage_class: {name!r} does not exist",
            hint=f"there are: {', '.join(names)}"
            if names
            else "the cluster has no storage classes",
        )


async def list_all(api: Api, user: User | None) -> answers.VolumeListResponse:
    volumes = [_status(claim) for claim in await _claims(api, user)]
    volumes.sort(key=lambda volume: (volume.created_at, volume.volume_id), reverse=True)
    return answers.VolumeListResponse(tuple(volumes))


async def status(api: Api, user: User, request: OneVolume) -> answers.VolumeStatus:
    return _status(await claim_of(api, user, request.volume_id))


async def delete(api: Api, user: User, request: OneVolume) -> answers.VolumeDeleteResponse:
    claim = await claim_of(api, user, request.volume_id)
    volume_id = claim.metadata.labels.get(labels.VOLUME_ID, "")
    if users := await pods_with(api, claim.metadata.name):
        names = ", ".join(pod.metadata.name for pod in users)
        raise Conflict(
            f"volume {volume_id} is in use by {names}",
            hint="stop the task first: `k8s-cli jobs list`, `k8s-cli jobs stop ID`",
        )
    await api.delete(CLAIMS, claim.metadata.name, uid=claim.metadata.uid, type=bytes)
    message = f"Volume {volume_id} deleted successfully"
    return answers.VolumeDeleteResponse(volume_id, "deleted", message)


async def resize(api: Api, user: User, request: ResizeRequest) -> answers.VolumeResizeResponse:
    """Make a volume larger. Kubernetes never makes one smaller, and not every class grows."""
    size, wanted = request.size, _size(request.size)
    claim = await claim_of(api, user, request.volume_id)
    phase = claim.status.phase or "Pending"
    if phase != "Bound":
        raise Conflict(
            f"Volume {request.volume_id} is {phase}: only a Bound volume can be resized",
            hint="the first task that uses the volume binds it; or create a new volume",
        )
    current_size = claim.spec.resources.requests.get("storage", "0")
    if wanted <= quantities.parse(current_size).nanos:
        raise InputError(f"size: {size!r} is not larger than the current size {current_size}")
    change = {"spec": {"resources": {"requests": {"storage": size}}}}
    name = claim.metadata.name
    await api.patch(CLAIMS, name, change, namespace=api.namespace, type=bytes)
    found_id = claim.metadata.labels.get(labels.VOLUME_ID, "")
    message = f"Volume {found_id} is being resized to {size}"
    return answers.VolumeResizeResponse(found_id, "resizing", message)


async def resolve(api: Api, caller: Caller, names: Iterable[str]) -> dict[str, str]:
    """The claim of each name: the caller's volume, else a claim that the caller may mount."""
    wanted = set(names)
    if not wanted:
        return {}
    own = {_name(claim): claim.metadata.name for claim in await _claims(api, caller.user)}
    return {name: own.get(name) or await _literal(api, caller, name, own) for name in wanted}


async def _literal(api: Api, caller: Caller, name: str, own: Iterable[str]) -> str:
    claims = await api.list(CLAIMS, Selection(api.namespace), type=PersistentVolumeClaim)
    for claim in claims.items:
        if claim.metadata.name == name and _may_mount(caller, claim):
            return name
    way_out = (
        "`k8s-cli volumes list` shows your volumes, `k8s-cli volumes create` creates one; "
        f"an administrator shares another claim by the label {labels.SHARED}=true"
    )
    raise InputError(
        f"volumes: volume {name!r} does not exist", hint=did_you_mean(name, own, way_out)
    )


def _may_mount(caller: Caller, claim: PersistentVolumeClaim) -> bool:
    """A claim without an owner is for administrators, until it is labelled as shared."""
    owner = claim.metadata.labels.get(labels.OWNER)
    if owner is not None:
        return owner == caller.user.digest
    return caller.role is Role.ADMIN or claim.metadata.labels.get(labels.SHARED) == "true"


def _status(claim: PersistentVolumeClaim) -> answers.VolumeStatus:
    meta, spec = claim.metadata, claim.spec
    return answers.VolumeStatus(
        volume_id=meta.labels.get(labels.VOLUME_ID, ""),
        name=_name(claim),
        size=claim.status.capacity.get("storage") or spec.resources.requests.get("storage", ""),
        storage_class=spec.storage_class_name,
        access_modes=spec.access_modes,
        status=claim.status.phase or "Pending",
        created_at=answers.stamp(meta.creation_timestamp),
        username=meta.labels.get(labels.USERNAME, ""),
        metadata=answers.VolumeMetadata(meta.name, meta.namespace),
    )


def _check(request: VolumeRequest) -> None:
    if not request.name.strip() or len(request.name) > _LONGEST_NAME:
        raise InputError(f"name: {request.name!r} is not a name of 1 to {_LONGEST_NAME} characters")
    if not request.name.isprintable():
        raise InputError(f"name: {request.name!r} has characters that cannot be printed")
    _size(request.size)
    for mode in request.access_modes:
        if mode not in ACCESS_MODES:
            raise InputError(
                f"access_modes: {mode!r} is not an access mode",
                hint=f"there are: {', '.join(ACCESS_MODES)}",
            )
    if not request.access_modes:
        raise InputError("access_modes: at least one is needed", hint="write ReadWriteOnce")


def _size(text: str) -> int:
    try:
        nanos = quantities.parse(text).nanos
    except InputError as error:
        raise InputError(f"size: {error.message}", hint="write 10Gi or 1Ti") from None
    if nanos <= 0:
        raise InputError(f"size: {text!r} is not more than 0", hint="write 10Gi")
    return nanos


async def _claims(api: Api, user: User | None, **exact: str) -> list[PersistentVolumeClaim]:
    selector = labels.labelled(labels.VOLUME, user, **exact)
    claims = await api.list(
        CLAIMS, Selection(api.namespace, labels=selector), type=PersistentVolumeClaim
    )
    return [
        claim
        for claim in claims.items
        if claim.metadata.deletion_timestamp is None and labels.belongs(claim.metadata.labels, user)
    ]


async def claim_of(api: Api, user: User, volume: str) -> PersistentVolumeClaim:
    """The claim of the user's volume with this ID or, if none has it, with this name."""
    if is_id(volume):
        for claim in await _claims(api, user, **{labels.VOLUME_ID: volume}):
            return claim
    own = await _claims(api, user)
    for claim in own:
        if _name(claim) == volume:
            return claim
    way_out = "`k8s-cli volumes list` shows your volumes"
    raise NotFound(
        f"Volume {volume} not found", hint=did_you_mean(volume, map(_name, own), way_out)
    )


async def pods_with(api: Api, claim: str) -> list[Pod]:
    """Unfinished pods that mount the claim."""
    pods = await api.list(PODS, Selection(api.namespace), type=Pod)
    return [
        pod
        for pod in pods.items
        if pod.status.phase not in _FINISHED
        and any(
            volume.persistent_volume_claim is not None
            and volume.persistent_volume_claim.claim_name == claim
            for volume in pod.spec.volumes
        )
    ]


def _name(claim: PersistentVolumeClaim) -> str:
    meta = claim.metadata
    return meta.annotations.get(labels.EXACT_NAME) or meta.labels.get(labels.VOLUME_NAME, "")
