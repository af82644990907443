"""Bringing files into a workspace: only what changed goes over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from kvestigate.client.connect import connect
from kvestigate.errors import KvestigateError
from kvestigate.node_access.reach import Host, reach
from kvestigate.node_access.remote import Input, Remote
from kvestigate.operation import Context
from kvestigate.workspace.archives import Archive, Directory, Material
from kvestigate.workspace.host import complaint, inside, legible, looking, perform, staying
from kvestigate.workspace.lifecycle import existing
from kvestigate.workspace.marker import Marker
from kvestigate.workspace.options import LocalSyncOptions, SyncOptions
from kvestigate.workspace.shell import assigned
from kvestigate.workspace.spec import WorkspaceSpec
from kvestigate.workspace.steps import is_workspace
from kvestigate.workspace.survey import survey
from kvestigate.workspace.trees import LISTING, Work, check, compare, parse_listing
from kvestigate.workspace.uploads import in_background

_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Synced:
    workspace: str
    node: str
    directory: str
    """Where the files are on the host."""
    sent: tuple[str, ...]
    """Paths that are new or differ, or would be sent."""
    removed: tuple[str, ...]
    equal: int
    """How many files were there already."""
    bytes: int
    applied: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """Files, and where in which workspace they should be."""

    spec: WorkspaceSpec
    subdir: str
    material: Material
    delete: bool = False
    excludes: tuple[str, ...] = ()

    @property
    def directory(self) -> str:
        return f"{self.spec.path}/{self.subdir}"


async def sync(context: Context, options: SyncOptions) -> Synced:
    """Make a directory of a workspace equal to an archive, or go on with a file of it."""
    if isinstance(options, LocalSyncOptions):
        files: Material = Directory(Path(options.local), options.excludes)
    else:
        files = await in_background(Archive, options.archive.opened(), options.excludes)
    wanted = Wanted(options.workspace, options.subdir, files, options.delete, options.excludes)
    if options.offset and isinstance(files, Archive):
        return await _go_on(context, wanted, files, options.offset)
    return await bring(context, wanted)


async def bring(context: Context, wanted: Wanted) -> Synced:
    """The same for files from wherever. A workspace that is not there yet takes everything."""
    async with connect(context.access) as api:
        host = (await reach(api, context.via)).host(wanted.spec.node)
        seen = await survey(host, wanted.spec.root, name=wanted.spec.name)
        found = seen.at(wanted.spec)
        files = looking(host)
        if context.apply or (found is not None and found.marker is not None):
            marker = existing(context, wanted.spec, seen)
            files = await entered(context, host, wanted.spec, wanted.subdir, marker)
        listing = await _listing(files, wanted)
        tree = await in_background(wanted.material.tree)
        work = await in_background(
            compare,
            tree,
            parse_listing(listing),
            delete=wanted.delete,
            excludes=wanted.excludes,
        )
        if context.apply:
            await _carry_out(files, wanted, work)
        return Synced(
            wanted.spec.name,
            wanted.spec.node,
            wanted.directory,
            tuple(map(legible, work.send)),
            tuple(map(legible, work.remove)),
            work.equal,
            work.bytes,
            context.apply,
        )


# A directory that is a link could lead anywhere.
_INSIDE = """\
outside() { echo "$directory leads out of the workspace" >&2; exit 1; }
case $(readlink -f -- "$directory") in "$(readlink -f -- "$workspace")"/*) ;; *) outside ;; esac
"""


async def entered(
    context: Context, host: Host, spec: WorkspaceSpec, subdir: str, marker: Marker
) -> Remote:
    """The files of a workspace; the directory that they are to be in is made.

    What is directly in a workspace of an agent, only root can make.
    """
    if context.apply and marker.uid:
        top = subdir.partition("/")[0]
        user = f"{marker.uid}:{marker.uid}"
        script = (
            is_workspace(spec)
            + assigned(top=f"{spec.path}/{top}")
            + ('[ ! -e "$top" ] || exit 0\nmkdir -m 700 -- "$top"\n' + f'chown -h {user} "$top"\n')
        )
        await perform(staying(host), script)
    return inside(host, marker)


async def _listing(files: Remote, wanted: Wanted) -> bytes:
    script = (
        assigned(workspace=wanted.spec.path, directory=wanted.directory)
        + 'if [ ! -d "$directory" ]; then exit 0; fi\n'
        + _INSIDE
        + f"cd -- \"$directory\"\nfind . -mindepth 1 -printf '{LISTING}'\n"
    )
    text = await perform(files, script, timeout=_SECONDS)
    return text.encode("utf-8", "surrogateescape")


async def _carry_out(files: Remote, wanted: Wanted, work: Work) -> None:
    if work.remove:
        await _remove(files, wanted, work.remove)
    if work.send:
        await _send(files, wanted, work)


def entering(spec: WorkspaceSpec, subdir: str) -> str:
    """The beginning of a script that works in a directory of a workspace, and makes it."""
    return (
        assigned(workspace=spec.path, directory=f"{spec.path}/{subdir}")
        + 'mkdir -p -- "$directory"\n'
        + _INSIDE
        + 'cd -- "$directory"\n'
    )


async def _remove(files: Remote, wanted: Wanted, paths: tuple[str, ...]) -> None:
    listed = "".join(f"./{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    script = entering(wanted.spec, wanted.subdir) + "xargs -0 rm -rf --one-file-system --\n"
    done = await files.run(("sh", "-euc", script), stdin=listed, timeout=_SECONDS)
    if done.exit_code:
        raise KvestigateError(f"{files.name}: {complaint(done)}")


# What comes behind the part before was a part that did not arrive whole, or is of another file.
_GO_ON = """\
path=./$1 offset=$2 modified=$3
refuse() { echo "$path $1" >&2; exit 1; }
case $(readlink -f -- "$(dirname -- "$path")")/ in
  "$(pwd -P)"/*) ;;
  *) refuse "leads out of the workspace" ;;
esac
[ -f "$path" ] && [ ! -L "$path" ] || refuse "there is no part before this one"
[ "$(stat -c %s -- "$path")" -ge "$offset" ] || refuse "the part before is not all there"
truncate -s "$offset" -- "$path"
cat >>"$path"
touch -m -d "@$modified" -- "$path"
"""


async def _go_on(context: Context, wanted: Wanted, archive: Archive, offset: int) -> Synced:
    """Write a part of a file behind those that are there."""
    check(archive.tree())
    path = archive.only_file()
    part = archive.tree()[path]
    async with connect(context.access) as api:
        host = (await reach(api, context.via)).host(wanted.spec.node)
        seen = await survey(host, wanted.spec.root, name=wanted.spec.name)
        if context.apply:
            marker = existing(context, wanted.spec, seen)
            files = await entered(context, host, wanted.spec, wanted.subdir, marker)
            script = ("sh", "-euc", entering(wanted.spec, wanted.subdir) + _GO_ON, "part")
            words = (*script, path, str(offset), str(part.modified))
            content = Input(part.size, _pieces(archive.content(path)))
            done = await files.run(words, stdin=content, timeout=_SECONDS)
            if done.exit_code:
                raise KvestigateError(f"{host.node}: {complaint(done)}")
    return Synced(
        wanted.spec.name,
        wanted.spec.node,
        wanted.directory,
        (legible(path),),
        (),
        0,
        part.size,
        context.apply,
    )


async def _send(files: Remote, wanted: Wanted, work: Work) -> None:
    await perform(files, entering(wanted.spec, wanted.subdir))
    pieces = _pieces(wanted.material.packed(work.send))
    await files.send(pieces, wanted.directory, timeout=_SECONDS)


async def _pieces(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Read while others go on; whoever stops asking stops the reading."""
    while piece := await in_background(next, pieces, b""):
        yield piece
