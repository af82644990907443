"""Small text files of a workspace: written, read, listed and edited, within its fence.

Archives are for whole trees (`sync`, `fetch`). Who writes a script or reads a result has a text.
"""

from __future__ import annotations

import codecs
import hashlib
from dataclasses import dataclass
from typing import Annotated

from kvestigate.client.connect import connect
from kvestigate.errors import Conflict, InputError, KvestigateError, RequestEntityTooLarge
from kvestigate.node_access.reach import reach
from kvestigate.operation import Context, param
from kvestigate.render.human import size
from kvestigate.workspace import names
from kvestigate.workspace.fetch import FetchedEntry, fetch
from kvestigate.workspace.host import complaint
from kvestigate.workspace.lifecycle import existing
from kvestigate.workspace.options import Described, FetchOptions
from kvestigate.workspace.spec import WorkspaceSpec
from kvestigate.workspace.survey import survey
from kvestigate.workspace.sync import entered, entering

LARGEST_TEXT = 256 << 10
"""Bytes of a file that is written or edited as a text, and of a part that is read."""
MOST_FILES = 1_000
_FIRST_PART = 4 << 10

WrittenPath = Annotated[
    str,
    param(
        "The file, relative to the workspace and in a directory of it: `code/train.py`.",
        argument=True,
    ),
]
ReadPath = Annotated[
    str,
    param("A file, relative to the workspace: `code/train.py`, `logs/run-1.log`.", argument=True),
]


@dataclass(frozen=True, slots=True)
class PutTextOptions:
    workspace: Described
    path: WrittenPath
    text: Annotated[str, param("All that will be in the file.")]
    executable: Annotated[bool, param("Whether the file can be run as a program.")] = False

    def __post_init__(self) -> None:
        _check_written(self.path)
        _check_text(self.text, "text")


@dataclass(frozen=True, slots=True)
class GetTextOptions:
    workspace: Described
    path: ReadPath
    offset: Annotated[int, param("The byte to begin with: `next_offset` of the part before.")] = 0
    limit: Annotated[int, param("At most so many bytes.", lowest=1, highest=LARGEST_TEXT)] = (
        _FIRST_PART
    )

    def __post_init__(self) -> None:
        names.check_path(self.path)
        if self.offset < 0:
            raise InputError(f"{self.offset} is negative", where="offset")


@dataclass(frozen=True, slots=True)
class ListFilesOptions:
    workspace: Described
    path: Annotated[str, param("A directory of the workspace.", argument=True)] = "code"
    limit: Annotated[int, param("At most so many files.", lowest=1, highest=MOST_FILES)] = 50
    after: Annotated[str, param("Only files behind this one: `next` of the list before.")] = ""

    def __post_init__(self) -> None:
        names.check_path(self.path)


@dataclass(frozen=True, slots=True)
class EditOptions:
    workspace: Described
    path: WrittenPath
    old: Annotated[str, param("The text to replace, exactly as it is in the file.")]
    new: Annotated[str, param("The text to put in its place.")]
    every: Annotated[bool, param("Replace `old` wherever it is, not just once.")] = False

    def __post_init__(self) -> None:
        _check_written(self.path)
        _check_text(self.new, "new")
        if not self.old:
            raise InputError("is empty", where="old", hint="write what is to be replaced")


@dataclass(frozen=True, slots=True)
class Written:
    workspace: str
    node: str
    path: str
    bytes: int
    """Of the file now, or if it is applied."""
    applied: bool
    replaced: int = 0
    """How often an edit has replaced the old text."""


@dataclass(frozen=True, slots=True)
class Text:
    workspace: str
    node: str
    path: str
    text: str
    """What is in the file, from `offset`; bytes that are no UTF-8 are replaced by U+FFFD."""
    size: int
    """Bytes of the whole file."""
    next_offset: int | None
    """Where the next part begins; null: this was the last."""


@dataclass(frozen=True, slots=True)
class FileList:
    workspace: str
    node: str
    path: str
    total: int
    """How many files and directories there are, at any depth."""
    files: tuple[FetchedEntry, ...]
    """By path, relative to the directory."""
    next: str | None
    """What to give as `after` for those that follow; null: these were the last."""


def _check_written(path: str) -> None:
    names.check_subdir(path, "path")
    if "/" not in path:
        raise InputError(f"{path!r} is not in a directory", where="path", hint=f"write code/{path}")


def _check_text(text: str, where: str) -> None:
    names.check_word(text, where)
    if len(text.encode("utf-8", "surrogateescape")) > LARGEST_TEXT:
        raise InputError(
            f"is longer than {size(LARGEST_TEXT)}",
            where=where,
            hint="send larger files as an archive, with workspace.sync",
        )


async def put_text(context: Context, options: PutTextOptions) -> Written:
    """Write a file, whether or not it is there."""
    content = options.text.encode("utf-8", "surrogateescape")
    mode = "700" if options.executable else "600"
    await _write(context, options.workspace, options.path, content, mode)
    spec = options.workspace
    return Written(spec.name, spec.node, options.path, len(content), context.apply)


