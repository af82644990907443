"""Where results go: one function that knows the formats, the terminal and the user's wishes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO, TypeAlias, TypeVar

from kvestigate.cli.options import GlobalOptions

if TYPE_CHECKING:
    from kvestigate.render.blocks import Block

T = TypeVar("T")
_STDOUT = 1
Blocks: TypeAlias = "Sequence[Block]"


@dataclass(frozen=True, slots=True)
class Screen:
    """What the place we print to can show."""

    color: bool
    width: int

    @classmethod
    def of(cls, stream: TextIO, environ: Mapping[str, str], *, no_color: bool = False) -> Screen:
        """`NO_COLOR` and `--no-color` beat `FORCE_COLOR`, which beats a pipe or dumb terminal."""
        terminal = stream.isatty() and environ.get("TERM") not in ("dumb", "unknown")
        wanted = terminal or bool(environ.get("FORCE_COLOR"))
        refused = no_color or bool(environ.get("NO_COLOR"))
        return cls(color=wanted and not refused, width=_columns(environ))


def _columns(environ: Mapping[str, str]) -> int:
    """As `shutil.get_terminal_size` has it; that module is slow to import."""
    with suppress(ValueError):
        if (columns := int(environ.get("COLUMNS", "0"))) > 0:
            return columns
    with suppress(OSError):  # closed, or not a terminal
        return os.get_terminal_size(_STDOUT).columns or 80
    return 80


def emit(options: GlobalOptions, result: T, render: Callable[[T], Sequence[Block]]) -> None:
    """Print `result` to stdout in the format that the user asked for."""
    if options.output == "json":
        from kvestigate.render.encode import to_json

        sys.stdout.write(to_json(result).decode())
    elif options.output == "yaml":
        from kvestigate.render.encode import to_yaml

        sys.stdout.write(to_yaml(result))
    else:
        screen = Screen.of(sys.stdout, os.environ, no_color=options.no_color)
        blocks = render(result)
        if options.cluster_flags:
            from kvestigate.render.blocks import all_aimed

            blocks = all_aimed(blocks, options.cluster_words)
        sys.stdout.write(_as_text(blocks, screen, wide=options.wide))


def emit_list(
    options: GlobalOptions, name: str, items: Sequence[T], render: Callable[[Sequence[T]], Blocks]
) -> None:
    """Print a list, which programs find under `name`: all answers are objects."""
    emit(options, {name: items}, lambda found: render(found[name]))


def emit_log(text: str) -> None:
    """Print a part of a log: as it is to a pipe; a terminal gets no control characters."""
    if sys.stdout.isatty():
        from kvestigate.render.blocks import printable

        text = printable(text.replace("\r\n", "\n"))
    sys.stdout.write(text)


def warn_of_skipped(names: Sequence[str]) -> None:
    """Name what an archive held and this machine did not get."""
    from kvestigate.render.blocks import one_line, printable

    for name in names:
        shown = printable(one_line(name))
        sys.stderr.write(f"warning: skipped {shown}: a link to elsewhere, or not a file\n")


def _as_text(blocks: Sequence[Block], screen: Screen, *, wide: bool) -> str:
    if screen.color:
        from kvestigate.render.terminal import to_terminal

        return to_terminal(blocks, width=screen.width, wide=wide)
    from kvestigate.render.plain import to_text

    return to_text(blocks, wide=wide)
