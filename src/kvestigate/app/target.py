"""Host or pods: where an App runs, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvestigate.app.spec import AppSpec, Lifecycle, RestartPolicy, Target
from kvestigate.errors import InputError
from kvestigate.workspace.sizes import parse_size
from kvestigate.workspace.spec import StorageMode

BIG_TMPFS = 64 << 30
"""Bytes of memory for files that a pod would not be given."""


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    target: Target
    """Never `auto`."""
    reasons: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    """What the App says and this target does not do."""


def pick_target(spec: AppSpec) -> ResolvedTarget:
    """What the App says or, if it leaves it to us, what its needs mean.

    A workspace takes a node that was named and one sign that the App is meant for a host; all
    else runs in pods, which are kept within their limits. InputError when it contradicts itself.
    """
    if spec.target is not Target.AUTO:
        return _resolved(spec, spec.target, (f"target: {spec.target}",))
    if _wiped(spec):
        raise InputError(
            "restart: 'always' contradicts workspace.storage.mode: 'all-tmpfs': "
            "when the node restarts, there is nothing left to start",
            hint="write storage.mode: hybrid, restart: on-failure, or target: k8s",
        )
    if not spec.nodes:
        return _resolved(spec, Target.K8S, ("workspace.node is not set",))
    if signs := tuple(_signs(spec)):
        field = "workspace.node" if spec.workspace.node else "distributed.nodes"
        return _resolved(spec, Target.WORKSPACE, (f"{field}: {', '.join(spec.nodes)}", *signs))
    why = "nothing but workspace.node speaks for a host: no GPU, no big tmpfs, lifecycle service"
    return _resolved(spec, Target.K8S, (why,))


def _wiped(spec: AppSpec) -> bool:
    tmpfs = spec.workspace.storage.mode is StorageMode.ALL_TMPFS
    return tmpfs and spec.restart is RestartPolicy.ALWAYS


def _signs(spec: AppSpec) -> Iterator[str]:
    if _wished_tmpfs(spec) >= BIG_TMPFS:
        size = spec.workspace.storage.tmpfs_size
        yield f"workspace.storage.tmpfs_size: {size}, 64 GiB or more"
    if spec.resources.gpu:
        yield f"resources.gpu: {spec.resources.gpu}"
    if spec.lifecycle is not Lifecycle.SERVICE:
        yield f"lifecycle: {spec.lifecycle}"


def _wished_tmpfs(spec: AppSpec) -> int:
    """Bytes. The default of workspaces is big, too, and nobody's wish: it does not count."""
    storage = spec.workspace.storage
    wished = storage.tmpfs_size and storage.mode is not StorageMode.DISK
    return parse_size(storage.tmpfs_size) if wished else 0


def _resolved(spec: AppSpec, target: Target, reasons: tuple[str, ...]) -> ResolvedTarget:
    found = _host_caveats(spec) if target is Target.WORKSPACE else _pod_caveats(spec)
    return ResolvedTarget(target, reasons, tuple(found))


def _host_caveats(spec: AppSpec) -> Iterator[str]:
    if _wiped(spec):
        yield "restart: always lasts until the node restarts, which wipes an all-tmpfs workspace"
    if spec.resources.cpu or spec.resources.memory:
        yield "resources.cpu and resources.memory are kept by what the host has: workspace ps tells"
    if spec.k8s.replicas > 1:
        yield f"k8s.replicas: {spec.k8s.replicas} means nothing on a host: it runs once"
    if spec.k8s.ports:
        yield "k8s.ports are not exposed: the program is reached at its node's address"
    for field in ("env_from_secrets", "volumes"):
        if getattr(spec.k8s, field):
            yield f"k8s.{field} are not there on a host"


def _pod_caveats(spec: AppSpec) -> Iterator[str]:
    if spec.workspace.sources:
        yield "workspace.sources are not copied into pods: what they need is in k8s.image"
