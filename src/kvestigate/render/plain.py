"""Blocks as plain text, for pipes and files: aligned columns, no borders, nothing cut off."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.render.blocks import Block, Cell, Facts, Table, Text, as_cell, one_line, printable

_GAP = "   "


def to_text(blocks: Sequence[Block], *, wide: bool = False) -> str:
    """The blocks, separated by empty lines, with a newline at the end."""
    parts = [part for part in (_block(block, wide=wide) for block in blocks) if part]
    return "\n\n".join(parts) + "\n" if parts else ""


def _block(block: Block, *, wide: bool) -> str:
    if isinstance(block, Text):
        return as_cell(block.shown).text
    if isinstance(block, Facts):
        return _align([row for name, value in block.pairs for row in _fact(name, value)])
    return _table(block, wide=wide)


def _fact(name: str, value: str | Cell) -> list[list[str]]:
    """One row for each line of the value; the first has the name."""
    first, *more = as_cell(value).text.rstrip("\n").split("\n")
    return [[f"{printable(name)}:", first], *(["", line] for line in more)]


def _table(table: Table, *, wide: bool) -> str:
    if not table.rows and table.empty:
        return printable(table.empty)
    columns, rows = table.visible(wide=wide)
    header = [column.title.upper() for column in columns]
    return _align([header, *([cell.text for cell in row] for row in rows)])


def _align(rows: Sequence[Sequence[str]]) -> str:
    lines = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    return "\n".join(
        _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
