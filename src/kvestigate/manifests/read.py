"""From paths to texts: files, directories, standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from kvestigate.errors import InputError
from kvestigate.manifests.model import Source

_ENDINGS = (".yaml", ".yml", ".json")
LARGEST = 64 * 1024 * 1024
"""Bytes of a file: more than etcd would take is not a manifest."""


def read(paths: Iterable[str], *, recursive: bool = False) -> tuple[Source, ...]:
    """The texts at `paths`, each once; `-` is standard input, a directory all that is in it."""
    sources: dict[str, Source] = {}
    for path in paths:
        for source in _sources(path, recursive):
            sources.setdefault(source.name, source)
    return tuple(sources.values())


def _sources(path: str, recursive: bool) -> Iterator[Source]:
    if path == "-":
        yield Source("-", _text(sys.stdin.buffer.read(LARGEST + 1), "-"))
        return
    place = Path(path)
    if not place.is_dir():
        yield _file(place)
        return
    files = sorted(_in(place, recursive))
    if not files:
        deeper = "" if recursive else "; --recursive also reads subdirectories"
        raise InputError(
            "there are no manifests in this directory",
            where=path,
            hint=f"manifests are files that end in {', '.join(_ENDINGS)}{deeper}",
        )
    for file in files:
        yield _file(file)


def _in(directory: Path, recursive: bool) -> Iterator[Path]:
    paths = directory.rglob("*") if recursive else directory.iterdir()
    return (path for path in paths if path.suffix in _ENDINGS and path.is_file())


def _file(path: Path) -> Source:
    try:
        with path.open("rb") as stream:
            return Source(str(path), _text(stream.read(LARGEST + 1), str(path)))
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}",
            where=str(path),
            hint="give a file, a directory, or - for standard input",
        ) from error


def _text(data: bytes, where: str) -> str:
    if len(data) > LARGEST:
        raise InputError(f"larger than {LARGEST >> 20} MiB", where=where)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"not text: byte {error.start} is not UTF-8",
            where=where,
            hint="save the file as UTF-8",
        ) from error
