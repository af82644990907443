"""The same blocks, in a pipe and on a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, Tone, printable, text
from kvestigate.render.plain import to_text
from kvestigate.render.terminal import fitted, to_terminal

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
        ([Facts((("note", "two\nlines"),))], False, "note:   two\n        lines\n"),
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


def test_numbers_are_right_aligned_on_a_terminal() -> None:
    shown = uncolored(to_terminal([PODS], width=80))
    assert shown.splitlines() == [
        "NAME        RESTARTS",
        "web-0             12",
        "database-0         0",
    ]


def test_a_cell_that_is_folded_stays_in_its_column() -> None:
    table = Table((Column("a"), Column("message")), (("x", "the quick brown fox"), ("y", "jumps")))
    shown = uncolored(to_terminal([table], width=14))
    assert shown.splitlines() == ["A  MESSAGE", "x  the quick", "   brown fox", "y  jumps"]


def test_a_value_that_is_folded_stays_beside_its_name() -> None:
    facts = Facts((("name", "web"), ("says", Cell("one two three", Tone.BAD))))
    shown = uncolored(to_terminal([facts], width=16))
    assert shown.splitlines() == ["name:  web", "says:  one two", "       three"]


@pytest.mark.parametrize(
    ("natural", "room", "widths"),
    [
        ([3, 10, 20], 40, [3, 10, 20]),
        ([3, 10, 20], 33, [3, 10, 20]),
        ([3, 10, 20], 30, [3, 10, 17]),
        ([3, 30, 20], 30, [3, 14, 13]),
        ([3, 30, 20], 5, [3, 8, 8]),
    ],
)
def test_the_widest_columns_make_room(natural: list[int], room: int, widths: list[int]) -> None:
    assert fitted(natural, room) == widths


def test_wide_characters_count_twice() -> None:
    table = Table((Column("a"), Column("b")), (("日本", "x"), ("abcd", "y")))
    assert uncolored(to_terminal([table], width=80)).splitlines()[1:] == ["日本  x", "abcd  y"]
    narrow = uncolored(to_terminal([Table((Column("a"),), (("日本語日本語",),))], width=8))
    assert narrow.splitlines()[1:] == ["日本語日", "本語"]


def test_markup_in_data_is_only_text() -> None:
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
        ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
        ("\u2066x\u2069\u200b\u200f", "\\u2066x\\u2069\\u200b\\u200f"),
        ("a\u2028b\U000e0041", "a\\u2028b\\U000e0041"),
        ("bad\udcff", "bad\\udcff"),
        ("a\u00a0b\u3000c", "a\u00a0b\u3000c"),
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


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("NVIDIA-RTX-PRO-6000", ["NVIDIA-RTX-PRO-6000"]),
        ("nvidia.com/gpu-shared", ["nvidia.com/gpu-shared"]),
        ("two words-here", ["two", "words-here"]),
        ("on abcdefghijklmnop too", ["on", "abcdefghijklmnop", "too"]),
    ],
)
def test_a_name_is_never_broken_so_that_it_can_be_copied(words: str, lines: list[str]) -> None:
    shown = uncolored(to_terminal([Table((Column("n"),), ((words,),))], width=12))
    assert shown.splitlines()[1:] == lines


LONG = "checkout-frontend-7d866697c8-gz4pl"
MODEL = "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"


def test_what_does_not_fit_beside_is_shown_below_its_row() -> None:
    titles = ("namespace", "pod", "node", "model", "why")
    why = "the data of its emptyDir volume is lost; add --delete-emptydir-data"
    rows = (("shop", LONG, "gpu-node-7", MODEL, why), ("shop", "web-0", "n1", "T4", "-"))
    shown = uncolored(to_terminal([Table(tuple(map(Column, titles)), rows)], width=80))
    assert shown.splitlines() == [
        "NAMESPACE  POD                                 NODE",
        f"shop       {LONG}  gpu-node-7",
        f"    model: {MODEL}",
        "    why: the data of its emptyDir volume is lost; add --delete-emptydir-data",
        "shop       web-0                               n1",
        "    model: T4",
    ]


def test_columns_that_cannot_be_folded_further_are_shown_below() -> None:
    """Words of `95.6 GiB` would fit, but no column is folded to less than 8."""
    titles = ("node", "model", "count", "memory", "driver")
    row = ("node-01", MODEL, "8", "95.6 GiB", "580.95.05")
    shown = uncolored(to_terminal([Table(tuple(map(Column, titles)), [row])], width=80))
    assert shown.splitlines()[1:] == [
        f"node-01  {MODEL}  8      95.6 GiB",
        "    driver: 580.95.05",
    ]


@given(st.lists(st.lists(st.text("ab ", max_size=14), min_size=9, max_size=9), max_size=4))
def test_80_columns_are_enough_for_many_short_columns(rows: list[list[str]]) -> None:
    columns = tuple(Column(f"title {number}") for number in range(9))
    shown = uncolored(to_terminal([Table(columns, rows)], width=80))
    assert max(map(len, shown.splitlines()), default=0) <= 80


NAMES = st.text("abc-./", min_size=1, max_size=40)


@given(st.lists(st.tuples(NAMES, NAMES, NAMES, st.lists(NAMES, max_size=9)), max_size=5))
def test_80_columns_are_enough_for_names_of_up_to_40(
    rows: list[tuple[str, str, str, list[str]]],
) -> None:
    cells = [(first, second, third, " ".join(words)) for first, second, third, words in rows]
    columns = tuple(map(Column, ("one", "two", "three", "why")))
    shown = uncolored(to_terminal([Table(columns, cells)], width=80))
    assert max(map(len, shown.splitlines()), default=0) <= 80
    words = shown.split()
    assert all(
        word in words for row in cells for cell in row for word in cell.split() if cell != "-"
    )


def test_only_the_first_line_of_a_text_is_coloured() -> None:
    shown = to_terminal([text("CRITICAL it burns\n    try: water", Tone.BAD)], width=80)
    assert shown == "\x1b[1;31mCRITICAL it burns\x1b[0m\n    try: water\n"
