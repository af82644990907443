"""Draws what the README shows of `make demo` as a terminal: the text is the only source of both.

`tools/docs.py` writes the picture with the other generated pages, and a test holds it to the text.
"""

from __future__ import annotations

import re
import textwrap
from html import escape

COLUMNS = 100
_LINE, _CHARACTER, _MARGIN, _BAR = 18, 7.83, 16, 30
_BACKGROUND, _PLAIN, _DIM = "#16181d", "#c9ced6", "#8b93a1"
_WORDS = {"CRITICAL": "#ff6b70", "WARNING": "#e3b341"}
_LABEL = re.compile(r"^( *)[a-z][a-z ]*:( +)")


def transcript(readme: str) -> str:
    """The first transcript of `make demo`."""
    block = re.search(
        r"^```console[^\n]*\n\$ make demo\n(.*?)^```", readme, re.MULTILINE | re.DOTALL
    )
    if block is None:
        raise ValueError("README.md shows no `make demo`")
    return f"$ make demo\n{block[1]}"


def picture(text: str) -> str:
    """The text as an SVG, which needs no font of ours and no script."""
    lines = [part for line in text.rstrip().splitlines() for part in _wrapped(line)]
    width = round(COLUMNS * _CHARACTER) + 2 * _MARGIN
    height = _BAR + len(lines) * _LINE + 2 * _MARGIN
    dots = "".join(
        f'<circle cx="{_MARGIN + 16 * place}" cy="{_BAR // 2 + 2}" r="5" fill="{color}"/>'
        for place, color in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    body = "\n".join(
        f'<text x="{_MARGIN}" y="{_BAR + _MARGIN + number * _LINE}">{_colored(line)}</text>'
        for number, line in enumerate(lines)
        if line.strip()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="What make demo prints" font-family="ui-monospace, Menlo, Consolas, '
        f'DejaVu Sans Mono, monospace" font-size="13" fill="{_PLAIN}">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="{_BACKGROUND}"/>\n{dots}\n{body}\n'
        "</svg>\n"
    )


def _wrapped(line: str) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, COLUMNS, subsequent_indent=indent, break_on_hyphens=False) or [""]


def _colored(line: str) -> str:
    word, _, rest = line.partition(" ")
    if word in _WORDS:
        return _span(word, fill=_WORDS[word], font_weight="bold") + _shown(f" {rest}")
    if word == "$":
        return _span("$", fill=_DIM) + _span(f" {rest}", font_weight="bold")
    if label := _LABEL.match(line):
        return _span(label[0], fill=_DIM) + _shown(line[label.end() :])
    return _shown(line)


def _span(text: str, **style: str) -> str:
    written = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in style.items())
    return f"<tspan{written}>{_shown(text)}</tspan>"


def _shown(text: str) -> str:
    return escape(text).replace(" ", "\N{NO-BREAK SPACE}")  # others are drawn as one
