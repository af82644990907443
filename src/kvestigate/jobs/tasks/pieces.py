"""Uploaded files as pieces that are named by their SHA-256. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.errors import InputError
from kvestigate.jobs.users import User

PIECE = 700_000
"""Bytes of the archive in one piece: compressed and in base64 below what a Secret may have."""

LARGEST_PIECE = PIECE + 1024
"""Even what cannot be compressed is hardly longer as gzip."""

MOST_PIECES = 48
"""Beyond this the cluster's own database is no place for files: they go straight to the nodes."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Files:
    """An archive: gzip pieces that, one after the other, are one gzipped tar."""

    digest: str
    """SHA-256 of all pieces together; the nodes check it."""
    pieces: tuple[str, ...] = ()
    """SHA-256 of each. None if they go straight to the nodes."""

    def __post_init__(self) -> None:
        for digest in (self.digest, *self.pieces):
            check_digest(digest)
        if len(self.pieces) > MOST_PIECES:
            raise InputError(f"files: more than {MOST_PIECES} pieces")

    @property
    def streamed(self) -> bool:
        """Whether they are sent to the nodes when these run."""
        return not self.pieces


def check_digest(text: str) -> str:
    if not _DIGEST.fullmatch(text):
        raise InputError(f"files: {text[:80]!r} is not a SHA-256 digest")
    return text


def piece_name(user: User, digest: str) -> str:
    """The Secret of a piece. A user's pieces have names that no other user's can have."""
    return f"k8s-cli-piece-{user.digest}-{digest}"


def check_piece(digest: str, content: bytes) -> None:
    """Raise InputError if the content does not match its digest, or is too large."""
    check_digest(digest)
    if len(content) > LARGEST_PIECE:
        raise InputError(f"files: a piece has at most {LARGEST_PIECE} bytes")
    if hashlib.sha256(content).hexdigest() != digest:
        raise InputError("files: the piece does not match its SHA-256", hint="send it again")


def files_of(digest: str, pieces: Sequence[str]) -> Files | None:
    """The files that a request names; None without any."""
    if not digest and not pieces:
        return None
    return Files(digest, tuple(pieces))
