"""The single steps that make and remove a workspace, each with what takes it back. Pure.

Names and paths are checked when specs are made; they are quoted all the same.
"""

from __future__ import annotations

import enum
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace

from msgspec import structs

from kvestigate.workspace.marker import MARKER, GpuId, Marker, encode
from kvestigate.workspace.shell import assigned
from kvestigate.workspace.sizes import mount_size
from kvestigate.workspace.spec import LAYOUT, WorkspaceSpec


class Where(enum.StrEnum):
    HOST = "host"
    CLUSTER = "cluster"
    """Through the Kubernetes API."""


@dataclass(frozen=True, slots=True)
class Step:
    line: str
    """What it does, in a line."""
    script: str
    """What runs as root on the host; on the cluster, the command that would do the same."""
    undo: str = ""
    """What takes it back, if a later step fails."""
    where: Where = Where.HOST
    cordon: bool | None = None
    """On the cluster: whether the node is closed for pods or opened again."""


def cordon(node: str) -> Step:
    """What takes it back is not here: others may need the node closed by then."""
    return Step(f"cordon node {node}", f"kubectl cordon {node}", where=Where.CLUSTER, cordon=True)


def reopen(marker: Marker, all_here: Iterable[Marker]) -> Step:
    """Open the node again, unless another workspace still wants it closed: then that one will."""
    spec = marker.workspace
    others = (it for it in all_here if it.workspace.path != spec.path)
    heir = next((it for it in others if it.workspace.gpu.cordon_node), None)
    if heir is None:
        return Step(
            f"uncordon node {spec.node}",
            f"kubectl uncordon {spec.node}",
            where=Where.CLUSTER,
            cordon=False,
        )
    step = rewrite(structs.replace(heir, cordoned=True))
    return replace(
        step, line=f"leave node {spec.node} cordoned, for workspace {heir.workspace.name}"
    )


def make(spec: WorkspaceSpec) -> Step:
    script = assigned(root=spec.root, path=spec.path) + (
        'mkdir -p -- "$path"\n'
        '[ "$(readlink -f -- "$path")" = "$(readlink -f -- "$root")/${path##*/}" ]\n'
        '[ -z "$(ls -A -- "$path")" ]\n'
    )
    undo = assigned(path=spec.path) + 'rmdir -- "$path"\n'
    return Step(f"mkdir -p {spec.path}", script, undo)


def mount(spec: WorkspaceSpec) -> Step:
    options = f"size={mount_size(spec.storage.tmpfs_bytes)},mode=755"
    place = spec.tmpfs_path
    script = assigned(path=place) + (
        f'mkdir -p -- "$path"\nmount -t tmpfs -o {options} kvestigate "$path"\n'
    )
    return Step(
        f"mount -t tmpfs -o {options} kvestigate {place}",
        script,
        assigned(path=place) + 'umount -- "$path"\n',
    )


def furnish(marker: Marker) -> Step:
    """The directories and the marker. Under a lock: two may have chosen the same GPUs."""
    spec = marker.workspace
    script = (
        assigned(root=spec.root, path=spec.path, marker=encode(marker))
        + 'exec 9>"$root/.lock"\nflock 9\n'
        + "".join(_unclaimed(gpu) for gpu in marker.gpus)
        + f'cd -- "$path"\nmkdir -p {" ".join(LAYOUT)}\n'
        + f'printf "%s\\n" "$marker" >{MARKER}.new\nmv {MARKER}.new {MARKER}\n'
    )
    undo = assigned(path=spec.path) + (
        f'cd -- "$path"\nrm -f {MARKER} {MARKER}.new\nrm -rf --one-file-system {" ".join(LAYOUT)}\n'
    )
    return Step(f"make {'/ '.join(LAYOUT)}/ and {MARKER} in {spec.path}", script, undo)


def _unclaimed(gpu: GpuId) -> str:
    return (
        f'if grep -lF {shlex.quote(gpu.uuid)} "$root"/*/{MARKER} >&2 2>/dev/null; then\n'
        f'  echo "another workspace has just reserved GPU {gpu.index}; try again" >&2; exit 1\nfi\n'
    )


def rewrite(marker: Marker) -> Step:
    """In place, where there is room in any case; only the first line of a marker counts."""
    path = marker.workspace.path
    script = assigned(path=path, marker=encode(marker)) + (
        f'cd -- "$path"\n[ -f {MARKER} ]\nprintf "%s\\n" "$marker" 1<>{MARKER}\n'
    )
    return Step(f"note in {path}/{MARKER} that the node is cordoned for it", script)


_IS_WORKSPACE = (
    f'[ ! -L "$path" ] && [ -f "$path/{MARKER}" ] || '
    '{ echo "$path is no workspace" >&2; exit 1; }\n'
)


def stop(path: str, count: int) -> Step:
    script = assigned(path=path) + (
        "members() {\n"
        '  grep -lzxF "KVESTIGATE_WORKSPACE=$path" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3\n'
        "}\n"
        "for signal in TERM KILL; do\n"
        "  left=$(members)\n"
        '  if [ -z "$left" ]; then exit 0; fi\n'
        "  kill -s $signal $left 2>/dev/null || :\n"
        "  for tenth in $(seq 100); do\n"
        '    if [ -z "$(members)" ]; then exit 0; fi\n'
        "    sleep 0.1\n"
        "  done\n"
        "done\n"
        'echo "these do not end: $(members | tr "\\n" " ")" >&2\n'
        "exit 1\n"
    )
    return Step(f"stop the {count} process{'es' if count > 1 else ''} that run in {path}", script)


def unmount(spec: WorkspaceSpec) -> Step:
    # What has just been stopped may hold on to a file for a moment longer.
    script = assigned(path=spec.path, place=spec.tmpfs_path) + (
        _IS_WORKSPACE + 'umount -- "$place" 2>/dev/null || { sleep 1; umount -- "$place"; }\n'
    )
    return Step(f"umount {spec.tmpfs_path}", script)


def remove_directory(path: str) -> Step:
    return Step(f"rmdir {path}", assigned(path=path) + 'rmdir -- "$path"\n')


def remove_tree(path: str) -> Step:
    """The marker goes last: what could not be removed can be tried again."""
    script = assigned(path=path) + (
        _IS_WORKSPACE
        + 'find "$path" -xdev -mindepth 1 -maxdepth 1 ! -name '
        + f"{MARKER} -exec rm -rf --one-file-system -- {{}} +\n"
        + 'rm -rf --one-file-system -- "$path"\n'
    )
    return Step(f"rm -rf {path}", script)
