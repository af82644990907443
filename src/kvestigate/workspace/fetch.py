"""Taking files out of a workspace."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from kvestigate.client.connect import connect
from kvestigate.errors import RequestEntityTooLarge
from kvestigate.node_access.reach import reach
from kvestigate.operation import Context
from kvestigate.render.human import size
from kvestigate.workspace.host import inside, perform
from kvestigate.workspace.lifecycle import existing
from kvestigate.workspace.options import FetchOptions
from kvestigate.workspace.shell import assigned
from kvestigate.workspace.survey import survey
from kvestigate.workspace.uploads import Upload

LARGEST_ANSWER = 256 << 20
"""Bytes of an archive that is handed out as one value."""

# Links inside stay links; only where the path itself leads has to be looked at.
_RESOLVE = """\
inside=$(readlink -f -- "$workspace")
refuse() { echo "path: $wanted $1" >&2; exit 1; }
path=$(readlink -e -- "$workspace/$wanted") || refuse "does not exist"
case $path in "$inside"/*) ;; *) refuse "leads out of the workspace" ;; esac
printf '%s' "$path"
"""


@dataclass(frozen=True, slots=True)
class Fetched:
    workspace: str
    node: str
    path: str
    archive: Upload
    """A tar of the file, or of the directory with all that is in it; whoever asked closes it."""


async def fetch(context: Context, options: FetchOptions) -> Fetched:
    """A file or directory of a workspace, as one tar."""
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
        script = assigned(workspace=spec.path, wanted=options.path) + _RESOLVE
        path = await perform(files, script)
        async with aclosing(files.receive(path)) as pieces:
            async for piece in pieces:
                yield piece
