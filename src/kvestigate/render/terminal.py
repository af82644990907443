"""Blocks as coloured text for a terminal: columns are folded to its width, nothing is cut.

Texts are folded between words only: names that are broken cannot be copied. A table whose names
need more columns than the terminal has shows the last of its columns below each row, by title.
"""

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
_NARROWEST = 8
"""The minimum width of a column."""
_INDENT = "    "
"""Before what is shown below a row."""


def to_terminal(blocks: Sequence[Block], *, width: int, wide: bool = False) -> str:
    """The blocks with colour codes, separated by empty lines, folded to `width` columns."""
    return "\n".join("".join(_lines(block, width, wide=wide)) for block in blocks)


def _lines(block: Block, width: int, *, wide: bool) -> Iterator[str]:
    if isinstance(block, Text):
        cell = as_cell(block.shown)
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
    least = [max(_longest_word(cell.text) for cell in column) for column in zip(*flat, strict=True)]
    beside = _beside(least, natural, width)
    widths = fitted(natural[:beside], width - len(_GAP) * (beside - 1), least[:beside])
    for number, row in enumerate(flat):
        if widths == natural[:beside]:
            yield _line(row[:beside], columns[:beside], widths)
        else:
            yield from _folded_row(row[:beside], columns[:beside], widths)
        if number:
            yield from _below(row[beside:], columns[beside:], width)


def _beside(least: Sequence[int], natural: Sequence[int], width: int) -> int:
    """How many columns stand beside each other; all, if `fitted` can fold them to the width."""
    if sum(natural) + len(_GAP) * (len(natural) - 1) <= width:
        return len(natural)
    used = 0
    for number, (words, wanted) in enumerate(zip(least, natural, strict=True)):
        used += max(words, min(wanted, _NARROWEST)) + (len(_GAP) if number else 0)
        if used > width:
            return max(number, 1)
    return len(least)


def _below(cells: Sequence[Cell], columns: Sequence[Column], width: int) -> Iterator[str]:
    for cell, column in zip(cells, columns, strict=True):
        if cell.text in ("", "-"):
            continue
        title = f"{column.title}: "
        indent = " " * (len(_INDENT) + len(title))
        room = max(width - len(indent), _NARROWEST)
        for number, piece in enumerate(_folded(cell.text, room)):
            start = f"{_INDENT}{_coloured(title, Tone.DIM)}" if not number else indent
            yield f"{start}{_coloured(piece, cell.tone)}".rstrip() + "\n"


def _flat(cell: Cell) -> Cell:
    if "\n" in cell.text or "\t" in cell.text:
        return Cell(one_line(cell.text).replace("\t", " "), cell.tone)
    return cell


def fitted(natural: Sequence[int], room: int, least: Sequence[int] = ()) -> list[int]:
    """Widths with a sum of `room` if possible: the widest columns are cut to the same width.

    No column becomes narrower than in `least`, the width of its longest word.
    """
    if sum(natural) <= room:
        return list(natural)
    least = least or [0] * len(natural)

    def cut_to(level: int) -> list[int]:
        return [
            max(min(wanted, level), words) for wanted, words in zip(natural, least, strict=True)
        ]

    levels = range(_NARROWEST, max(natural) + 1)
    at = bisect.bisect_right(levels, room, key=lambda level: sum(cut_to(level))) - 1
    level = _NARROWEST + max(at, 0)
    widths = cut_to(level)
    cut = [index for index, wanted in enumerate(natural) if wanted > level >= least[index]]
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
    """Lines of at most `width` columns, folded between words; a longer word has its own line.

    Scripts that have no spaces between words are folded anywhere.
    """
    if _columns(words) <= width:
        return [words]
    lines: list[str] = []
    for word in words.split(" "):
        if lines and _columns(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        elif word.isascii():
            lines.append(word)
        else:
            lines += _cut(word, width)
    return lines


def _cut(word: str, width: int) -> list[str]:
    lines = [""]
    for character in word:
        if _columns(lines[-1] + character) > width:
            lines.append("")
        lines[-1] += character
    return lines


def _longest_word(words: str) -> int:
    """The columns below which the text cannot be folded."""
    return max((_columns(word) for word in words.split(" ") if word.isascii()), default=0)


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
