"""Blocks as coloured text for a terminal: columns are folded to its width, nothing is cut."""

from __future__ import annotations

import bisect
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from kvestigate.render.blocks import (
    Block,
    Cell,
    Column,
    Facts,
    Table,
    Text,
    Tone,
    as_cell,
    one_line,
    printable,
)

_CODES = {
    Tone.PLAIN: "",
    Tone.STRONG: "1",
    Tone.DIM: "2",
    Tone.GOOD: "32",
    Tone.WARN: "33",
    Tone.BAD: "1;31",
}
_GAP = "  "
_MARKS = "-/._,:@="
"""Long names may be folded after these characters."""
_NARROWEST = 8
"""The minimum width of a column."""


def to_terminal(blocks: Sequence[Block], *, width: int, wide: bool = False) -> str:
    """The blocks with colour codes, separated by empty lines, folded to `width` columns."""
    return "\n".join("".join(_lines(block, width, wide=wide)) for block in blocks)


def _lines(block: Block, width: int, *, wide: bool) -> Iterator[str]:
    if isinstance(block, Text):
        cell = as_cell(block.cell)
        # Only the first line is coloured; the lines after it explain it.
        first, newline, rest = cell.text.partition("\n")
        yield f"{_coloured(first, cell.tone)}{newline}{rest}\n"
    elif isinstance(block, Facts):
        yield from _facts(block, width)
    elif not block.rows and block.empty:
        yield f"{printable(block.empty)}\n"
    else:
        yield from _table(block, width, wide=wide)


def _facts(facts: Facts, width: int) -> Iterator[str]:
    named = [(f"{printable(name)}:", as_cell(value)) for name, value in facts.pairs]
    indent = max((_columns(name) for name, _ in named), default=0) + len(_GAP)
    room = max(width - indent, _NARROWEST)
    for name, value in named:
        folded = [piece for line in value.text.split("\n") for piece in _folded(line, room)]
        for index, piece in enumerate(folded):
            start = _coloured(name, Tone.DIM) if index == 0 else ""
            gap = " " * (indent - (_columns(name) if index == 0 else 0))
            yield f"{start}{gap}{_coloured(piece, value.tone)}".rstrip() + "\n"


def _table(table: Table, width: int, *, wide: bool) -> Iterator[str]:
    columns, rows = table.visible(wide=wide)
    header = [Cell(column.title.upper(), Tone.STRONG) for column in columns]
    flat = [header, *([_flat(cell) for cell in row] for row in rows)]
    natural = [max(_columns(cell.text) for cell in column) for column in zip(*flat, strict=True)]
    widths = fitted(natural, width - len(_GAP) * (len(columns) - 1))
    cramped = widths != natural
    for row in flat:
        if cramped:
            yield from _folded_row(row, columns, widths)
        else:
            yield _line(row, columns, widths)


def _flat(cell: Cell) -> Cell:
    if "\n" in cell.text or "\t" in cell.text:
        return Cell(one_line(cell.text).replace("\t", " "), cell.tone)
    return cell


def fitted(natural: Sequence[int], room: int) -> list[int]:
    """Widths with a sum of `room` if possible: the widest columns are cut to the same width."""
    if sum(natural) <= room:
        return list(natural)

    def total(level: int) -> int:
        return sum(min(wanted, level) for wanted in natural)

    levels = range(_NARROWEST, max(natural) + 1)
    level = _NARROWEST + max(bisect.bisect_right(levels, room, key=total) - 1, 0)
    widths = [min(wanted, level) for wanted in natural]
    cut = [index for index, wanted in enumerate(natural) if wanted > level]
    for index in cut[: max(room - sum(widths), 0)]:
        widths[index] += 1
    return widths


def _folded_row(row: list[Cell], columns: list[Column], widths: list[int]) -> Iterator[str]:
    pieces = [_folded(cell.text, width) for cell, width in zip(row, widths, strict=True)]
    for line in zip_longest(*pieces, fillvalue=""):
        cells = [Cell(piece, cell.tone) for piece, cell in zip(line, row, strict=True)]
        yield _line(cells, columns, widths)


def _line(row: list[Cell], columns: list[Column], widths: list[int]) -> str:
    shown = []
    for cell, column, width in zip(row, columns, widths, strict=True):
        blank = " " * (width - _columns(cell.text))
        words = _coloured(cell.text, cell.tone)
        shown.append(f"{blank}{words}" if column.number else f"{words}{blank}")
    return _GAP.join(shown).rstrip() + "\n"


def _folded(words: str, width: int) -> list[str]:
    """Lines of at most `width` columns, folded between words or after marks in long names."""
    if _columns(words) <= width:
        return [words]
    if words.isascii():
        return list(_broken(words, width))
    lines = [""]
    for character in words:
        if _columns(lines[-1] + character) > width:
            lines.append("")
        lines[-1] += character
    return lines


def _broken(words: str, width: int) -> Iterator[str]:
    while len(words) > width:
        at = _break(words, width)
        yield words[:at].rstrip()
        words = words[at:].lstrip()
    yield words


def _break(words: str, width: int) -> int:
    """Where to fold: at the last space, else after the last mark in the second half."""
    space = words.rfind(" ", 1, width + 1)
    if space > 0:
        return space
    return max(words.rfind(mark, width // 2, width) for mark in _MARKS) + 1 or width


def _coloured(words: str, tone: Tone) -> str:
    code = _CODES[tone]
    return f"\x1b[{code}m{words}\x1b[0m" if code and words else words


def _columns(words: str) -> int:
    """The number of terminal columns: 2 for wide characters, 0 for combining ones."""
    if words.isascii():
        return len(words)
    return sum(_room_of(character) for character in words)


def _room_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
