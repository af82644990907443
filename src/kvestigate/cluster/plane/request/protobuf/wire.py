"""The encoding itself: numbered fields, whatever they mean."""

from __future__ import annotations

import struct

from kvestigate.kube import pauses

Value = int | float | bytes

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Malformed(Exception):
    """Not protobuf, or cut short; the text is the one Go's decoder has for it."""


def fields(data: bytes) -> list[tuple[int, Value]]:
    """The fields of a message in the order they were sent."""
    decoded: list[tuple[int, Value]] = []
    at, end = 0, len(data)
    try:
        while at < end:
            pauses.rest_if_due()
            tag, at = _varint(data, at) if data[at] > 0x7F else (data[at], at + 1)
            wire = tag & 7
            if tag < 8:
                raise Malformed(f"proto: illegal tag 0 (wire type {wire})")
            if wire == _BYTES:
                # Most lengths are a single byte, and most fields have one.
                size, start = _varint(data, at) if data[at] > 0x7F else (data[at], at + 1)
                at = start + size
                decoded.append((tag >> 3, data[start:at]))
            elif wire == _VARINT:
                number, at = _varint(data, at)
                decoded.append((tag >> 3, number))
            elif wire == _FIXED64:
                decoded.append((tag >> 3, struct.unpack_from("<d", data, at)[0]))
                at += 8
            elif wire == _FIXED32:
                decoded.append((tag >> 3, struct.unpack_from("<f", data, at)[0]))
                at += 4
            else:
                raise Malformed(f"proto: illegal wireType {wire}")
    except (IndexError, struct.error):
        raise Malformed("unexpected EOF") from None
    if at != end:
        raise Malformed("unexpected EOF")
    return decoded


def packed(data: bytes) -> list[int]:
    """Numbers one after the other, without a tag for each."""
    decoded, at = [], 0
    try:
        while at < len(data):
            number, at = _varint(data, at)
            decoded.append(number)
    except IndexError:
        raise Malformed("unexpected EOF") from None
    return decoded


def signed(number: int) -> int:
    """A negative number is sent as its 64-bit two's complement."""
    return number - (1 << 64) if number >> 63 else number


def text(data: bytes) -> str:
    # Go keeps bytes that are no UTF-8 in its strings and replaces them when it writes JSON.
    return data.decode("utf-8", "replace")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    number, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at + 1
        shift += 7
        if shift >= 70:
            raise Malformed("proto: integer overflow")
