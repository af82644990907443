"""Two trees of files, and what has to be sent or removed so that they are equal. Pure.

Files are taken for equal if size and time of change are, to the second, as rsync does.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import re2

from kvestigate.errors import InputError
from kvestigate.kube import pauses


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
        excluded = set(filter(Excludes(excludes).match, there))
        kept = excluded.union(*map(_parents, excluded))
        remove |= {path for path in there if path not in wanted and path not in kept}
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
        pauses.rest_if_due()
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


MOST_EXCLUDES = 200
LONGEST_EXCLUDE = 256
"""Characters."""


def check_excludes(patterns: Sequence[str]) -> None:
    """InputError if there are too many, or one is too long."""
    if len(patterns) > MOST_EXCLUDES:
        raise InputError(
            f"{len(patterns):,} patterns are more than {MOST_EXCLUDES}",
            where="excludes",
            hint="exclude the directories that the files are in",
        )
    for pattern in patterns:
        if len(pattern) > LONGEST_EXCLUDE:
            raise InputError(
                f"{pattern[:32]!r}... is longer than {LONGEST_EXCLUDE} characters",
                where="excludes",
            )


class Excludes:
    """Patterns of paths, compiled once: plain names are looked up, all others are one RE2.

    A pattern matches a part of a path, or with a slash in it the beginning of the path. So what a
    stranger writes costs no more for many patterns than for one; Python's own `fnmatch` would
    compare each pattern with each part of each path, and could be made to take for ever.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        check_excludes(patterns)
        deep = {
            pattern for pattern in patterns if "/" in pattern.strip("/") or pattern.startswith("/")
        }
        self._parts = _Globs(pattern.strip("/") for pattern in patterns if pattern not in deep)
        by_depth: dict[int, list[str]] = {}
        for pattern in deep:
            stripped = pattern.strip("/")
            by_depth.setdefault(stripped.count("/") + 1, []).append(stripped)
        self._beginnings = {depth: _Globs(found) for depth, found in by_depth.items()}

    def match(self, path: str) -> bool:
        pauses.rest_if_due()
        parts = path.split("/")
        return any(map(self._parts.match, parts)) or any(
            globs.match("/".join(parts[:depth])) for depth, globs in self._beginnings.items()
        )


class _Globs:
    """Some patterns of which one has to match all of a text."""

    def __init__(self, patterns: Iterable[str]) -> None:
        written = set(patterns)
        wild = sorted(
            pattern for pattern in written if any(character in pattern for character in "*?[")
        )
        self._plain = written.difference(wild)
        self._wild = None
        if wild:
            options = re2.Options()
            options.log_errors = False
            options.dot_nl = True
            self._wild = re2.compile(
                "|".join(_expression(_legible(pattern)) for pattern in wild), options
            )
        self._known: dict[str, bool] = {}
        """Most paths share most of their parts."""

    def match(self, text: str) -> bool:
        if text in self._plain:
            return True
        if self._wild is None:
            return False
        known = self._known.get(text)
        if known is None:
            known = self._wild.fullmatch(_legible(text)) is not None
            self._known[text] = known
        return known


def _expression(pattern: str) -> str:
    """The regular expression that means what `fnmatch` means by the pattern."""
    written = ""
    rest = pattern
    while rest:
        character, rest = rest[0], rest[1:]
        end = rest.find("]", 2 if rest.startswith("!") else 1)
        if character == "[" and end >= 0:
            written += _one_of(rest[:end])
            rest = rest[end + 1 :]
        else:
            written += {"*": ".*", "?": "."}.get(character) or re2.escape(character)
    return written


def _one_of(characters: str) -> str:
    """`a-z_` and `!a-z_`: a range whose end comes before its beginning is none."""
    rest = characters.removeprefix("!")
    found = ""
    while rest:
        if len(rest) > 2 and rest[1] == "-":
            found += f"{re2.escape(rest[0])}-{re2.escape(rest[2])}" if rest[0] <= rest[2] else ""
            rest = rest[3:]
        else:
            found += re2.escape(rest[0])
            rest = rest[1:]
    if not found:
        return "." if characters.startswith("!") else r"[^\x00-\x{10ffff}]"
    return f"[^{found}]" if characters.startswith("!") else f"[{found}]"


def _legible(text: str) -> str:
    """With one character for what is no UTF-8, which RE2 does not read."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


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
