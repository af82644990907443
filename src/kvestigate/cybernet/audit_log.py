"""The audit log: what is about to be done is on disk before it is done, and its outcome after it.

Each request has two lines of JSON with one `id`. The `intent` is durable (fsync) before anything
happens, so a gateway that is killed has lost no record of what it did: an intent without an
`outcome` was being carried out at that moment. A request that is turned away before anything
could happen has an outcome alone.

One thread writes, and does nothing else: neither uploads nor name lookups can make it wait for a
turn. What comes while it writes is written together next time, with one fsync. Every line in the
file is whole: a line without an end, which a crash left, was never acknowledged, so nothing was
done because of it, and it is removed. Several gateways may share a file; a lock on it orders them.
"""

from __future__ import annotations

import asyncio
import enum
import errno
import fcntl
import itertools
import logging
import os
import queue
import stat
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from kvestigate.cybernet.quotas import Usage
from kvestigate.cybernet.refusals import Unavailable
from kvestigate.cybernet.spec import AuditSpec
from kvestigate.errors import UsageError
from kvestigate.kube.redaction import MASKED, masked_text, masked_words, names_a_secret
from kvestigate.workspace.uploads import Upload

_log = logging.getLogger(__name__)

_LONGEST = 1024
"""Characters of a text that are recorded."""
_MOST = 200
"""Items of a list or mapping that are recorded."""
_MOST_CHARACTERS = 8192
"""Of all parameters of a request: nobody can fill the disk faster than that."""
_ROOM = 2 * 1024 * 1024
"""Bytes that must be free on the disk before anything is begun; outcomes may use them."""
_WINDOW = 60.0
"""Seconds for which requests without a known token are summed up."""
_MOST_ADDRESSES = 64
"""Addresses that are told apart within a window."""
_OTHERS = "(others)"
_TAIL = 64 * 1024


class Stage(enum.StrEnum):
    INTENT = "intent"
    OUTCOME = "outcome"


@dataclass(frozen=True, slots=True)
class Record:
    id: str
    """The same in the intent and the outcome of a request."""
    stage: Stage
    timestamp: str
    identity: str
    """Empty when it was not proved."""
    tags: tuple[str, ...]
    """Of the identity, as `auth.tokens` has them."""
    remote: str
    """`127.0.0.1:53122`, `stdio`"""
    operation: str
    parameters: Any
    touched: Any
    """The nodes, namespaces, workspaces, GPUs and files that the parameters name (`Touched`)."""
    decision: str
    """`allow` or `deny`; empty in an intent, as are `reason` and `outcome`."""
    reason: str
    """The rule that denied it, or what failed; empty when all went well."""
    outcome: str
    """`ok`, `error` or `denied`"""
    duration_ms: float
    quota: Usage | None
    """What was held after the request; None if it does not concern workspaces."""
    count: int = 1
    """Requests that the line stands for: more than one only for those without a known token."""


