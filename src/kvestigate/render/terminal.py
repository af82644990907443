"""Blocks as coloured text for a terminal. The only module that needs Rich."""

from __future__ import annotations

import io
from collections.abc import Sequence

import rich.table
from rich.console import Console, RenderableType
from rich.text import Text as RichText

from kvestigate.render.blocks import Block, Cell, Facts, Table, Text, Tone, as_cell, one_line

_STYLES = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.DIM: "dim",
    Tone.GOOD: "green",
    Tone.WARN: "yellow",
    Tone.BAD: "bold red",
}


def to_terminal(blocks: Sequence[Block], *, width: int, wide: bool = False) -> str:
    """The blocks with colour codes, folded to `width` columns."""
    console = Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        width=width,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        # An empty environment: what to colour has been decided before we are called.
        _environ={},
    )
    for index, block in enumerate(blocks):
        if index:
            console.print()
        console.print(_block(block, wide=wide), soft_wrap=isinstance(block, Text))
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


def _block(block: Block, *, wide: bool) -> RenderableType:
    if isinstance(block, Text):
        return _text(as_cell(block.cell))
    if isinstance(block, Facts):
        return _facts(block)
    return _table(block, wide=wide)


def _facts(facts: Facts) -> RenderableType:
    grid = rich.table.Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.pairs:
        grid.add_row(f"{name}:", _text(as_cell(value)))
    return grid


def _table(table: Table, *, wide: bool) -> RenderableType:
    if not table.rows and table.empty:
        return RichText(table.empty)
    columns, rows = table.visible(wide=wide)
    grid = rich.table.Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        justify = "right" if column.number else "left"
        grid.add_column(column.title.upper(), justify=justify, overflow="fold")  # type: ignore[arg-type]  # Rich wants a Literal
    for row in rows:
        grid.add_row(*(_text(Cell(one_line(cell.text), cell.tone)) for cell in row))
    return grid


def _text(cell: Cell) -> RichText:
    return RichText(cell.text, style=_STYLES[cell.tone])
