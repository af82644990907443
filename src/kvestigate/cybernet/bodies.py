"""JSON in pieces: texts stay in memory, the files among them are on disk. Bounded in both."""

from __future__ import annotations

import base64
import binascii
import errno
import re
import secrets
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import msgspec

from kvestigate.cybernet.refusals import (
    ConstraintViolated,
    Malformed,
    Refused,
    TooLarge,
    Unavailable,
)
from kvestigate.kube import pauses
from kvestigate.workspace.uploads import Upload, in_background

MOST_TEXT = 1024 * 1024
"""Bytes of a request that are no file."""
_LONG_TEXT = 64 * 1024
"""Bytes that are decoded beside the loop if there are more."""
MOST_FILES = 16 * 1024 * 1024 * 1024
"""Bytes of the files that all requests together have on disk."""
DEEPEST = 64
"""Levels of a value: nothing that is asked for has nearly as many, and each costs a call."""
MOST_VALUES = 4_000
"""Members and items of a request: each is looked at while others wait."""
FIELD = "archive"
"""The parameter that is a file, as base64."""

# Quotes inside of a string are escaped, and only the name of a member is followed by a colon: in
# what is JSON, this is found nowhere else.
_NAME = b'"archive"'
_BEFORE_FILE = re.compile(rb'(?<!\\)"archive"[ \t\r\n]{0,32}:[ \t\r\n]{0,32}"')
_LOOK_BACK = 128
"""Bytes that this may have."""


_ENCODED = 3 << 16
"""Bytes of a file that are sent at once; a multiple of three, so that base64 has no gaps."""
NOTHING = object()
"""The value of a body that is empty."""


class Room:
    """The disk that the files of all requests share."""

    def __init__(self, most: int = MOST_FILES) -> None:
        self._left = most

    def take(self, count: int) -> None:
        if count > self._left:
            raise OSError(errno.ENOSPC, "too much is being sent at once")
        self._left -= count

    def give_back(self, count: int) -> None:
        self._left += count


class _File(Upload):
    """A file that takes its place in the room until it is closed."""

    def __init__(self, room: Room) -> None:
        self._room = room
        super().__init__()

    def write(self, piece: bytes) -> None:
        self._room.take(len(piece))
        super().write(piece)

    def close(self) -> None:
        super().close()
        self._room.give_back(self.size)
        self.size = 0


class _Base64:
    """Decodes what comes in pieces. A slash may be escaped: some programs do that."""

    def __init__(self, file: Upload) -> None:
        self._file = file
        self._rest = b""
        self._ended = False

    def feed(self, piece: bytes) -> None:
        """binascii.Error if it is no base64."""
        data = self._rest + piece
        if b"\\" in data:
            data = data.replace(b"\\/", b"/")
        ready = len(data) - data.endswith(b"\\")  # what that escapes is yet to come
        cut = ready - ready % 4
        self._rest = data[cut:]
        if cut and self._ended:
            raise binascii.Error("more follows its end")
        self._ended = self._ended or data[cut - 1 : cut] == b"="
        self._file.write(binascii.a2b_base64(data[:cut], strict_mode=True))

    def end(self) -> None:
        if self._rest:
            raise binascii.Error("its end is missing")


class Answer:
    """A result as JSON, of which the file, if there is one, stays on disk until it is sent."""

    def __init__(self, result: Any, room: Room) -> None:
        """Unavailable if there is no room for the file until it is sent."""
        self._mark = secrets.token_hex(16)
        self._room = room
        self._taken = 0
        self.file: Upload | None = None
        text = msgspec.json.encode(result, enc_hook=self._leave_out)
        self._before, _, self._after = text.partition(self._mark.encode())

    @property
    def whole(self) -> bytes:
        """All of it, in memory."""
        return b"".join((self._before, *self._encoded(), self._after))

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        yield self._before
        pieces = self._encoded()
        while piece := await in_background(next, pieces, b""):
            yield piece
        yield self._after

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
        self._room.give_back(self._taken)
        self._taken = 0

    def _leave_out(self, value: Any) -> str:
        if not isinstance(value, Upload) or self.file is not None:
            raise NotImplementedError(type(value))
        try:
            self._room.take(value.size)
        except OSError as error:
            value.close()
            raise Unavailable(f"no room for the answer: {error.strerror}", "answer") from None
        self.file, self._taken = value, value.size
        return self._mark

    def _encoded(self) -> Iterator[bytes]:
        source = None if self.file is None else self.file.opened()
        while source is not None and (piece := source.read(_ENCODED)):
            yield base64.b64encode(piece)


