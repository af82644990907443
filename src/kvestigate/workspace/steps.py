"""The single steps that make and remove a workspace, each with what takes it back. Pure.

Names and paths are checked when specs are made; they are quoted all the same.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace

from msgspec import structs

from kvestigate.workspace.fence import KEPT_FOR_RUNS, OF_USER
from kvestigate.workspace.marker import STATE, Marker, encode, marker_path
from kvestigate.workspace.shell import assigned
from kvestigate.workspace.sizes import mount_size
from kvestigate.workspace.spec import LAYOUT, StorageMode, WorkspaceSpec

TAKEN = 77
"""The exit code of a script that finds a GPU or a user just taken by another workspace."""


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
    workspace: str = ""
    """The directory of the workspace that the node is closed for."""


def cordon(spec: WorkspaceSpec) -> Step:
    """What takes it back is not here: others may need the node closed by then."""
    return Step(
        f"cordon node {spec.node}",
        f"kubectl cordon {spec.node}",
        where=Where.CLUSTER,
        cordon=True,
        workspace=spec.path,
    )


def reopen(marker: Marker, all_here: Iterable[Marker]) -> Step:
    """Open the node again, unless another workspace still wants it closed: then that one will."""
    spec = marker.workspace
    others = (marker for marker in all_here if marker.workspace.path != spec.path)
    heir = next((marker for marker in others if marker.workspace.gpu.cordon_node), None)
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


# Those who choose GPUs and users do so one after the other.
LOCK = f"""\
mkdir -p -m 755 -- "$root"
mkdir -p -m 700 -- "$root/{STATE}"
exec 9>"$root/{STATE}/.lock"
flock 9
"""

# $root, and what nobody else may have: the text of a GPU or of a user in a marker.
TAKEN_BY_MARKER = f"""\
taken() {{
  if grep -lF -e "$1" "$root/{STATE}"/*.json >&2 2>/dev/null; then
    echo "another workspace has just taken $2" >&2
    exit {TAKEN}
  fi
}}
"""

_WRITE = 'printf "%s\\n" "$marker" >"$file.new"\nmv -- "$file.new" "$file"\n'


def claim(marker: Marker) -> Step:
    """Write the marker, before anything else: what is made without one nobody would find."""
    spec = marker.workspace
    wanted = [(f'"{gpu.uuid}"', f"GPU {gpu.index}") for gpu in marker.gpus]
    if marker.uid:
        wanted.append((f'"uid":{marker.uid}}}', f"the user {marker.uid}"))
    script = (
        assigned(root=spec.root, file=marker_path(spec), marker=encode(marker))
        + LOCK
        + TAKEN_BY_MARKER
        + f'[ ! -e "$file" ] || {{ echo "$file is there already" >&2; exit {TAKEN}; }}\n'
        + "".join(f"taken {_quoted(text)} {_quoted(name)}\n" for text, name in wanted)
        + _WRITE
    )
    return Step(f"write {marker_path(spec)}", script, _forget(spec))


def _quoted(text: str) -> str:
    return f"'{text}'"


def _forget(spec: WorkspaceSpec) -> str:
    return assigned(file=marker_path(spec)) + 'rm -f -- "$file"\n'


def make(spec: WorkspaceSpec) -> Step:
    script = assigned(root=spec.root, path=spec.path) + (
        'mkdir -p -m 755 -- "$path"\n'
        '[ "$(readlink -f -- "$path")" = "$(readlink -f -- "$root")/${path##*/}" ]\n'
        '[ -z "$(ls -A -- "$path")" ]\n'
    )
    undo = assigned(path=spec.path) + 'rmdir -- "$path"\n'
    return Step(f"mkdir -p {spec.path}", script, undo)


def mount(marker: Marker) -> Step:
    spec, place = marker.workspace, marker.workspace.tmpfs_path
    options = f"size={mount_size(spec.storage.tmpfs_bytes)},mode="
    if marker.uid and spec.storage.mode is StorageMode.HYBRID:
        options += f"700,uid={marker.uid},gid={marker.uid}"
    else:
        options += "755"
    script = assigned(root=spec.root, path=place) + (
        LOCK
        + 'if grep -q "^[^ ]* $path tmpfs " /proc/self/mounts; then exit 0; fi\n'
        + f'mkdir -p -- "$path"\nmount -t tmpfs -o {options} kvestigate "$path"\n'
    )
    return Step(
        f"mount -t tmpfs -o {options} kvestigate {place}",
        script,
        assigned(path=place) + 'umount -- "$path"\n',
    )


def furnish(marker: Marker) -> Step:
    """The directories; those of a user are nobody else's to look into."""
    spec = marker.workspace
    script = assigned(path=spec.path) + 'cd -- "$path"\n'
    mine, kept = " ".join(OF_USER), " ".join(KEPT_FOR_RUNS)
    if marker.uid:
        script += f"mkdir -p -m 700 {mine}\nchown -h {marker.uid}:{marker.uid} {mine}\n"
        script += f"mkdir -p -m 755 {kept}\n"
    else:
        script += f"mkdir -p {' '.join(LAYOUT)}\n"
    undo = assigned(path=spec.path) + (
        f'cd -- "$path"\nrmdir --ignore-fail-on-non-empty -- {mine} {kept} 2>/dev/null || :\n'
    )
    return Step(f"make {'/ '.join(LAYOUT)}/ in {spec.path}", script, undo)


def rewrite(marker: Marker) -> Step:
    file = marker_path(marker.workspace)
    script = assigned(file=file, marker=encode(marker)) + '[ -f "$file" ]\n' + _WRITE
    return Step(f"note in {file} that the node is cordoned for it", script)


def is_workspace(spec: WorkspaceSpec) -> str:
    """The lines of a script that end it unless the directory is a workspace."""
    return assigned(path=spec.path, file=marker_path(spec)) + (
        '[ ! -L "$path" ] && [ -f "$file" ] || { echo "$path is no workspace" >&2; exit 1; }\n'
    )


def stop(marker: Marker, count: int) -> Step:
    path = marker.workspace.path
    by_user = ""
    if marker.uid:
        by_user = (
            f'  grep -l "^Uid:[[:space:]]*{marker.uid}[[:space:]]" /proc/[0-9]*/status '
            "2>/dev/null | cut -d/ -f3\n"
        )
    script = assigned(path=path) + (
        "members() {\n"
        '  grep -lzxF "KVESTIGATE_WORKSPACE=$path" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3\n'
        f"{by_user}"
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
    script = is_workspace(spec) + (
        assigned(place=spec.tmpfs_path)
        + 'umount -- "$place" 2>/dev/null || { sleep 1; umount -- "$place"; }\n'
    )
    return Step(f"umount {spec.tmpfs_path}", script)


def remove_directory(spec: WorkspaceSpec) -> Step:
    """The marker goes last, here as below: what could not be removed can be tried again."""
    script = assigned(path=spec.path) + 'rmdir -- "$path"\n' + _forget(spec)
    return Step(f"rmdir {spec.path}", script)


def remove_tree(spec: WorkspaceSpec) -> Step:
    script = is_workspace(spec) + 'rm -rf --one-file-system -- "$path"\n' + _forget(spec)
    return Step(f"rm -rf {spec.path}", script)


def forget(spec: WorkspaceSpec) -> Step:
    return Step(f"rm {marker_path(spec)}", _forget(spec))
