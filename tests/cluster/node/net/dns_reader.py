"""DNS messages written and read by hand, to hold the server against another reader than its own."""

from __future__ import annotations

import struct
from typing import NamedTuple

from dns.rdatatype import RdataType


def query(name: str, kind: int = RdataType.A, *, extended: int = 0, id: int = 7) -> bytes:
    header = struct.pack("!6H", id, 0x0100, 1, 0, 0, 1 if extended else 0)
    options = b"\0" + struct.pack("!HHIH", 41, extended, 0, 0) if extended else b""
    labels = [label.encode() for label in name.split(".")]
    written = b"".join(bytes((len(label),)) + label for label in labels) + b"\0"
    return header + written + struct.pack("!HH", kind, 1) + options


class Read(NamedTuple):
    id: int
    flags: int
    answers: list[tuple[str, int, bytes]]
    authority: list[tuple[str, int, bytes]]


def read(message: bytes) -> Read:
    """A response in full, pointers followed."""
    number, flags, questions, answers, authority, _ = struct.unpack_from("!6H", message)
    at = 12
    for _ in range(questions):
        _, at = name_at(message, at)
        at += 4
    sections: list[list[tuple[str, int, bytes]]] = []
    for count in (answers, authority):
        found = []
        for _ in range(count):
            name, at = name_at(message, at)
            kind, _, _, size = struct.unpack_from("!HHIH", message, at)
            found.append((name, kind, message[at + 10 : at + 10 + size]))
            at += 10 + size
        sections.append(found)
    return Read(number, flags, sections[0], sections[1])


def name_at(message: bytes, at: int) -> tuple[str, int]:
    labels: list[str] = []
    while (size := message[at]) != 0:
        if size & 0xC0:
            rest, _ = name_at(message, struct.unpack_from("!H", message, at)[0] & 0x3FFF)
            return ".".join([*labels, rest]), at + 2
        labels.append(message[at + 1 : at + 1 + size].decode("latin-1"))
        at += 1 + size
    return ".".join(labels), at + 1
