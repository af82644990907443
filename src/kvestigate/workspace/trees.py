"""Two trees of files, and what has to be sent or removed so that they are equal. Pure.

Files are taken for equal if size and time of change are, to the second, as rsync does.
"""

from __future__ import annotations

import enum
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kvestigate.errors import InputError


class Kind(enum.Enum):
    """What an entry is, by the letter that `find` has for it."""

    FILE = "f"
    DIRECTORY = "d"
    LINK = "l"
    OTHER = "o"
    """Sockets, devices and such; never sent."""


@dataclass(frozen=True, slots=True)
class Entry:
    kind: Kind
    size: int = 0
    modified: int = 0
    """Seconds since the epoch."""
    executable: bool = False
    target: str = ""
    """Where a link leads."""

    def same(self, other: Entry | None) -> bool:
        if other is None or self.kind is not other.kind:
            return False
        match self.kind:
            case Kind.FILE:
                return (self.size, self.modified, self.executable) == (
                    other.size,
                    other.modified,
                    other.executable,
                )
            case Kind.LINK:
                return self.target == other.target
            case _:
                return True


Tree = Mapping[str, Entry]
"""Path -> entry; paths are relative and have no dots in them."""


@dataclass(frozen=True, slots=True)
class Work:
    """What makes one tree equal to another."""

    send: tuple[str, ...]
    """In an order in which directories come before what is in them."""
    remove: tuple[str, ...]
    """What is in none of the others in the list."""
    equal: int
    """How many files are there already."""
    bytes: int
    """To send."""

    @property
    def nothing(self) -> bool:
        return not self.send and not self.remove


def compare(wanted: Tree, there: Tree, *, delete: bool, excludes: Sequence[str] = ()) -> Work:
    """The least to do. What is of another kind goes first, whether or not `delete` is set."""
    check(wanted)
    send = sorted(path for path, entry in wanted.items() if not entry.same(there.get(path)))
    remove = {path for path in send if path in there and there[path].kind is not wanted[path].kind}
    # A link would lead what is sent below it out of the tree.
    above = {parent for path in send for parent in _parents(path)} & there.keys()
    remove |= {path for path in above if there[path].kind is not Kind.DIRECTORY}
    if delete:
        kept = {parent for path in there if excluded(path, excludes) for parent in _parents(path)}
        remove |= {
            path
            for path in there
            if path not in wanted and path not in kept and not excluded(path, excludes)
        }
    files = [wanted[path] for path in send if wanted[path].kind is Kind.FILE]
    return Work(
        send=tuple(send),
        remove=tuple(sorted(path for path in remove if not remove.intersection(_parents(path)))),
        equal=sum(entry.kind is Kind.FILE for entry in wanted.values()) - len(files),
        bytes=sum(entry.size for entry in files),
    )


def check(tree: Tree) -> None:
    """Refuse what could be written anywhere but below the tree's own root."""
    for path, entry in tree.items():
        parts = path.split("/")
        if path.startswith("/") or not all(parts) or ".." in parts or "." in parts or "\0" in path:
            raise InputError(f"{path!r} leads out of the directory", where="archive")
        if entry.kind is Kind.OTHER:
            raise InputError(f"{path!r} is neither file, directory nor link", where="archive")
        for parent in _parents(path):
            above = tree.get(parent)
            if above is not None and above.kind is not Kind.DIRECTORY:
                raise InputError(
                    f"{path!r} is below {parent!r}, which is no directory", where="archive"
                )


def excluded(path: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern matches a part of the path, or with a slash in it the path's beginning."""
    parts = path.split("/")
    for written in patterns:
        pattern = written.strip("/")
        if "/" not in pattern and not written.startswith("/"):
            if any(fnmatch.fnmatchcase(part, pattern) for part in parts):
                return True
            continue
        depth = pattern.count("/") + 1
        if fnmatch.fnmatchcase("/".join(parts[:depth]), pattern):
            return True
    return False


def parse_listing(data: bytes) -> dict[str, Entry]:
    """What `find -printf LISTING` printed."""
    fields = data.decode("utf-8", "surrogateescape").split("\0")
    found: dict[str, Entry] = {}
    for at in range(0, len(fields) - 6, 6):
        letter, size, modified, mode, path, target = fields[at : at + 6]
        kind = Kind(letter) if letter in ("f", "d", "l") else Kind.OTHER
        found[path] = Entry(
            kind=kind,
            size=int(size) if kind is Kind.FILE else 0,
            modified=int(modified.partition(".")[0]) if kind is Kind.FILE else 0,
            executable=kind is Kind.FILE and bool(int(mode, 8) & 0o100),
            target=target,
        )
    return found


LISTING = r"%y\0%s\0%T@\0%m\0%P\0%l\0"


def _parents(path: str) -> Iterable[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
