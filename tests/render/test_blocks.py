"""The same blocks, in a pipe and on a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, Tone, printable, text
from kvestigate.render.plain import to_text
from kvestigate.render.terminal import to_terminal

PODS = Table(
    columns=(Column("name"), Column("restarts", number=True), Column("node", wide=True)),
    rows=(("web-0", Cell("12", Tone.BAD), "n1"), ("database-0", "0", "n2")),
    empty="no pods in namespace default",
)


def uncolored(words: str) -> str:
    lines = re.sub(r"\x1b\[[0-9;]*m", "", words).split("\n")
    return "\n".join(line.rstrip() for line in lines)


@pytest.mark.parametrize(
    ("blocks", "wide", "shown"),
    [
        ([], False, ""),
        ([PODS], False, "NAME         RESTARTS\nweb-0        12\ndatabase-0   0\n"),
        (
            [PODS],
            True,
            "NAME         RESTARTS   NODE\n"
            "web-0        12         n1\n"
            "database-0   0          n2\n",
        ),
        ([Table(PODS.columns, (), PODS.empty)], False, "no pods in namespace default\n"),
        ([Table(PODS.columns, ())], False, "NAME   RESTARTS\n"),
        ([Facts((("context", "prod"), ("user", "me")))], False, "context:   prod\nuser:      me\n"),
        ([text("done", Tone.GOOD), text("next")], False, "done\n\nnext\n"),
        ([Facts((("note", "two\nlines"),))], False, "note:   two lines\n"),
    ],
)
def test_plain(blocks: list[Block], wide: bool, shown: str) -> None:
    assert to_text(blocks, wide=wide) == shown


@pytest.mark.parametrize("wide", [False, True])
def test_a_terminal_shows_the_same_words_as_a_pipe(wide: bool) -> None:
    blocks: list[Block] = [text("Pods", Tone.STRONG), PODS, Facts((("a", "b"),))]
    plain = to_text(blocks, wide=wide)
    shown = to_terminal(blocks, width=100, wide=wide)
    assert uncolored(shown).split() == plain.split()
    assert re.search(r"\x1b\[1;31m *12\x1b\[0m", shown)


def test_a_narrow_terminal_folds_and_loses_nothing() -> None:
    name = "a-name-that-is-much-longer-than-the-screen"
    shown = uncolored(to_terminal([Table((Column("n"),), ((name,),))], width=20))
    assert "".join(shown.split()) == f"N{name}"


def test_rich_markup_in_data_is_only_text() -> None:
    shown = to_terminal([Facts((("label", "[red]x[/red] :smile:"),)), text("[bold]y")], width=80)
    assert "[red]x[/red] :smile:" in shown
    assert "[bold]y" in shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("\x1b[31mred", "^[[31mred"),
        ("bell\x07", "bell^G"),
        ("line\nnext\ttab", "line\nnext\ttab"),
        ("\x7f", "^?"),
        ("\x9b31m", "\\x9b31m"),
        ("größe 日本", "größe 日本"),
    ],
)
def test_escape_sequences_from_a_cluster_are_spelled_out(words: str, shown: str) -> None:
    assert printable(words) == shown
    assert to_text([text(words)]) == f"{shown}\n"


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1))
def test_no_control_character_ever_reaches_the_screen(rows: list[tuple[str, str]]) -> None:
    table = Table((Column("a"), Column("b")), rows)
    for shown in (to_text([table]), uncolored(to_terminal([table], width=60))):
        assert not set(shown) & {chr(code) for code in (*range(9), *range(11, 32), 127, 0x9B)}
