"""Taking files out of a workspace."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from kvestigate.client.connect import connect
from kvestigate.client.streams import Completed
from kvestigate.errors import KvestigateError, NotFound, RequestEntityTooLarge
from kvestigate.node_access.reach import reach
from kvestigate.operation import Context
from kvestigate.render.human import size
from kvestigate.workspace.host import attempt, complaint, inside, legible
from kvestigate.workspace.lifecycle import existing
from kvestigate.workspace.options import FetchOptions
from kvestigate.workspace.shell import assigned
from kvestigate.workspace.survey import survey
from kvestigate.workspace.trees import LISTING, parse_listing
from kvestigate.workspace.uploads import Upload

LARGEST_ANSWER = 256 << 20
"""Bytes of an archive that is handed out as one value."""
_LONGEST_LISTING = 8 << 20
_SECONDS = 600.0
_FARTHEST = (1 << 63) - 1
"""The last byte that a file can have, and the largest number that a shell knows."""

# Links inside stay links; only where the path itself leads has to be looked at.
_RESOLVE = """\
inside=$(readlink -f -- "$workspace")
refuse() { echo "path: $wanted $1" >&2; exit 1; }
path=$(readlink -e -- "$workspace/$wanted") || exit 44
case $path in "$inside"/*) ;; *) refuse "leads out of the workspace" ;; esac
"""
_MISSING = 44
"""What the script ends with if there is no such file."""
_PATH_OF = _RESOLVE + """printf '%s' "$path"\n"""


@dataclass(frozen=True, slots=True)
class FetchedEntry:
    path: str
    """Relative to the directory."""
    kind: str
    """`file`, `directory`, `link` or `other`"""
    size: int
    modified: int
    executable: bool
    target: str
    """Where a link leads."""


@dataclass(frozen=True, slots=True)
class Fetched:
    workspace: str
    node: str
    path: str
    archive: Upload
    """A tar of the file, or of the directory with all that is in it; whoever asked closes it.

    With `limit` only a part of the file itself, and nothing of a directory.
    """
    size: int | None = None
    """With `limit`: bytes of the whole file; None if it is a directory."""
    entries: tuple[FetchedEntry, ...] = ()
    """With `limit`: what is in the directory."""


async def fetch(context: Context, options: FetchOptions) -> Fetched:
    """A file or directory of a workspace, as one tar; or a part of a file."""
    if options.limit is not None:
        return await _part(context, options, options.limit)
    archive = Upload()
    try:
        async with aclosing(stream(context, options)) as pieces:
            async for piece in pieces:
                _check_size(options.path, archive.size + len(piece))
                archive.write(piece)
    except BaseException:
        archive.close()
        raise
    spec = options.workspace
    return Fetched(spec.name, spec.node, options.path, archive)


# A file that a run replaces by a FIFO meanwhile is opened without waiting for somebody to write.
# One line on what it is, then the part of the file or the list of what is in the directory.
_PART_OF = (
    _RESOLVE
    + """\
if [ -d "$path" ]; then
  echo "d 0"
  cd -- "$path"
  find . -mindepth 1 -printf "$listing" | head -c "$most"
else
  [ -f "$path" ] || refuse "is neither a file nor a directory"
  size=$(stat -c %s -- "$path")
  echo "f $size"
  [ "$offset" -ge "$size" ] || dd if="$path" bs=64K skip="$offset" count="$limit" \
    iflag=nonblock,skip_bytes,count_bytes status=none
fi
"""
)


async def _part(context: Context, options: FetchOptions, limit: int) -> Fetched:
    spec = options.workspace
    async with connect(context.access) as api:
        host = (await reach(api, context.via)).host(spec.node)
        marker = existing(context, spec, await survey(host, spec.root, name=spec.name))
        given = assigned(
            workspace=spec.path,
            wanted=options.path,
            offset=str(min(options.offset, _FARTHEST)),
            limit=str(limit),
            listing=LISTING,
            most=str(_LONGEST_LISTING),
        )
        done = await attempt(inside(host, marker), given + _PART_OF, timeout=_SECONDS)
    _check_found(options, done)
    line, _, content = done.stdout.partition(b"\n")
    kind, _, size_of_file = line.decode().partition(" ")
    if kind == "f":
        part = Upload(content)
        return Fetched(spec.name, spec.node, options.path, part, int(size_of_file))
    if len(content) >= _LONGEST_LISTING:
        raise RequestEntityTooLarge(
            f"path: {options.path!r} has too many files to list at once",
            hint="fetch the directories in it one by one",
        )
    entries = tuple(
        FetchedEntry(
            legible(path),
            entry.kind.name.lower(),
            entry.size,
            entry.modified,
            entry.executable,
            legible(entry.target),
        )
        for path, entry in sorted(parse_listing(content).items())
    )
    return Fetched(spec.name, spec.node, options.path, Upload(), None, entries)


def _check_found(options: FetchOptions, done: Completed) -> None:
    spec = options.workspace
    if done.exit_code == _MISSING:
        raise NotFound(
            f"path: {options.path} does not exist in workspace {spec.name} on {spec.node}"
        )
    if done.exit_code:
        raise KvestigateError(f"{spec.node}: {complaint(done)}")


def _check_size(path: str, so_far: int) -> None:
    if so_far > LARGEST_ANSWER:
        raise RequestEntityTooLarge(
            f"path: {path!r} is larger than the {size(LARGEST_ANSWER)} that can be fetched at once",
            hint="fetch its files one by one, or use kvestigate workspace fetch",
        )


async def stream(context: Context, options: FetchOptions) -> AsyncGenerator[bytes, None]:
    """The same in pieces, of any size."""
    spec = options.workspace
    async with connect(context.access) as api:
        host = (await reach(api, context.via)).host(spec.node)
        marker = existing(context, spec, await survey(host, spec.root, name=spec.name))
        files = inside(host, marker)
        script = assigned(workspace=spec.path, wanted=options.path) + _PATH_OF
        resolved = await attempt(files, script)
        _check_found(options, resolved)
        path = resolved.stdout.decode("utf-8", "surrogateescape")
        async with aclosing(files.receive(path)) as pieces:
            async for piece in pieces:
                yield piece