async def get_text(context: Context, options: GetTextOptions) -> Text:
    """A part of a file."""
    spec, path = options.workspace, options.path
    content, whole = await _read(context, spec, path, options.offset, options.limit)
    end = options.offset + len(content)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(content, final=end >= whole)
    end -= len(decoder.getstate()[0])  # the beginning of a character belongs to the next part
    return Text(spec.name, spec.node, path, text, whole, end if end < whole else None)


async def list_files(context: Context, options: ListFilesOptions) -> FileList:
    """What is in a directory, at any depth."""
    spec = options.workspace
    fetched = await fetch(context, FetchOptions(spec, options.path, limit=1))
    fetched.archive.close()
    if fetched.size is not None:
        raise InputError(
            f"{options.path!r} is a file", where="path", hint="read it with workspace.get_text"
        )
    behind = [entry for entry in fetched.entries if entry.path > options.after]
    shown = tuple(behind[: options.limit])
    more = shown[-1].path if len(behind) > len(shown) else None
    return FileList(spec.name, spec.node, options.path, len(fetched.entries), shown, more)


async def edit(context: Context, options: EditOptions) -> Written:
    """Replace a text in a file, unless somebody else changes the file meanwhile."""
    spec, path = options.workspace, options.path
    before, whole = await _read(context, spec, path, 0, LARGEST_TEXT + 1)
    if whole > LARGEST_TEXT:
        raise RequestEntityTooLarge(
            f"path: {path!r} has {size(whole)}, and {size(LARGEST_TEXT)} can be edited",
            hint="send the file as an archive, with workspace.sync",
        )
    content, count = edited(before, options)
    await _write(context, spec, path, content, "", hashlib.sha256(before).hexdigest())
    return Written(spec.name, spec.node, path, len(content), context.apply, count)


def edited(before: bytes, options: EditOptions) -> tuple[bytes, int]:
    """What an edit makes of a file, and how often it has replaced the text. Pure."""
    path = options.path
    old = options.old.encode("utf-8", "surrogateescape")
    count = before.count(old)
    if count == 0 or (count > 1 and not options.every):
        raise InputError(
            f"is in {path!r} {count} times",
            where="old",
            hint="read the file with workspace.get_text"
            if count == 0
            else "add lines around it until it is there once, or set every",
        )
    new = options.new.encode("utf-8", "surrogateescape")
    # Counted before it is made: every byte of a file replaced by the longest text is 64 GiB.
    if len(before) + count * (len(new) - len(old)) > LARGEST_TEXT:
        raise RequestEntityTooLarge(f"path: {path!r} would have more than {size(LARGEST_TEXT)}")
    return before.replace(old, new), count


async def _read(
    context: Context, spec: WorkspaceSpec, path: str, offset: int, limit: int
) -> tuple[bytes, int]:
    """A part of a file, and how long the whole file is."""
    fetched = await fetch(context, FetchOptions(spec, path, offset, limit))
    try:
        if fetched.size is None:
            raise InputError(
                f"{path!r} is a directory", where="path", hint="list it with workspace.list_files"
            )
        content = fetched.archive.opened().read()
    finally:
        fetched.archive.close()
    if b"\0" in content:
        raise InputError(
            f"{path!r} is no text", where="path", hint="copy it out with workspace.fetch"
        )
    return content, fetched.size


# Whole or not at all. A link in place of the file is replaced, not followed. Runs may put a FIFO
# in the way at any moment: nothing waits for its other end.
_WRITE = """\
path=./$1 mode=$2 before=$3
refuse() { echo "path: $1 $2" >&2; exit 1; }
[ ! -d "$path" ] || refuse "$1" "is a directory"
written=$(mktemp ./.written-XXXXXXXX)
trap 'rm -f -- "$written"' EXIT
dd of="$written" bs=64K iflag=fullblock oflag=nonblock,nofollow conv=notrunc status=none
if [ -n "$before" ]; then
  now=$(dd if="$path" bs=64K iflag=nonblock status=none | sha256sum | cut -c 1-64)
  [ "$now" = "$before" ] || exit 45
  mode=$(stat -c %a -- "$path")
fi
chmod "$mode" -- "$written"
mv -f -T -- "$written" "$path"
"""
_CHANGED = 45
"""What the script ends with if the file is not as it was read."""


async def _write(
    context: Context, spec: WorkspaceSpec, path: str, content: bytes, mode: str, before: str = ""
) -> None:
    """Write a file; with the digest of what was in it `before`, only if that is still so."""
    directory, _, name = path.rpartition("/")
    async with connect(context.access) as api:
        host = (await reach(api, context.via)).host(spec.node)
        marker = existing(context, spec, await survey(host, spec.root, name=spec.name))
        if not context.apply:
            return
        files = await entered(context, host, spec, directory, marker)
        script = ("sh", "-euc", entering(spec, directory) + _WRITE, "write")
        done = await files.run((*script, name, mode, before), stdin=content, timeout=120.0)
    if done.exit_code == _CHANGED:
        raise Conflict(f"path: {path!r} has changed meanwhile", hint="read it again, then edit it")
    if done.exit_code:
        raise KvestigateError(f"{spec.node}: {complaint(done)}")
