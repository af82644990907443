"""A cyberspace from its file, checked against the operations that there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvestigate.cybernet.registry import offered
from kvestigate.cybernet.spec import Cyberspace, read_cyberspace
from kvestigate.errors import InputError, UsageError
from kvestigate.kube.yaml_documents import load
from kvestigate.kube.yaml_scalars import Dialect
from kvestigate.operation import Operation


@dataclass(frozen=True, slots=True)
class Loaded:
    space: Cyberspace
    operations: Mapping[str, Operation[Any, Any]]
    path: Path | None = None
    """The file; None if it came from elsewhere."""


def load_cyberspace(path: str | Path, operations: Iterable[Operation[Any, Any]]) -> Loaded:
    """InputError names the file, the field and the way out."""
    space = read_file(path)
    try:
        return Loaded(space, offered(space.allow, operations), Path(path).absolute())
    except UsageError as error:
        raise InputError(error.message, where=str(path), hint=error.hint) from None


def read_file(path: str | Path) -> Cyberspace:
    """The cyberspace that a file means."""
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot read the file: {reason}",
            where=str(path),
            hint="`kvestigate cybernet init` writes one",
        ) from error
    return read_text(data, str(path))


def read_text(data: bytes | str, path: str) -> Cyberspace:
    """The cyberspace that the text of a file means."""
    raw = data.encode() if isinstance(data, str) else data
    documents = load(raw, path, dialect=Dialect.PYTHON)
    if len(documents) != 1:
        raise InputError(f"holds {len(documents)} documents, not one", where=path)
    try:
        return read_cyberspace(documents[0].value)
    except UsageError as error:
        raise InputError(error.message, where=path, hint=error.hint) from None
