"""The audit log: one line of JSON for each request, on disk before the request is answered."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kvestigate.cybernet.quotas import Usage
from kvestigate.cybernet.refusals import Unavailable
from kvestigate.cybernet.spec import AuditSpec
from kvestigate.errors import UsageError
from kvestigate.files import private_file
from kvestigate.kube.redaction import names_a_secret
from kvestigate.operation import Touched
from kvestigate.workspace.uploads import Upload

MASKED = "***"
_LONGEST = 1024
"""Characters of a text that are recorded."""
_MOST = 200
"""Items of a list or mapping that are recorded."""
_ROOM = 1024 * 1024
"""Bytes that must be free on the disk before anything is begun that has to be recorded."""


@dataclass(frozen=True, slots=True)
class Record:
    timestamp: str
    identity: str
    """Empty when it was not proved."""
    tags: tuple[str, ...]
    """Of the identity, as `auth.tokens` has them."""
    remote: str
    """`127.0.0.1:53122`, `stdio`"""
    operation: str
    parameters: Any
    touched: Touched
    """The nodes, namespaces, workspaces, GPUs and files that the parameters name."""
    decision: str
    """`allow` or `deny`"""
    reason: str
    """The rule that denied it, or what failed; empty when all went well."""
    outcome: str
    """`ok`, `error` or `denied`"""
    duration_ms: float
    quota: Usage | None
    """What was held after the request; None if it does not concern workspaces."""


class AuditLog:
    """Appends records. What cannot be recorded must not be done: ask `ready` first."""

    def __init__(self, spec: AuditSpec) -> None:
        self._path = Path(spec.path)
        self._include_denials = spec.include_denials
        self._lock = asyncio.Lock()
        self._descriptor = -1
        try:
            self._open()
        except OSError as error:
            raise UsageError(
                f"audit.path: {spec.path!r} cannot be written: {error.strerror}",
                hint="name a file in a directory that exists and that you may write to",
            ) from error

    async def ready(self) -> None:
        """Refuses with Unavailable unless a record can be written now."""
        async with self._lock:
            try:
                await asyncio.to_thread(self._check)
            except OSError as error:
                raise _unavailable(error) from error

    async def write(self, record: Record) -> None:
        """On disk when it returns; Unavailable if it could not be put there."""
        if record.decision == "deny" and not self._include_denials:
            return
        line = msgspec.json.encode(record) + b"\n"
        async with self._lock:
            try:
                await asyncio.to_thread(self._append, line)
            except OSError as error:
                raise _unavailable(error) from error

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._descriptor = private_file(self._path, flags)

    def _check(self) -> None:
        """Somebody may have moved the file away: then a new one is begun."""
        try:
            there = self._path.stat()
        except FileNotFoundError:
            there = None
        ours = os.fstat(self._descriptor) if self._descriptor >= 0 else None
        if there is None or ours is None or not os.path.samestat(there, ours):
            self.close()
            self._open()
        room = os.fstatvfs(self._descriptor)
        if room.f_bavail * room.f_frsize < _ROOM:
            raise _full()

    def _append(self, line: bytes) -> None:
        self._check()
        before = os.fstat(self._descriptor).st_size
        if os.write(self._descriptor, line) != len(line):
            os.ftruncate(self._descriptor, before)  # half a line would spoil the next one
            raise _full()
        os.fsync(self._descriptor)


def _full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _unavailable(error: OSError) -> Unavailable:
    return Unavailable(
        f"the audit log cannot be written: {error.strerror}",
        "audit",
        hint="nothing is done that cannot be recorded; tell the operator",
    )


def masked(value: Any, name: str = "") -> Any:
    """`value` as it may be kept: without secrets, and not longer than a record should be."""
    if name and names_a_secret(name):
        return MASKED
    if isinstance(value, Mapping):
        return {
            str(key)[:_LONGEST]: masked(inner, str(key))
            for key, inner in list(value.items())[:_MOST]
        }
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Upload):
        return f"({value.size} bytes)"
    if isinstance(value, Sequence):
        return _items(list(value)[:_MOST])
    return value


def _items(values: Sequence[Any]) -> list[Any]:
    """Words of a command, too: after `--token` and `--token=` comes a secret."""
    found: list[Any] = []
    before = ""
    for value in values:
        secret = isinstance(value, str) and before.startswith("-") and names_a_secret(before)
        found.append(MASKED if secret and "=" not in before else masked(value))
        before = value if isinstance(value, str) else ""
    return found


def _text(value: str) -> str:
    name, equals, _ = value.partition("=")
    word = equals and len(name) < _LONGEST and not any(it.isspace() for it in name)
    if word and names_a_secret(name):
        return f"{name}={MASKED}"
    if len(value) > _LONGEST:
        return f"{value[:64]}... ({len(value)} characters)"
    return value
