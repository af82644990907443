"""Blocks: the form of a result between its values and the output format.

A renderer turns a result into blocks; `plain` and `terminal` turn blocks into text. So each
renderer is written once and tested without a terminal.
"""

from __future__ import annotations

import enum
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Tone(enum.Enum):
    """The meaning of a text, which a terminal shows as a colour."""

    PLAIN = "plain"
    STRONG = "strong"
    DIM = "dim"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


class Cell(Struct, frozen=True):
    """A value in a table."""

    text: str
    tone: Tone = Tone.PLAIN


class Column(Struct, frozen=True):
    """The heading of a column, and how its cells are shown."""

    title: str
    number: bool = False
    """Right-aligned on a terminal."""
    wide: bool = False
    """Shown only with `-o wide`."""


class Table(Struct, frozen=True):
    """Rows of cells under columns."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str | Cell]]
    """As many cells as there are columns, the wide ones included."""
    empty: str = ""
    """Shown instead of a table without rows: `no pods in namespace default`."""

    def visible(self, *, wide: bool) -> tuple[list[Column], list[list[Cell]]]:
        """The columns and cells that are shown."""
        chosen = [index for index, column in enumerate(self.columns) if wide or not column.wide]
        columns = [self.columns[index] for index in chosen]
        return columns, [[as_cell(row[index]) for index in chosen] for row in self.rows]


class Facts(Struct, frozen=True):
    """Names and values, one pair a line."""

    pairs: Sequence[tuple[str, str | Cell]]


class Text(Struct, frozen=True):
    """One paragraph: a heading, a verdict, a note or any other text."""

    cell: Cell
    command: str = ""
    """A command to type next, behind the words of the cell."""

    @property
    def shown(self) -> Cell:
        return Cell(self.cell.text + self.command, self.cell.tone) if self.command else self.cell


Block = Table | Facts | Text


class Field(Struct, Generic[T], frozen=True):
    """A column, and its cell for each row."""

    title: str
    cell: Callable[[T], str | Cell]
    number: bool = False
    wide: bool = False


def table(rows: Iterable[T], *fields: Field[T], empty: str = "") -> Table:
    """One line for each of `rows`, one column for each of `fields`."""
    return Table(
        [Column(field.title, field.number, field.wide) for field in fields],
        [[field.cell(row) for field in fields] for row in rows],
        empty,
    )


def text(words: str, tone: Tone = Tone.PLAIN) -> Text:
    return Text(Cell(words, tone))


def next_command(words: str, command: str, tone: Tone = Tone.DIM) -> Text:
    """A command to type next: `next: kvestigate optimize plan --live`."""
    return Text(Cell(words, tone), command)


_PROGRAMS = ("kvestigate", "kubectl")


def aimed(command: str, flags: str) -> str:
    """The command with the flags that say which cluster is meant, and as whom."""
    program, _, rest = command.partition(" ")
    return f"{program} {flags} {rest}" if flags and program in _PROGRAMS else command


def all_aimed(blocks: Iterable[Block], flags: str) -> list[Block]:
    """The blocks, with the flags in all commands to type next."""
    return [
        Text(block.cell, aimed(block.command, flags))
        if isinstance(block, Text) and block.command
        else block
        for block in blocks
    ]


def as_cell(value: str | Cell) -> Cell:
    """The cell, with control characters made visible: cluster text may have escape sequences."""
    cell = Cell(value) if isinstance(value, str) else value
    return cell if cell.text.isprintable() else Cell(printable(cell.text), cell.tone)


def printable(words: str) -> str:
    """`words` with control characters spelled out (`^[`, `\\u202e`), newlines and tabs kept.

    Not only escape sequences play tricks: marks of direction show a text in another order than
    its letters have, and characters without width hide in names.
    """
    return words if words.isprintable() else "".join(map(_spell, words))


def one_line(words: str) -> str:
    """`words` as one line of a table."""
    return " ".join(words.split("\n"))


def _spell(character: str) -> str:
    if character in "\n\t" or character.isprintable():
        return character
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return "^" + chr(code ^ 0x40)
    if unicodedata.category(character) in ("Zs", "Cn"):  # blanks, and what Python does not know yet
        return character
    return character.encode("ascii", "backslashreplace").decode()
