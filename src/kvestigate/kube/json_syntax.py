"""What is wrong with a text that is no JSON, in the words that Go has for it.

API servers pass these words on, and people search for them. Decoding itself is done by a
fast decoder; this one only looks for the first mistake of a text that one has refused.
"""

from __future__ import annotations

import re

_BLANKS = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
"""What stands for itself in a string."""
_B = r"[ \t\r\n]*+"
_STRING = r'"[^"\\\x00-\x1f]*+"'
_SCALAR = rf"(?:{_STRING}|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?|true|false|null)"
# No possessive groups, which Python before 3.11.5 gets wrong; so not all at once, either, because
# it remembers the way back through every one of them.
_MEMBERS = re.compile(rf"(?:{_B}{_STRING}{_B}:{_B}{_SCALAR}{_B},){{0,1000}}")
"""Of an object, each with the comma after which another must follow: some that are simple."""
_ELEMENTS = re.compile(rf"(?:{_B}{_SCALAR}{_B},){{0,1000}}")
"""Of a list, likewise."""
_DIGITS = "0123456789"
_DECIMAL = re.compile("[0-9]*")
_HEX = "0123456789abcdefABCDEF"
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_ESCAPES = 'bfnrt\\/"'
END = "unexpected end of JSON input"
_DEPTH = 10_000
"""Objects and lists inside one another that Go puts up with."""


class _Wrong(Exception):
    """Ends the search."""


def complaint(text: str) -> str:
    """`invalid character 'o' in literal null (expecting 'u')`; empty if the text is JSON."""
    search = _Search(text)
    try:
        search.document()
    except _Wrong as wrong:
        return str(wrong)
    return ""


class _Search:
    """Reads a text until it meets what should not be there."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> None:
        # What is open is kept on a list of its own: a text may nest deeper than calls can.
        open_: list[str] = []
        while True:
            if self._opens(open_):
                continue
            while open_:
                if not self._closes_after(open_[-1]):
                    break
                open_.pop()
            else:
                break
        self._skip_blanks()
        if self._at < len(self._text):
            raise self._unexpected("after top-level value")

    def _opens(self, open_: list[str]) -> bool:
        """Read a value; whether it is an object or list of which an element must follow."""
        char = self._next()
        if char not in "{[":
            self._scalar(char)
            return False
        if len(open_) >= _DEPTH:
            raise self._unexpected("exceeded max depth", back=1)
        end = "}" if char == "{" else "]"
        if self._closes(end):
            return False
        open_.append(end)
        if end == "}":
            self._key()
        return True

    def _closes_after(self, end: str) -> bool:
        """After an element: whether its object or list ends, else another one must follow."""
        char = self._next()
        if char == end:
            return True
        if char != ",":
            after = "after object key:value pair" if end == "}" else "after array element"
            raise self._unexpected(after, back=1)
        if end == "}":
            self._skip(_MEMBERS)
            self._key()
        else:
            self._skip(_ELEMENTS)
        return False

    def _closes(self, end: str) -> bool:
        self._skip_blanks()
        if self._text[self._at : self._at + 1] != end:
            return False
        self._at += 1
        return True

    def _key(self) -> None:
        if self._next() != '"':
            raise self._unexpected("looking for beginning of object key string", back=1)
        self._string()
        if self._next() != ":":
            raise self._unexpected("after object key", back=1)

    def _scalar(self, char: str) -> None:
        if char == '"':
            self._string()
        elif char in _LITERALS:
            self._literal(_LITERALS[char])
        elif char == "-" or char in _DIGITS:
            self._number(char)
        else:
            raise self._unexpected("looking for beginning of value", back=1)

    def _literal(self, word: str) -> None:
        for expected in word[1:]:
            if self._take() != expected:
                raise self._unexpected(f"in literal {word} (expecting '{expected}')", back=1)

    def _string(self) -> None:
        while True:
            self._skip(_PLAIN)
            char = self._take()
            if char == '"':
                return
            if char != "\\":
                raise self._unexpected("in string literal", back=1)
            self._escape()

    def _escape(self) -> None:
        char = self._take()
        if char == "u":
            for _ in range(4):
                if self._take() not in _HEX:
                    raise self._unexpected("in \\u hexadecimal character escape", back=1)
        elif char not in _ESCAPES:
            raise self._unexpected("in string escape code", back=1)

    def _number(self, char: str) -> None:
        if char == "-":
            char = self._digit("in numeric literal")
        if char != "0":
            self._digits()
        if self._peek() == ".":
            self._at += 1
            self._digit("after decimal point in numeric literal")
            self._digits()
        if self._peek() in ("e", "E"):
            self._at += 1
            if self._peek() in ("+", "-"):
                self._at += 1
            self._digit("in exponent of numeric literal")
            self._digits()

    def _digit(self, where: str) -> str:
        char = self._take()
        if char not in _DIGITS:
            raise self._unexpected(where, back=1)
        return char

    def _digits(self) -> None:
        self._skip(_DECIMAL)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        if self._at >= len(self._text):
            raise _Wrong(END)
        self._at += 1
        return self._text[self._at - 1]

    def _next(self) -> str:
        """The next character that is not blank."""
        self._skip_blanks()
        return self._take()

    def _skip_blanks(self) -> None:
        self._skip(_BLANKS)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        while (match := pattern.match(self._text, self._at)) and match.end() > self._at:
            self._at = match.end()

    def _unexpected(self, where: str, back: int = 0) -> _Wrong:
        return _Wrong(f"invalid character {_quoted(self._text[self._at - back])} {where}")


def _quoted(char: str) -> str:
    """A character as Go quotes it."""
    if char == "'":
        return r"'\''"
    if char == '"':
        return "'\"'"
    if char.isprintable() or char in "\t\r\n":
        return repr(char)
    return f"'\\x{ord(char):02x}'" if char <= "\x7f" else f"'\\u{ord(char):04x}'"
