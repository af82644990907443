"""`fanout fetch`: copy a file or directory of every target into a directory per target."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, BinaryIO

from kvestigate.client.api import Api
from kvestigate.errors import DeadlineExceeded, InputError, KvestigateError, UsageError
from kvestigate.fanout.execute import remote
from kvestigate.fanout.parallel import AT_MOST, SECONDS, DryRun, MaxParallel, Timeout, fan_out
from kvestigate.fanout.resolve import aimed
from kvestigate.fanout.results import Outcome, TargetAddress, Transferred
from kvestigate.fanout.targets import Target, TargetOptions, Targets
from kvestigate.operation import GROUP, Context, param
from kvestigate_client.extraction import Unpacked, extract
from kvestigate_client.members import ArchiveRefused


@dataclass(frozen=True, slots=True)
class FetchOptions:
    targets: Annotated[TargetOptions, GROUP]
    path: Annotated[
        str, param("Absolute: on the host of a node, in the container of a pod.", argument=True)
    ]
    directory: Annotated[str, param("On this machine.", argument=True, metavar="DIR")]
    timeout: Timeout = SECONDS
    max_parallel: MaxParallel = AT_MOST
    dry_run: DryRun = False


@dataclass(frozen=True, slots=True)
class Fetched:
    path: str
    results: tuple[Transferred, ...]


async def fetch(context: Context, options: FetchOptions) -> Fetched:
    """Into `directory/TARGET/NAME`, each either complete or absent."""
    name, directory = _name(options.path), Path(options.directory)
    async with aimed(context, options.targets) as (api, targets):
        if options.dry_run:
            return Fetched(
                options.path, planned(targets, lambda target: directory / target.name / name)
            )

        async def one(target: Target) -> Transferred:
            _check_name(target.name)
            return await _into(api, target, options, directory / target.name / name)

        new = _missing(directory)
        try:
            results = await fan_out(
                targets, one, _failed, at_most=options.max_parallel, watcher=context.progress
            )
        finally:
            _remove_empty(new)
    return Fetched(options.path, results)


def _missing(directory: Path) -> list[Path]:
    """The directory and those above it that do not exist, the deepest first."""
    return [path for path in (directory, *directory.parents) if not path.exists()]


def _remove_empty(directories: Sequence[Path]) -> None:
    """Remove directories that nothing was put into, up to the first that is not empty."""
    with suppress(OSError):
        for directory in directories:
            directory.rmdir()


def planned(targets: Targets, where: Callable[[Target], Path | str]) -> tuple[Transferred, ...]:
    """PURE. The paths that would be written."""
    return (
        *(
            Transferred(TargetAddress.of(target), Outcome.PLANNED, str(where(target)))
            for target in targets.found
        ),
        *(
            _failed(TargetAddress.of(target), Outcome.UNREACHABLE, target.reason)
            for target in targets.unreachable
        ),
    )


def _failed(place: TargetAddress, outcome: Outcome, error: str) -> Transferred:
    return Transferred(place, outcome, error=error)


def _name(path: str) -> str:
    """The local name of the fetched file or directory."""
    pure = PurePosixPath(path)
    if not pure.is_absolute() or ".." in pure.parts:
        raise UsageError(f"PATH {path!r} is not absolute", hint="write for example /etc/hosts")
    return pure.name or "root"


def _check_name(target: str) -> None:
    """The server chooses the name, so it must not contain a path."""
    if target in ("", ".", "..") or "/" in target or "\0" in target:
        raise KvestigateError(f"{target!r} is not a valid name of a directory")


async def _into(api: Api, target: Target, options: FetchOptions, destination: Path) -> Transferred:
    new = _missing(destination.parent)[:1]
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=destination.parent, prefix=f".{destination.name}."))
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}",
            where=str(destination.parent),
            hint="give a directory that you may write to",
        ) from error
    try:
        with tempfile.TemporaryFile(dir=work) as archive:
            await _receive(api, target, options, archive)
            archive.seek(0)
            unpacked = await asyncio.to_thread(_unpack, archive, work)
        _replace(work / "new", destination, work / "old")
    finally:
        await asyncio.to_thread(shutil.rmtree, work, ignore_errors=True)
        _remove_empty(new)
    return Transferred(
        TargetAddress.of(target),
        Outcome.OK,
        str(destination),
        unpacked.files,
        unpacked.bytes,
        skipped=unpacked.skipped,
    )


async def _receive(api: Api, target: Target, options: FetchOptions, into: BinaryIO) -> None:
    try:
        async with (
            asyncio.timeout(options.timeout),
            aclosing(remote(api, target).receive(options.path)) as pieces,
        ):
            async for piece in pieces:
                into.write(piece)
    except TimeoutError:
        raise DeadlineExceeded(f"not received within {options.timeout:g} s") from None


def _unpack(archive: BinaryIO, work: Path) -> Unpacked:
    """As `new` in the directory `work`."""
    try:
        return extract(archive, work, name="new")
    except ArchiveRefused as error:
        raise KvestigateError(f"the archive of the target {error}") from error
    except OSError as error:
        raise KvestigateError(f"cannot write {error.filename}: {error.strerror}") from error


def _replace(new: Path, destination: Path, old: Path) -> None:
    """Move `new` to `destination`; an existing directory is moved to `old` first."""
    if destination.is_dir() and not destination.is_symlink():
        destination.rename(old)
    elif new.is_dir() and os.path.lexists(destination):
        destination.unlink()
    new.rename(destination)
