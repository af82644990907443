"""Commands and files in one container, or by way of it on its node."""

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

# `-o`: whoever unpacks owns the files; the archive's users mean nothing on another machine.
_UNPACK = 'mkdir -p -- "$1" && exec tar -xpof - -C "$1"'

# What a link leads to, under the link's name: the receiver sees one file or one directory.
_PACK = """
[ -e "$1" ] || { echo "$1: no such file or directory" >&2; exit 1; }
path=$(readlink -f -- "$1") || path=$1
cd "$(dirname -- "$path")"
case $path in /) name=.;; *) name=$(basename -- "$path");; esac
exec tar -cf - -- "$name"
"""


class TookTooLong(DeadlineExceeded):
    """A command that was ended, and what it had said until then."""

    def __init__(self, message: str, *, hint: str, output: Output) -> None:
        super().__init__(message, hint=hint)
        self.output = output


class Output:
    """What a command says, as far as it is kept."""

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
    """What a command reads, too long to be held."""

    size: int
    """Bytes of all pieces together."""
    pieces: AsyncIterator[bytes]


class Remote:
    """A place where commands run: the container itself, or what `wrapper` leads to."""

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
        """What it is called in messages."""
        self.namespace = namespace
        self.pod = pod
        self.container = container
        self._api = api
        self._wrapper = wrapper

    def argv(self, command: Sequence[str]) -> tuple[str, ...]:
        """What the container is asked to run for `command`."""
        return (*self._wrapper, *command)

    def through(self, *wrapper: str) -> Remote:
        """The same place, with commands run by way of `wrapper`."""
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
        """Run it to its end. After `timeout` it is ended, and `TookTooLong` raised.

        `output` is what keeps its output, if not all of it should be.
        """
        output = output or Output()
        try:
            async with asyncio.timeout(timeout):
                return await self._run(self.argv(command), stdin, output)
        except TimeoutError:
            raise TookTooLong(
                f"{self.name}: {command[0]!r} was ended after {timeout:g} s",
                hint="give it more time, or a command that needs less",
                output=output,
            ) from None

    async def script(self, text: str, *args: str, timeout: float = 60.0) -> Completed:
        """Run a shell script that ends at its first failure; `args` are its `$1`, `$2`."""
        return await self.run(
            ("sh", "-eu", "-s", "--", *args), stdin=text.encode(), timeout=timeout
        )

    def session(self, command: Sequence[str], *, stdin: bool = False) -> Session:
        """The running command: `async with` it, then iterate over its output.

        Without `stdin` it is ended when the block is left; with it, what that does to the
        command is up to the command.
        """
        argv = self.argv(command)
        return self._exec(argv if stdin else guarded(argv))

    async def send(
        self, files: AsyncIterator[bytes] | bytes, directory: str, *, timeout: float = 600.0
    ) -> None:
        """Unpack a tar stream in `directory`, which is made if it is not there."""
        unpacking = self.session(("sh", "-c", _UNPACK, "unpack", directory), stdin=True)
        output = Output()
        try:
            async with asyncio.timeout(timeout), unpacking as session:
                await _exchange(session, _feed(session, files), output)
        except TimeoutError:
            raise DeadlineExceeded(
                f"{self.name}: {directory} was not filled in {timeout:g} s"
            ) from None
        if session.exit_code:
            raise KvestigateError(f"{self.name}: {directory}: {_sentence(output.stderr)}")

    async def receive(self, path: str) -> AsyncGenerator[bytes, None]:
        """A tar stream of a file, or of a directory with all that is in it."""
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
        # Nothing was started. Without a guard the command may outlive us, but it runs.
        async with self._exec(argv, stdin=bool(stdin)) as session:
            return await _complete(session, stdin, output, end=bool(stdin))

    def _exec(self, argv: Sequence[str], *, stdin: bool = True) -> Session:
        return self._api.exec(
            self.pod, argv, namespace=self.namespace, container=self.container, stdin=stdin
        )


async def _complete(
    session: Session, stdin: bytes | Input, output: Output, *, end: bool = False
) -> Completed:
    """Send the input and gather the output. Under guard, the input's end would be the command's."""
    given = stdin if isinstance(stdin, bytes) else stdin.pieces
    await _exchange(session, _feed(session, given, end=end), output)
    assert session.exit_code is not None
    return Completed(session.exit_code, output.stdout, output.stderr)


async def _exchange(session: Session, feed: Coroutine[Any, Any, None], output: Output) -> None:
    """Both at once: a process may write a lot before it has read everything."""
    feeding, reading = asyncio.ensure_future(feed), asyncio.ensure_future(_gather(session, output))
    try:
        await asyncio.wait({feeding, reading}, return_when=asyncio.FIRST_COMPLETED)
        if feeding.done():
            feeding.result()
        await reading
    finally:
        feeding.cancel()  # whatever is left, the process did not want
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
        pass  # the process has ended; the status tells how


async def _feed(session: Session, files: AsyncIterator[bytes] | bytes, *, end: bool = True) -> None:
    if isinstance(files, bytes):
        await _write(session, files, end=end)
        return
    async for piece in files:
        await _write(session, piece, end=False)
    if end:
        await _write(session, b"", end=True)


def _sentence(complaint: bytes | bytearray) -> str:
    """What a program said first about its failure."""
    lines = complaint.decode("utf-8", "replace").strip().splitlines()
    return lines[0] if lines else "it failed without saying why"
