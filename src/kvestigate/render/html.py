"""Blocks as HTML, with all text escaped. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, Text, as_cell, printable


def to_html(blocks: Sequence[Block]) -> str:
    """The blocks with all columns; a tone becomes a CSS class of the same name."""
    return "\n".join(map(_block, blocks))


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return f'<p class="{_tone(block.shown)}">{_words(block.shown)}</p>'
    if isinstance(block, Facts):
        rows = (
            f"<tr><th>{escape(printable(name))}</th>{_cell(value)}</tr>"
            for name, value in block.pairs
        )
        return f"<table>{''.join(rows)}</table>"
    return _table(block)


def _table(table: Table) -> str:
    if not table.rows and table.empty:
        return f"<p>{escape(printable(table.empty))}</p>"
    columns, rows = table.visible(wide=True)
    numbers = [column.number for column in columns]
    head = "".join(map(_head, columns))
    body = "".join(f"<tr>{''.join(map(_cell, row, numbers))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _head(column: Column) -> str:
    kind = ' class="number"' if column.number else ""
    return f"<th{kind}>{escape(printable(column.title))}</th>"


def _cell(value: str | Cell, number: bool = False) -> str:
    cell = as_cell(value)
    classes = f"{_tone(cell)} number" if number else _tone(cell)
    return f'<td class="{classes}">{_words(cell)}</td>'


def _tone(cell: Cell) -> str:
    return cell.tone.value


def _words(cell: Cell) -> str:
    return escape(as_cell(cell).text).replace("\n", "<br>")