class AuditLog:
    """Appends records. What cannot be recorded must not be done: write the intent first."""

    def __init__(self, spec: AuditSpec) -> None:
        self._include_denials = spec.include_denials
        self._begun: set[str] = set()
        """Ids of intents whose outcome is to come."""
        self._strangers: dict[str, _Stranger] = {}
        """By address, in this window."""
        self._window: asyncio.TimerHandle | None = None
        try:
            Path(spec.path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._writer = _Writer(Path(spec.path))
        except OSError as error:
            raise UsageError(
                f"audit.path: {spec.path!r} cannot be written: {error.strerror}",
                hint="name a file in a directory that you may write to",
            ) from error

    async def write(self, record: Record) -> None:
        """On disk when it returns; Unavailable if it could not be put there."""
        intent = record.stage is Stage.INTENT
        concludes = record.id in self._begun
        if record.decision == "deny" and not self._include_denials and not concludes:
            return
        if intent:
            self._begun.add(record.id)
        else:
            self._begun.discard(record.id)
        line = _Line(msgspec.json.encode(record) + b"\n", needs_room=intent or not concludes)
        self._writer.add(line)
        try:
            await asyncio.shield(asyncio.wrap_future(line.written))
        except OSError as error:
            self._begun.discard(record.id)
            raise Unavailable(
                f"the audit log cannot be written: {error.strerror}",
                "audit",
                hint="nothing is done that cannot be recorded; tell the operator",
            ) from error

    async def write_stranger(self, record: Record) -> int:
        """Record a request without a known token; how many came from there in this window.

        The first of an address is on disk when this returns. The others are one line together
        when the window ends: whoever has no token decides nothing about the size of the log.
        """
        address = record.remote.rpartition(":")[0] or record.remote
        if address not in self._strangers and len(self._strangers) >= _MOST_ADDRESSES:
            address = _OTHERS
        stranger = self._strangers.get(address)
        if stranger is not None:
            self._strangers[address] = _Stranger(record, stranger.count + 1)
            return stranger.count + 1
        self._strangers[address] = _Stranger(record, 1)
        if self._window is None:
            loop = asyncio.get_running_loop()
            self._window = loop.call_later(_WINDOW, self._end_window)
        try:
            await self.write(record)
        except Unavailable:
            self._strangers.pop(address, None)
            raise
        return 1

    def close(self) -> None:
        """Write what waits, and end."""
        if self._window is not None:
            self._end_window()
        self._writer.close()

    def _end_window(self) -> None:
        if self._window is not None:
            self._window.cancel()
            self._window = None
        strangers, self._strangers = self._strangers, {}
        for address, stranger in strangers.items():
            if stranger.count > 1 and self._include_denials:
                last, more = stranger.last, stranger.count - 1
                reason = f"{last.reason} ({more} more requests within {_WINDOW:.0f} s)"
                summary = replace(last, remote=address, operation="", reason=reason, count=more)
                self._writer.add(_Line(msgspec.json.encode(summary) + b"\n", needs_room=True))


@dataclass(frozen=True, slots=True)
class _Stranger:
    """The requests of one address in this window."""

    last: Record
    count: int


class _Line:
    def __init__(self, data: bytes, *, needs_room: bool) -> None:
        self.data = data
        self.needs_room = needs_room
        self.written: Future[None] = Future()


class _Writer:
    """A thread that appends lines to a file, as many at once as have come meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = self._open()
        self._waiting: queue.SimpleQueue[_Line | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="audit-log", daemon=True)
        self._thread.start()

    def add(self, line: _Line) -> None:
        if self._closed:
            line.written.set_exception(OSError(errno.EBADF, "the gateway has stopped"))
        else:
            self._waiting.put(line)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._waiting.put(None)
            self._thread.join()

    def _run(self) -> None:
        going_on = True
        while going_on:
            batch = [self._waiting.get()]
            with suppress(queue.Empty):
                while True:
                    batch.append(self._waiting.get_nowait())
            going_on = None not in batch
            self._write([line for line in batch if line is not None])
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def _write(self, lines: Sequence[_Line]) -> None:
        try:
            accepted = self._accepted(lines)
            if accepted:
                self._append(b"".join(line.data for line in accepted))
        except OSError as error:
            _log.error("the audit log %s cannot be written: %s", self._path, error.strerror)
            failure = OSError(error.errno, error.strerror)
            for line in lines:
                if not line.written.done():
                    line.written.set_exception(failure)
            return
        for line in accepted:
            line.written.set_result(None)

    def _accepted(self, lines: Sequence[_Line]) -> Sequence[_Line]:
        """All, or only those that end what was begun if the disk is nearly full."""
        self._reopen_if_moved()
        room = os.fstatvfs(self._descriptor)
        if room.f_bavail * room.f_frsize >= _ROOM:
            return lines
        for line in lines:
            if line.needs_room:
                line.written.set_exception(_full())
        return [line for line in lines if not line.needs_room]

    def _append(self, data: bytes) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            end = self._end_of_lines()
            try:
                if os.write(self._descriptor, data) != len(data):
                    raise _full()
                os.fsync(self._descriptor)
            except OSError:
                os.ftruncate(self._descriptor, end)
                raise
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _end_of_lines(self) -> int:
        """The length of the file, from which a line without an end is taken away."""
        size = end = os.fstat(self._descriptor).st_size
        while end:
            begin = max(0, end - (1 if end == size else _TAIL))
            found = os.pread(self._descriptor, end - begin, begin).rfind(b"\n")
            if found >= 0:
                end = begin + found + 1
                break
            end = begin
        if end < size:
            os.ftruncate(self._descriptor, end)
            _log.warning("%s: an unfinished line of %d bytes is removed", self._path, size - end)
        return end

    def _reopen_if_moved(self) -> None:
        """Somebody may have moved the file away: then a new one is begun."""
        try:
            there = self._path.stat(follow_symlinks=False)
        except FileNotFoundError:
            there = None
        ours = os.fstat(self._descriptor) if self._descriptor >= 0 else None
        if there is None or ours is None or not os.path.samestat(there, ours):
            if self._descriptor >= 0:
                os.close(self._descriptor)
            self._descriptor = -1
            self._descriptor = self._open()

    def _open(self) -> int:
        """A regular file that is its owner's alone; never one that a link leads to."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(self._path, flags, 0o600)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
                raise OSError(errno.EINVAL, "it is not a regular file of one name")
            os.fchmod(descriptor, 0o600)
        except OSError:
            os.close(descriptor)
            raise
        with suppress(OSError):  # so that the name of a new file is not lost; not all can do that
            directory = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        return descriptor


def _full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def masked(value: Any) -> Any:
    """`value` as it may be kept: without secrets, and not longer than a record should be."""
    return _Keeping().kept(value)


class _Keeping:
    """Goes over the parameters of one request until there is enough of them."""

    def __init__(self) -> None:
        self._left = _MOST_CHARACTERS

    def kept(self, value: Any) -> Any:
        match value:
            case Mapping():
                return self._mapping(value)
            case str():
                return self._cut(masked_text(value[:_LONGEST]), len(value))
            case Upload():
                return f"({value.size} bytes)"
            case Sequence():
                return self._items(value[:_MOST])
            case _:
                self._left -= 8
                return value

    def _cut(self, text: str, length: int) -> str:
        if length > _LONGEST:
            text = f"{text[:64]}... ({length} characters)"
        self._left -= len(text)
        return text

    def _mapping(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, inner in list(value.items())[:_MOST]:
            if self._left <= 0:
                break
            # Kubernetes writes variables as {name: ..., value: ...}.
            name = value.get("name") if key == "value" else key
            hidden = isinstance(name, str) and names_a_secret(name)
            kept[self.kept(str(key))] = MASKED if hidden else self.kept(inner)
        return kept

    def _items(self, values: Sequence[Any]) -> list[Any]:
        """Words of a command, perhaps: what a word means for the next is known from the list."""
        texts = [value[:_LONGEST] for value in values if isinstance(value, str)]
        most = sum(total < self._left for total in itertools.accumulate(map(len, texts))) + 1
        words = iter(masked_words(texts[:most]))
        kept: list[Any] = []
        for value in values:
            if self._left <= 0:
                break
            text = isinstance(value, str)
            kept.append(self._cut(next(words, ""), len(value)) if text else self.kept(value))
        return kept
