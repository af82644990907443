"""Blocks as HTML. PURE. Everything that came from elsewhere is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kvestigate.render.blocks import Block, Cell, Facts, Table, Text, as_cell


def to_html(blocks: Sequence[Block], *, wide: bool = True) -> str:
    """The blocks, one after the other; a tone is a class of its name."""
    return "\n".join(_block(block, wide=wide) for block in blocks)


def _block(block: Block, *, wide: bool) -> str:
    if isinstance(block, Text):
        return f'<p class="{_tone(block.cell)}">{_words(block.cell)}</p>'
    if isinstance(block, Facts):
        rows = (f"<tr><th>{escape(name)}</th>{_cell(value)}</tr>" for name, value in block.pairs)
        return f'<table class="facts">{"".join(rows)}</table>'
    return _table(block, wide=wide)


def _table(table: Table, *, wide: bool) -> str:
    if not table.rows and table.empty:
        return f"<p>{escape(table.empty)}</p>"
    columns, rows = table.visible(wide=wide)
    numbers = [column.number for column in columns]
    head = "".join(f"<th>{escape(column.title)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(_cell(cell, number=it) for cell, it in zip(row, numbers, strict=True))}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: str | Cell, *, number: bool = False) -> str:
    cell = as_cell(value)
    classes = f"{_tone(cell)} number" if number else _tone(cell)
    return f'<td class="{classes}">{_words(cell)}</td>'


def _tone(cell: Cell) -> str:
    return cell.tone.value


def _words(cell: Cell) -> str:
    return escape(as_cell(cell).text).replace("\n", "<br>")
