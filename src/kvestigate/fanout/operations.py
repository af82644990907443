"""The operations of fan-out."""

from __future__ import annotations

from kvestigate.fanout import execute, fetch, push, resolve
from kvestigate.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    resolve.OPERATION,
    execute.OPERATION,
    fetch.OPERATION,
    push.OPERATION,
)
