"""Splitting a stream of pieces into its lines, wherever the pieces were cut. Pure."""

from __future__ import annotations


class Lines:
    """`feed` pieces, get the lines that they complete, without their newlines."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        # A long line comes in many pieces: they are joined once, not each time.
        first, *more = piece.split(b"\n")
        self._pending.append(first)
        if not more:
            return []
        lines = [b"".join(self._pending), *more[:-1]]
        self._pending = [more[-1]]
        return lines

    def rest(self) -> bytes:
        """What came after the last newline."""
        return b"".join(self._pending)
