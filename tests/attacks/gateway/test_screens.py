"""Texts of a cluster on a screen: they are shown, never obeyed."""

from __future__ import annotations

import json

import pytest
import yaml

from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, text
from kvestigate.render.encode import to_json, to_yaml
from kvestigate.render.html import to_html
from kvestigate.render.plain import to_text
from kvestigate.render.terminal import to_terminal

OBEYED = [
    "\x1b]0;title\x07",
    "\x1b[2J",
    "\x9b2J",
    "\x07",
    "\r",
    "\x08",
    "\x7f",
    *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2066, 0x206A)),
    "\u200e",
    "\u200f",
    "\u061c",
    "\u200b",
    "\ufeff",
    "\u2028",
    "\u2029",
]


def everywhere(words: str) -> list[Block]:
    return [
        text(words),
        Facts(((words, words), ("cell", Cell(words)))),
        Table((Column("name"),), [[words]]),
        Table((Column("name"),), [], empty=words),
    ]


@pytest.mark.parametrize("mark", OBEYED, ids=lambda it: ascii(it))
def test_what_a_screen_would_obey_is_spelled_out(mark: str) -> None:
    blocks = everywhere(f"name{mark}more")
    assert mark not in to_text(blocks)
    assert mark not in to_html(blocks)
    coloured = to_terminal(blocks, width=80)
    assert mark not in coloured.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")


@pytest.mark.parametrize("mark", OBEYED, ids=lambda it: ascii(it))
def test_programs_get_it_whole_and_terminals_do_not_obey(mark: str) -> None:
    value = {"name": f"name{mark}more"}
    as_json, as_yaml = to_json(value).decode(), to_yaml(value)
    assert mark not in as_json
    assert json.loads(as_json) == yaml.safe_load(as_yaml) == value
    if mark not in "\u200b\ufeff":
        assert mark not in as_yaml
