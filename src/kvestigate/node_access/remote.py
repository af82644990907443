"""Commands and files in one container, or on its node through the container."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from kvestigate.client.api import Api
from kvestigate.client.streams import Channel, Completed, Session
from kvestigate.errors import ApiError, ConnectionFailed, DeadlineExceeded, KvestigateError
from kvestigate.node_access.guard import guarded, tells_of_no_shell

# `-o`: the unpacking user owns the files; the archive's users do not exist on this machine.
_UNPACK = 'mkdir -p -- "$1" && exec tar -xpof - -C "$1"'

# Follows a link, so that the receiver gets one file or one directory.
_PACK = """
[ -e "$1" ] || { echo "$1: no such file or directory" >&2; exit 1; }
path=$(readlink -f -- "$1") || path=$1
cd "$(dirname -- "$path")"
case $path in /) name=.;; *) name=$(basename -- "$path");; esac
exec tar -cf - -- "$name"
"""


class TookTooLong(DeadlineExceeded):
    """A command was stopped after its timeout; with its output until then."""

    def __init__(self, message: str, *, hint: str, output: Output) -> None:
        super().__init__(message, hint=hint)
        self.output = output


class Output:
    """The output of a command, up to a limit per stream."""

    def __init__(self, limit: int = sys.maxsize) -> None:
        self._limit = limit
        self._kept = {Channel.STDOUT: bytearray(), Channel.STDERR: bytearray()}
        self.truncated = False

    @property
    def stdout(self) -> bytes:
        return bytes(self._kept[Channel.STDOUT])

    @property
    def stderr(self) -> bytes:
        return bytes(self._kept[Channel.STDERR])

    def add(self, channel: Channel, data: bytes) -> None:
        room = self._limit - len(self._kept[channel])
        self._kept[channel] += data[:room]
        self.truncated = self.truncated or len(data) > room


@dataclass(frozen=True, slots=True)
class Input:
    """The standard input of a command, in pieces."""

    size: int
    """Bytes of all pieces together."""
    pieces: AsyncIterator[bytes]


class Remote:
    """A place to run commands: a container, or the host behind its `wrapper`."""

    def __init__(
        self,
        api: Api,
        *,
        name: str,
        namespace: str,
        pod: str,
        container: str,
        wrapper: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        """The name in messages."""
        self.namespace = namespace
        self.pod = pod
        self.container = container
        self._api = api
        self._wrapper = wrapper

    def argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command line in the container: the wrapper and `command`."""
        return (*self._wrapper, *command)

    def through(self, *wrapper: str) -> Remote:
        """The same place, with `wrapper` before each command."""
        return Remote(
            self._api,
            name=self.name,
            namespace=self.namespace,
            pod=self.pod,
            container=self.container,
            wrapper=(*self._wrapper, *wrapper),
        )

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | Input = b"",
        timeout: float = 60.0,
        output: Output | None = None,
    ) -> Completed:
        """Run `command` until it ends. After `timeout` it is stopped and `TookTooLong` raised.

        `output` collects the output; give one to limit how much is kept.
        """
        output = output or Output()
        try:
            async with asyncio.timeout(timeout):
                return await self._run(self.argv(command), stdin, output)
        except TimeoutError:
            raise TookTooLong(
                f"{self.name}: {command[0]!r} was stopped after {timeout:g} s",
                hint="allow more time with --timeout",
                output=output,
            ) from None

    async def script(self, text: str, *args: str, timeout: float = 60.0) -> Completed:
        """Run a shell script that stops at its first failure; `args` are its `$1`, `$2`."""
        return await self.run(
            ("sh", "-eu", "-s", "--", *args), stdin=text.encode(), timeout=timeout
        )

    def session(self, command: Sequence[str], *, stdin: bool = False) -> Session:
        """The running command: `async with` it, then iterate over its output.

        Without `stdin` the command is stopped when the block is left. With `stdin` the command
        only sees the end of its input.
        """
        argv = self.argv(command)
        return self._exec(argv if stdin else guarded(argv))

    async def send(
        self, files: AsyncIterator[bytes] | bytes, directory: str, *, timeout: float = 600.0
    ) -> None:
        """Unpack a tar stream in `directory`, which is created if needed."""
        unpacking = self.session(("sh", "-c", _UNPACK, "unpack", directory), stdin=True)
        output = Output()
        try:
            async with asyncio.timeout(timeout), unpacking as session:
                await _exchange(session, _feed(session, files), output)
        except TimeoutError:
            raise DeadlineExceeded(
                f"{self.name}: {directory} was not written within {timeout:g} s"
            ) from None
        if session.exit_code:
            raise KvestigateError(f"{self.name}: {directory}: {_sentence(output.stderr)}")

    async def receive(self, path: str) -> AsyncGenerator[bytes, None]:
        """A tar stream of a file or a whole directory."""
        packing = self.session(("sh", "-euc", _PACK, "pack", path))
        complaint = bytearray()
        async with packing as session, aclosing(_pieces(session)) as pieces:
            async for channel, data in pieces:
                if channel is Channel.STDOUT:
                    yield data
                else:
                    complaint += data
        if session.exit_code:
            raise KvestigateError(f"{self.name}: {_sentence(complaint)}")

    async def _run(self, argv: tuple[str, ...], stdin: bytes | Input, output: Output) -> Completed:
        size = len(stdin) if isinstance(stdin, bytes) else stdin.size
        try:
            async with self._exec(guarded(argv, size)) as session:
                return await _complete(session, stdin, output)
        except ApiError as refused:
            if not isinstance(stdin, bytes) or not tells_of_no_shell(refused.message):
                raise
        # Nothing was started. Without a shell there is no guard: the command may outlive us.
        async with self._exec(argv, stdin=bool(stdin)) as session:
            return await _complete(session, stdin, output, end=bool(stdin))

    def _exec(self, argv: Sequence[str], *, stdin: bool = True) -> Session:
        return self._api.exec(
            self.pod, argv, namespace=self.namespace, container=self.container, stdin=stdin
        )


