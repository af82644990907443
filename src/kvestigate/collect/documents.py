"""Records from manifests: files, directories, globs, standard input.

A document that cannot be read is a `Problem` with its file and line, and the rest goes on.
Documents without pods (services, config maps) are passed over.
"""

from __future__ import annotations

import glob
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kvestigate.collect.kinds import WorkloadKind, kind_of
from kvestigate.collect.normalise import normalise
from kvestigate.collect.reading import read
from kvestigate.collect.record import Record
from kvestigate.collect.sidecars import KNOWN, Sidecars
from kvestigate.errors import InputError
from kvestigate.kube.requests import with_text_quantities
from kvestigate.kube.yaml_documents import Document, flattened, load

STDIN = "-"
SUFFIXES = frozenset((".yaml", ".yml", ".json"))

# Such a line ends a document wherever it stands: even the content of a block scalar is
# indented, and a quoted one may not hold it.
_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^%.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Problem:
    """A document that could not be read."""

    message: str
    """With `file:line` in front."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How documents are read."""

    custom: tuple[WorkloadKind, ...] = ()
    sidecars: Sidecars = KNOWN

    def records(self, paths: Iterable[str]) -> Iterator[Record | Problem]:
        """What is in the files, in order. InputError if a path leads to no file."""
        for file in [file for path in paths for file in expand(path)]:
            yield from self.of_file(file)

    def of_file(self, path: str) -> Iterator[Record | Problem]:
        try:
            data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
            text = data.decode()
        except OSError as error:
            yield Problem(f"{path}: cannot be read: {error.strerror}")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            yield Problem(f"{path}:{line}: not text: byte {error.start} is not UTF-8")
        else:
            yield from self.of_text(text, path)

    def of_text(self, text: str, source: str) -> Iterator[Record | Problem]:
        for part in documents(text, source):
            if isinstance(part, Problem):
                yield part
                continue
            for document in flattened([part]):
                result = self.of_document(document)
                if result is not None:
                    yield result

    def of_document(self, document: Document) -> Record | Problem | None:
        """None for a document that has no pods."""
        value = document.value
        api_version, kind = (
            (value.get("apiVersion"), value.get("kind"))
            if isinstance(value, dict)
            else (None, None)
        )
        if not isinstance(api_version, str) or not isinstance(kind, str):
            return Problem(f"{document.where}: not a manifest: apiVersion or kind is missing")
        workload_kind = kind_of(api_version, kind, self.custom)
        if workload_kind is None:
            return None
        try:
            workload = read(workload_kind, msgspec.json.encode(with_text_quantities(value)))
            if not (workload.metadata.name or workload.metadata.generate_name):
                return Problem(f"{document.where}: {kind}: metadata.name is missing")
            return normalise(workload, known=self.sidecars)
        except InputError as error:
            return Problem(f"{document.where}: {error.message}")


def expand(path: str) -> Sequence[str]:
    """The files that an argument means: itself, those of a directory, those of a pattern."""
    if path == STDIN:
        return [path]
    if Path(path).is_dir():
        below = sorted(Path(path).rglob("*"))
        files = [str(file) for file in below if file.suffix in SUFFIXES and file.is_file()]
    elif Path(path).exists():
        files = [path]
    else:
        matches = glob.glob(path, recursive=True)  # noqa: PTH207  # a pattern may be absolute
        files = sorted(file for file in matches if Path(file).is_file())
    if not files:
        raise InputError(
            "no manifest file has this name, matches this pattern or is in this directory",
            where=path,
            hint="give YAML or JSON files, directories of them, patterns in quotes, or - for stdin",
        )
    return files


def documents(text: str, source: str) -> Iterator[Document | Problem]:
    """The documents of a text, one by one, so that a bad one does not hide the others."""
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] in ("{", "["):
        yield from _loaded(text, source, 0)
        return
    start, lines = 0, 0
    for end in [*(match.start() for match in _SEPARATOR.finditer(text)), len(text)]:
        if end > start:
            part = text[start:end]
            yield from _loaded(_DIRECTIVE.sub("", part) if "%" in part else part, source, lines)
            lines += part.count("\n")
            start = end


def _loaded(part: str, source: str, before: int) -> Iterator[Document | Problem]:
    """The documents of a part that has `before` lines of the file before it."""
    try:
        for document in load(part, source):
            yield replace(document, line=document.line + before)
    except InputError as error:
        yield Problem(_placed(part, source, before) or error.message)


def _placed(part: str, source: str, before: int) -> str:
    """The message of a part that does not parse, with the line that it has in the file."""
    try:
        load("\n" * before + part, source)
    except InputError as error:
        return error.message
    return ""
