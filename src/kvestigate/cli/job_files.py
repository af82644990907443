"""The files of a submission: the task's own, and those that go with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvestigate.cli.files import read_whole
from kvestigate.errors import UsageError

if TYPE_CHECKING:
    from kvestigate.jobs.files.archive import Archive
    from kvestigate.jobs.tasks.model import Task
    from kvestigate.kube.documents import File

_WIDTH = 24


def task_file(file: str) -> File:
    """The one document of a file; `-` is standard input."""
    from kvestigate.kube.documents import one_document

    return one_document(read_whole(file), file, "task")


def pairs(flag: str, given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE`, or `NAME` for what our own environment has."""
    found = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals and name in os.environ:  # as `docker run -e NAME` has it
            value = os.environ[name]
        elif not equals:
            raise UsageError(f"{flag}: {item!r} is not NAME=VALUE", hint=f"{flag} NAME=VALUE")
        found[name] = value
    return found


@contextmanager
def packed_files(task: Task) -> Iterator[Archive | None]:
    """The archive of what the task uploads, if it uploads anything."""
    if not task.uploads:
        yield None
        return
    from kvestigate.jobs.files.archive import packed

    with packed(task.uploads, Path.cwd()) as archive:
        yield archive


@contextmanager
def progress_bar(doing: str) -> Iterator[Callable[[int, int], None]]:
    """Shows `uploading [####    ] 12/48` on a terminal, and nothing elsewhere."""
    shown = False

    def show(done: int, total: int) -> None:
        nonlocal shown
        if not sys.stderr.isatty() or not total:
            return
        shown = True
        filled = _WIDTH * done // total
        bar = "#" * filled + " " * (_WIDTH - filled)
        click.echo(f"\r\x1b[K{doing} [{bar}] {done}/{total}", err=True, nl=False)

    try:
        yield show
    finally:
        if shown:
            click.echo("\r\x1b[K", err=True, nl=False)
