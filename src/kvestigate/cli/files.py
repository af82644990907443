"""Files that commands are given to read, and `--json PATH`: those that are written whole."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kvestigate.errors import InputError
from kvestigate.files import replace_file

json_option = click.option(
    "--json",
    "json_path",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Also write the result as JSON to PATH.",
)
"""Add `--json PATH`; the command is given `json_path`."""


def keep_json(path: Path | None, result: object) -> None:
    """Write `result` to `path`, if one was given."""
    if path is not None:
        from kvestigate.render.encode import to_json

        write_whole(path, to_json(result))


def read_whole(path: str | Path, *, hint: str = "check the path") -> bytes:
    """What is in the file, or on standard input for `-`."""
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", where=str(path), hint=hint) from error


def write_whole(path: Path, content: bytes) -> None:
    """Replace `path` by `content` at once: a reader sees the old file or the new one.

    Directories on the way are made: what was worked out should not be lost for want of one.
    """
    try:
        if not path.parent.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content, mode=None if path.exists() else 0o644)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}",
            where=str(path),
            hint="give a path in a directory that you may write to",
        ) from error
