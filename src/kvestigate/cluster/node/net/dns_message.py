"""DNS messages as far as a cluster's names need them (RFC 1035). Pure."""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from socket import AF_INET, inet_pton

_HEADER = struct.Struct("!6H")
_RESPONSE, _AUTHORITATIVE, _TRUNCATED, _RECURSION = 0x8000, 0x0400, 0x0200, 0x0080
_ASKED_RECURSION, _OPCODE = 0x0100, 0x7800
_INTERNET, _ANY_CLASS = 1, 255
_OPTIONS = 41
"""The pseudo-record by which a client says how long a datagram may be."""
_OWNER = b"\xc0\x0c"
"""A pointer to the question's name."""
PLAIN_LIMIT = 512
LIMIT = 1232
"""Bytes of a datagram when the client takes more than the plain limit."""


class Type(enum.IntEnum):
    A = 1
    CNAME = 5
    SOA = 6
    PTR = 12
    AAAA = 28
    SRV = 33
    ANY = 255


class Code(enum.IntEnum):
    """How a question was answered."""

    OK = 0
    FORMAT_ERROR = 1
    FAILED = 2
    NO_SUCH_NAME = 3
    NOT_IMPLEMENTED = 4


class BadMessage(Exception):
    """Bytes that are no question."""


@dataclass(frozen=True, slots=True)
class Question:
    id: int
    name: str
    """In small letters, without the last dot."""
    type: int
    raw: bytes
    """The question section as it came: clients compare it, letter case included."""
    recursion: bool = True
    limit: int = PLAIN_LIMIT
    """Bytes that the client takes in a datagram."""
    extended: bool = False
    opcode: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """`data` is as it goes over the wire."""

    type: int
    data: bytes
    name: str = ""
    """Empty: the question's own."""
    ttl: int = 5


def a(ip: str, name: str = "") -> Record:
    return Record(Type.A, inet_pton(AF_INET, ip), name)


def named(type: Type, target: str, name: str = "") -> Record:
    """A CNAME or PTR."""
    return Record(type, encode_name(target), name)


def srv(port: int, target: str, *, weight: int) -> Record:
    return Record(Type.SRV, struct.pack("!HHH", 0, weight, port) + encode_name(target))


def soa(zone: str) -> Record:
    """How long an absence may be remembered: as long as a presence."""
    numbers = struct.pack("!5I", 1, 7200, 1800, 86400, 5)
    data = encode_name(f"ns.dns.{zone}") + encode_name(f"hostmaster.{zone}") + numbers
    return Record(Type.SOA, data, zone)


def read_question(message: bytes) -> Question:
    """The one question of a query; `BadMessage` for anything else."""
    if len(message) < _HEADER.size:
        raise BadMessage("shorter than a header")
    number, flags, questions, _, _, additional = _HEADER.unpack_from(message)
    if flags & _RESPONSE or questions != 1:
        raise BadMessage("not one question")
    name, end = _read_name(message, _HEADER.size)
    if len(message) < end + 4:
        raise BadMessage("the question is cut off")
    wanted, kind = struct.unpack_from("!HH", message, end)
    if kind not in (_INTERNET, _ANY_CLASS):
        raise BadMessage("not of the internet")
    limit = _extended_limit(message, end + 4) if additional else None
    return Question(
        id=number,
        name=name.lower(),
        type=wanted,
        raw=message[_HEADER.size : end + 4],
        recursion=bool(flags & _ASKED_RECURSION),
        limit=min(max(limit or 0, PLAIN_LIMIT), LIMIT),
        extended=limit is not None,
        opcode=(flags & _OPCODE) >> 11,
    )


def _extended_limit(message: bytes, at: int) -> int | None:
    """What the first additional record says, if it is about that."""
    if len(message) < at + 11 or message[at] != 0:
        return None
    kind, size = struct.unpack_from("!HH", message, at + 1)
    return size if kind == _OPTIONS else None


def _read_name(message: bytes, at: int) -> tuple[str, int]:
    """A name, and where it ends. In the first name of a message nothing can be pointed at."""
    labels: list[str] = []
    length = 0
    while True:
        if at >= len(message):
            raise BadMessage("the name is cut off")
        size = message[at]
        at += 1
        if size == 0:
            return ".".join(labels), at
        length += size + 1
        if size > 63 or length > 254 or at + size > len(message):
            raise BadMessage("no proper name")
        labels.append(message[at : at + size].decode("latin-1"))
        at += size


def encode_name(name: str) -> bytes:
    labels = [label.encode("latin-1") for label in name.rstrip(".").split(".") if label]
    return b"".join(bytes((len(label),)) + label for label in labels) + b"\0"


def response(
    question: Question,
    code: Code,
    answers: Sequence[Record] = (),
    authority: Sequence[Record] = (),
    *,
    limit: int | None = None,
) -> bytes:
    """The answer; with a `limit`, one that is longer says only that it was cut."""
    flags = _RESPONSE | _AUTHORITATIVE | _RECURSION | code
    if question.recursion:
        flags |= _ASKED_RECURSION
    options = b"\0" + struct.pack("!HHIH", _OPTIONS, LIMIT, 0, 0) if question.extended else b""
    body = b"".join(map(_encode, (*answers, *authority)))
    counts = (1, len(answers), len(authority), int(question.extended))
    whole = _HEADER.pack(question.id, flags, *counts) + question.raw + body + options
    if limit is None or len(whole) <= limit:
        return whole
    counts = (1, 0, 0, int(question.extended))
    return _HEADER.pack(question.id, flags | _TRUNCATED, *counts) + question.raw + options


def failure(message: bytes, code: Code) -> bytes:
    """The answer to a message of which little could be read."""
    number = message[:2].ljust(2, b"\0")
    return number + struct.pack("!5H", _RESPONSE | code, 0, 0, 0, 0)


def _encode(record: Record) -> bytes:
    owner = encode_name(record.name) if record.name else _OWNER
    fields = struct.pack("!HHIH", record.type, _INTERNET, record.ttl, len(record.data))
    return owner + fields + record.data


def read_records(message: bytes) -> list[Record]:
    """The answers of another server's response that are addresses or aliases.

    Raises `BadMessage`.
    """
    if len(message) < _HEADER.size:
        raise BadMessage("shorter than a header")
    _, _, questions, answers, _, _ = _HEADER.unpack_from(message)
    at = _HEADER.size
    for _ in range(questions):
        at = _skip_name(message, at) + 4
    found = []
    for _ in range(answers):
        at = _skip_name(message, at)
        if len(message) < at + 10:
            raise BadMessage("a record is cut off")
        kind, _, ttl, size = struct.unpack_from("!HHIH", message, at)
        at += 10
        if kind in (Type.A, Type.AAAA):
            found.append(Record(kind, message[at : at + size], ttl=ttl))
        at += size
    return found


def _skip_name(message: bytes, at: int) -> int:
    while at < len(message):
        size = message[at]
        if size == 0:
            return at + 1
        if size & 0xC0:
            return at + 2
        at += size + 1
    raise BadMessage("the name is cut off")
