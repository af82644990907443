"""Values that JSON writes as one scalar and protobuf as a message."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import msgspec

from kvestigate.cluster.plane.request.protobuf.wire import Malformed, Value, fields, signed, text


def quantity(data: bytes) -> str:
    return text(_bytes(dict(fields(data)).get(1, b"0")))


def int_or_string(data: bytes) -> int | str:
    sent = dict(fields(data))
    if sent.get(1):
        return text(_bytes(sent.get(3, b"")))
    return signed(_int(sent.get(2, 0)))


def time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else f"{moment.isoformat(timespec='seconds')}Z"


def micro_time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else f"{moment.isoformat(timespec='microseconds')}Z"


def _moment(data: bytes) -> datetime | None:
    sent = dict(fields(data))
    seconds, nanos = signed(_int(sent.get(1, 0))), signed(_int(sent.get(2, 0)))
    if not seconds and not nanos:
        return None  # how Go sends a time that was never set
    try:
        moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=nanos // 1000)
    except (ValueError, OverflowError, OSError):
        raise Malformed(f"time out of range: {seconds}s {nanos}ns") from None
    return moment.replace(tzinfo=None)


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def raw_json(data: bytes) -> Any:
    """JSON inside protobuf: managed fields, extensions, a schema's defaults."""
    raw = _bytes(dict(fields(data)).get(1, b""))
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"invalid JSON: {error}") from None


def _int(value: Value) -> int:
    if not isinstance(value, int):
        raise Malformed("proto: wrong wireType for a number")
    return value


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed("proto: wrong wireType for bytes")
    return value