async def _complete(
    session: Session, stdin: bytes | Input, output: Output, *, end: bool = False
) -> Completed:
    """Send the input and collect the output. For a guarded command, `end` must stay False."""
    content = stdin if isinstance(stdin, bytes) else stdin.pieces
    await _exchange(session, _feed(session, content, end=end), output)
    assert session.exit_code is not None
    return Completed(session.exit_code, output.stdout, output.stderr)


async def _exchange(session: Session, feed: Coroutine[Any, Any, None], output: Output) -> None:
    """Feed and read at the same time: a process may write before it has read everything."""
    feeding, reading = asyncio.ensure_future(feed), asyncio.ensure_future(_gather(session, output))
    try:
        await asyncio.wait({feeding, reading}, return_when=asyncio.FIRST_COMPLETED)
        if feeding.done():
            feeding.result()
        await reading
    finally:
        feeding.cancel()  # the process has ended and reads no more input
        reading.cancel()
        await asyncio.wait({feeding, reading})


async def _gather(session: Session, output: Output) -> None:
    async with aclosing(_pieces(session)) as pieces:
        async for channel, data in pieces:
            output.add(channel, data)


async def _pieces(session: Session) -> AsyncGenerator[tuple[Channel, bytes], None]:
    async for piece in session:
        yield piece.channel, piece.data


async def _write(session: Session, data: bytes, *, end: bool) -> None:
    try:
        await session.write(data)
        if end:
            await session.end_stdin()
    except ConnectionFailed:
        pass  # the process has ended; its status says how


async def _feed(session: Session, files: AsyncIterator[bytes] | bytes, *, end: bool = True) -> None:
    if isinstance(files, bytes):
        await _write(session, files, end=end)
        return
    async for piece in files:
        await _write(session, piece, end=False)
    if end:
        await _write(session, b"", end=True)


def _sentence(complaint: bytes | bytearray) -> str:
    """The first line of an error output."""
    lines = complaint.decode("utf-8", "replace").strip().splitlines()
    return lines[0] if lines else "failed without an error message"
