"""What has to be done to a host so that a workspace is there, or is gone. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import structs

from kvestigate.errors import AlreadyExists, Conflict, InputError, KvestigateError
from kvestigate.render.human import size
from kvestigate.workspace import steps
from kvestigate.workspace.fence import FIRST_USER, LAST_USER, Fencing
from kvestigate.workspace.marker import GpuId, Marker, marker_path
from kvestigate.workspace.sizes import mount_size
from kvestigate.workspace.spec import StorageMode, WorkspaceSpec
from kvestigate.workspace.steps import Step
from kvestigate.workspace.survey import Found, Survey


@dataclass(frozen=True, slots=True)
class Plan:
    workspace: str
    node: str
    path: str
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    """What the reader should know besides."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that is not as it should be."""

    field: str
    wanted: str
    actual: str
    repairable: bool = False
    """Whether `create` and `apply` put it right; otherwise the workspace has to be made anew."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A workspace that somebody wants to have."""

    spec: WorkspaceSpec
    gpus: tuple[GpuId, ...]
    owner: str
    now: str
    fencing: Fencing = Fencing.NONE
    for_agent: bool = False
    """Agents are not told of others."""


def plan_creation(wish: Wish, seen: Survey, *, cordoned: bool) -> Plan:
    """The steps that are missing; none if the workspace is there already, as it should be."""
    spec, found = wish.spec, seen.at(wish.spec)
    if found is not None and found.marker is not None:
        return _plan_repair(wish, found.marker, seen, cordoned=cordoned)
    check_memory(spec, seen)
    _check_place(spec, found, seen)
    _check_mount(wish)
    closing = spec.gpu.cordon_node and not cordoned
    marker = Marker(
        workspace=spec,
        created_at=wish.now,
        owner=wish.owner,
        gpus=wish.gpus,
        cordoned=closing,
        fencing=wish.fencing,
        uid=0 if wish.fencing is Fencing.NONE else _free_user(seen),
    )
    needed = [steps.cordon(spec)] if closing else []
    needed += [steps.claim(marker), *_construction(marker, found, seen)]
    return Plan(spec.name, spec.node, spec.path, tuple(needed), tuple(_notes(wish)))


def _construction(marker: Marker, found: Found | None, seen: Survey) -> Iterable[Step]:
    """What is still missing of a workspace that has its marker."""
    spec = marker.workspace
    mounted = not spec.tmpfs_path or spec.tmpfs_path in seen.mounts
    if found is None or found.absent or found.marker is None:
        yield steps.make(spec)
    if spec.storage.mode is StorageMode.ALL_TMPFS and not mounted:
        yield steps.mount(marker)
    if found is None or found.absent or found.bare:
        yield steps.furnish(marker)
    if spec.storage.mode is StorageMode.HYBRID and not mounted:
        yield steps.mount(marker)


def _check_mount(wish: Wish) -> None:
    """Root mounts where nobody else can put a link: directly in the workspace."""
    storage = wish.spec.storage
    nested = storage.mode is StorageMode.HYBRID and "/" in storage.hybrid_tmpfs_path
    if nested and wish.fencing is not Fencing.NONE:
        raise InputError(
            f"{storage.hybrid_tmpfs_path!r} is not directly in the workspace",
            where="workspace.storage.hybrid_tmpfs_path",
            hint="name a directory without '/': datasets",
        )


def _free_user(seen: Survey) -> int:
    taken = {marker.uid for marker in seen.markers}
    return next(uid for uid in range(FIRST_USER, LAST_USER + 1) if uid not in taken)


def plan_destruction(spec: WorkspaceSpec, seen: Survey) -> Plan:
    """The steps that remove a workspace, as its marker says that it was made."""
    found = seen.at(spec)
    if found is None:
        return nothing_to_remove(spec)
    if found.marker is None:
        return _plan_leftover(spec, found, seen)
    made = found.marker.workspace
    needed: list[Step] = []
    if count := seen.processes.get(spec.path, 0):
        needed.append(steps.stop(found.marker, count))
    mounted = made.tmpfs_path in seen.mounts
    if mounted:
        needed.append(steps.unmount(made))
    if found.marker.cordoned:
        # Before the marker goes, which alone knows of it: what is broken off can be tried again.
        needed.append(steps.reopen(found.marker, seen.markers))
    if found.absent:
        needed.append(steps.forget(made))
    elif mounted and made.storage.mode is StorageMode.ALL_TMPFS:
        needed.append(steps.remove_directory(made))
    else:
        needed.append(steps.remove_tree(made))
    return Plan(spec.name, spec.node, spec.path, tuple(needed))


def nothing_to_remove(spec: WorkspaceSpec) -> Plan:
    """No steps: whoever removes a workspace twice has what they wanted."""
    return Plan(spec.name, spec.node, spec.path, notes=("it does not exist",))