class Body:
    """One JSON text. What is wrong with it is told when all of it has come."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._text = bytearray()
        self._searched = 0
        """How much of the text has no file in it."""
        self._decoder: _Base64 | None = None
        """While a file comes."""
        self._file: Upload | None = None
        self._mark = secrets.token_hex(16)
        """What stands in the text for the file."""
        self._refusal: Refused | None = None
        self._values = 0
        """Members and items that were looked at."""

    def write(self, piece: bytes) -> None:
        try:
            while piece and self._refusal is None:
                if self._decoder is None:
                    piece = self._text_part(piece)
                else:
                    piece = self._file_part(piece, self._decoder)
        except OSError as error:
            why = f"a file cannot be kept: {error.strerror}"
            self.refuse(Unavailable(why, "body", hint="try again when less is being sent"))

    def refuse(self, refusal: Refused) -> None:
        """Take no more of it; why is told in place of its value."""
        self._refusal = refusal
        self._text.clear()

    async def value(self) -> Any:
        """Decoded, with the file in its place; NOTHING if it is empty.

        Refused if it is no JSON, or too much of it.
        """
        if len(self._text) > _LONG_TEXT:
            return await in_background(self._value)
        return self._value()

    def _value(self) -> Any:
        if self._refusal is not None:
            raise self._refusal
        if not self._text.strip():
            return NOTHING
        try:
            found = msgspec.json.decode(self._text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Malformed(f"the body is not JSON: {error}", "body") from None
        return self.filled(found)

    @property
    def text(self) -> bytes:
        """The JSON as it came, with a mark in place of the file."""
        return bytes(self._text)

    def discard(self) -> None:
        """Blank out a text that was refused: another parser might make something of it."""
        self._text = bytearray(b" ") * len(self._text)

    def filled(self, value: Any) -> Any:
        """The value with the file in place of its mark; Refused if it is too deep or too large."""
        self._values = 0
        return self._filled(value, DEEPEST)

    def release(self) -> None:
        """The file belongs to another identity to close from now on."""
        self._file = None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _text_part(self, piece: bytes) -> bytes:
        """Take what comes before a file; the rest."""
        self._text += piece
        found = self._beginning_of_file()
        if found is None:
            self._searched = max(self._searched, len(self._text) - _LOOK_BACK)
            self._check_length()
            return b""
        rest = bytes(self._text[found.end() :])
        del self._text[found.end() :]
        self._check_length()
        self._begin_file()
        return rest

    def _beginning_of_file(self) -> re.Match[bytes] | None:
        """Looks for the name first: that is fifty times as fast as the expression."""
        at = self._text.find(_NAME, self._searched)
        while at >= 0:
            if (found := _BEFORE_FILE.match(self._text, at)) is not None:
                return found
            at = self._text.find(_NAME, at + 1)
        return None

    def _check_length(self) -> None:
        if len(self._text) > MOST_TEXT:
            self.refuse(
                TooLarge(
                    f"what is no {FIELD} is longer than {MOST_TEXT} bytes",
                    "body",
                    hint="send files with workspace.sync",
                )
            )

    def _begin_file(self) -> None:
        if self._file is not None:
            self.refuse(ConstraintViolated(f"{FIELD}: is given twice", FIELD))
            return
        self._text += self._mark.encode()
        self._searched = len(self._text)
        self._file = _File(self._room)
        self._decoder = _Base64(self._file)

    def _file_part(self, piece: bytes, decoder: _Base64) -> bytes:
        """Take what is of the file; the rest, which begins with the quote that ends it."""
        end = piece.find(b'"')
        try:
            decoder.feed(piece if end < 0 else piece[:end])
            if end < 0:
                return b""
            decoder.end()
        except binascii.Error as error:
            self.refuse(ConstraintViolated(f"{FIELD}: is no base64: {error}", FIELD))
            return b""
        self._decoder = None
        return piece[end:]

    def _filled(self, found: Any, levels: int) -> Any:
        if not levels:
            raise Malformed(f"the body is nested more than {DEEPEST} levels deep", "body")
        pauses.rest_if_due()
        if isinstance(found, dict | list):
            self._values += len(found)
            if self._values > MOST_VALUES:
                raise TooLarge(f"the body has more than {MOST_VALUES:,} values", "body")
        if isinstance(found, dict):
            return {name: self._filled(it, levels - 1) for name, it in found.items()}
        if isinstance(found, list):
            return [self._filled(it, levels - 1) for it in found]
        return self._file if found == self._mark else found
