"""`fanout push`: write one file on every target, atomically."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated

from kvestigate.client.api import Api
from kvestigate.errors import InputError, KvestigateError, UsageError
from kvestigate.fanout.execute import remote
from kvestigate.fanout.fetch import planned
from kvestigate.fanout.parallel import AT_MOST, SECONDS, MaxParallel, Timeout, fan_out
from kvestigate.fanout.resolve import aimed
from kvestigate.fanout.results import Outcome, TargetAddress, Transferred
from kvestigate.fanout.targets import Target, TargetOptions
from kvestigate.operation import GROUP, Context, param

# Writes a new file beside the old one and renames it, so that nobody reads a part of it. A link is
# kept and its target is replaced; an existing file keeps its owner and mode. PIPE is ignored, so
# that the shell cleans up even when the connection is gone.
_SCRIPT = """
path=$1 mode=$2 size=$3
if [ -L "$path" ]; then path=$(readlink -f -- "$path"); fi
if [ -d "$path" ]; then echo "$path: is a directory" >&2; exit 1; fi
directory=$(dirname -- "$path")
[ -d "$directory" ] || { echo "$directory: no such directory" >&2; exit 1; }
umask 077
fresh=$(mktemp "$directory/.push.XXXXXX")
trap 'rm -f -- "$fresh"' EXIT
trap 'exit 143' HUP INT TERM
trap "" PIPE
cat >"$fresh"
written=$(wc -c <"$fresh")
[ "$written" -eq "$size" ] || { echo "only $written of $size bytes arrived" >&2; exit 1; }
if [ -e "$path" ]; then
  chown "$(stat -c %u:%g -- "$path")" "$fresh"
  mode=$(stat -c %a -- "$path")
fi
chmod "$mode" "$fresh"
mv -f -- "$fresh" "$path"
trap - EXIT
"""


@dataclass(frozen=True, slots=True)
class LocalFile:
    content: bytes
    mode: int = 0o644
    """The mode of a new file; an existing file keeps its own."""


def read_local(name: str) -> LocalFile:
    path = Path(name)
    try:
        return LocalFile(path.read_bytes(), path.stat().st_mode & 0o777)
    except IsADirectoryError:
        raise InputError(
            "is a directory; only files can be pushed",
            where=name,
            hint="pack it: `tar -czf tree.tgz DIR`, push tree.tgz, unpack it with `fanout exec`",
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=name, hint="check the path"
        ) from error


@dataclass(frozen=True, slots=True)
class PushOptions:
    targets: Annotated[TargetOptions, GROUP]
    local: Annotated[LocalFile, param("The file to push.", argument=True, parse=read_local)]
    path: Annotated[
        str,
        param(
            "Absolute: on the host of a node, in the container of a pod.",
            argument=True,
            metavar="REMOTE",
        ),
    ]
    timeout: Timeout = SECONDS
    max_parallel: MaxParallel = AT_MOST


@dataclass(frozen=True, slots=True)
class Pushed:
    path: str
    bytes: int
    applied: bool
    results: tuple[Transferred, ...]


async def push(context: Context, options: PushOptions) -> Pushed:
    check(options.path)
    size = len(options.local.content)
    async with aimed(context, options.targets) as (api, targets):
        if not context.apply:
            plan = planned(targets, lambda _: options.path)
            return Pushed(options.path, size, applied=False, results=plan)
        results = await fan_out(
            targets,
            lambda target: _write(api, target, options),
            lambda place, outcome, error: Transferred(place, outcome, error=error),
            at_most=options.max_parallel,
            watcher=context.progress,
        )
    return Pushed(options.path, size, applied=True, results=results)


def check(path: str) -> None:
    """PURE. Raises UsageError if `path` is not the absolute path of a file."""
    pure = PurePosixPath(path)
    if not pure.is_absolute() or ".." in pure.parts or not pure.name or path.endswith("/"):
        raise UsageError(
            f"REMOTE {path!r} is not the absolute path of a file",
            hint="write for example /etc/hosts.allow",
        )


async def _write(api: Api, target: Target, options: PushOptions) -> Transferred:
    content, mode = options.local.content, options.local.mode
    size = len(content)
    command = ("sh", "-euc", _SCRIPT, "push", options.path, f"{mode:o}", str(size))
    done = await remote(api, target).run(command, stdin=content, timeout=options.timeout)
    if done.exit_code:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise KvestigateError(lines[0] if lines else f"exit code {done.exit_code}")
    return Transferred(TargetAddress.of(target), Outcome.OK, options.path, files=1, bytes=size)