def differences(
    spec: WorkspaceSpec, marker: Marker, seen: Survey, *, cordoned: bool
) -> list[Change]:
    """What of an existing workspace is not as `spec` says."""
    made = marker.workspace
    pairs = [
        ("storage.mode", spec.storage.mode.value, made.storage.mode.value),
        ("storage.tmpfs_size", *(mount_size(side.storage.tmpfs_bytes) for side in (spec, made))),
        ("storage.hybrid_tmpfs_path", *(_hybrid(side) for side in (spec, made))),
        ("gpu.reserve", str(spec.gpu.reserve), str(made.gpu.reserve)),
        ("gpu.indices", *(str(sorted(side.gpu.indices)) for side in (spec, made))),
        ("gpu.cordon_node", *(str(side.gpu.cordon_node).lower() for side in (spec, made))),
    ]
    if spec.storage.mode is not made.storage.mode:
        pairs = [pair for pair in pairs if not pair[0].startswith(("storage.tmpfs", "storage.hy"))]
    found = [Change(field, wanted, actual) for field, wanted, actual in pairs if wanted != actual]
    if made.tmpfs_path and made.tmpfs_path not in seen.mounts:
        found.append(Change(made.tmpfs_path, "a tmpfs", "not mounted", repairable=True))
    if made.gpu.cordon_node and not cordoned:
        found.append(Change(f"node {made.node}", "cordoned", "open", repairable=True))
    return found


def check_memory(spec: WorkspaceSpec, seen: Survey) -> None:
    """Refuse a tmpfs that could take more than the host can give."""
    wanted = spec.storage.tmpfs_bytes
    if wanted > seen.memory:
        raise Conflict(
            f"workspace.storage.tmpfs_size: {spec.storage.tmpfs_size} is more than the "
            f"{size(seen.memory)} of memory that {spec.node} has free",
            hint="make it smaller, or use mode: disk",
        )


def _plan_repair(wish: Wish, marker: Marker, seen: Survey, *, cordoned: bool) -> Plan:
    spec = wish.spec
    if marker.owner != wish.owner:
        whose = repr(marker.owner) if marker.owner else "an operator"
        if wish.for_agent:
            whose = "somebody else"
        raise AlreadyExists(
            f"workspace {spec.name!r} on {spec.node} belongs to {whose}", hint="choose another name"
        )
    changes = differences(spec, marker, seen, cordoned=cordoned)
    if fixed := [change for change in changes if not change.repairable]:
        said = "; ".join(
            f"{change.field} is {change.actual}, not {change.wanted}" for change in fixed
        )
        raise AlreadyExists(
            f"workspace {spec.name!r} is on {spec.node} already, and differs: {said}",
            hint="kvestigate workspace diff shows all; destroy it to make it anew",
        )
    needed: list[Step] = []
    if marker.workspace.gpu.cordon_node and not cordoned:
        # Noted first: a cordon that nobody knows the reason of would stay for ever.
        needed += [steps.rewrite(structs.replace(marker, cordoned=True)), steps.cordon(spec)]
    if spec.tmpfs_path and spec.tmpfs_path not in seen.mounts:
        check_memory(spec, seen)
    needed += _construction(marker, seen.at(spec), seen)
    return Plan(spec.name, spec.node, spec.path, tuple(needed), ("it exists already",))


def _plan_leftover(spec: WorkspaceSpec, found: Found, seen: Survey) -> Plan:
    """A workspace in memory is gone after a restart, but for the directory that it was in."""
    if found.empty and spec.path not in seen.mounts:
        note = f"if the node was cordoned for it: kvestigate workspace uncordon {spec.node}"
        return Plan(spec.name, spec.node, spec.path, (steps.remove_directory(spec),), (note,))
    raise _no_workspace(spec)


def _check_place(spec: WorkspaceSpec, found: Found | None, seen: Survey) -> None:
    if found is not None and (not found.empty or spec.path in seen.mounts):
        raise _no_workspace(spec)


def _no_workspace(spec: WorkspaceSpec) -> KvestigateError:
    return Conflict(
        f"{spec.path} on {spec.node} exists but is not a workspace: "
        f"there is no {marker_path(spec)}",
        hint="choose another name, or look at what it is and remove it by hand",
    )


def _notes(wish: Wish) -> Iterable[str]:
    if wish.gpus:
        yield "GPUs: " + ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in wish.gpus)
    if wish.gpus and not wish.spec.gpu.cordon_node:
        yield "the node stays open: Kubernetes may give the same GPUs to pods"


def _hybrid(spec: WorkspaceSpec) -> str:
    return spec.storage.hybrid_tmpfs_path if spec.storage.mode is StorageMode.HYBRID else ""
