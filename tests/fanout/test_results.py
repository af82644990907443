"""What is said of a fan-out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvestigate.fanout.execute import Executed
from kvestigate.fanout.fetch import Fetched
from kvestigate.fanout.rendering import executed_blocks, fetched_blocks
from kvestigate.fanout.results import (
    Outcome,
    Ran,
    TargetAddress,
    Transferred,
    cut,
    progress_line,
    summary,
)
from kvestigate.render.plain import to_text


def place(name: str) -> TargetAddress:
    return TargetAddress(name, name)


OK = Ran(place("n1"), Outcome.OK, ("true",), 0, 1.26)
FAILED = Ran(place("n2"), Outcome.FAILED, ("false",), 3, 0.04, stderr="no\n")
LATE = Ran(place("n3"), Outcome.TIMEOUT, seconds=60.0, error="it was ended after 60 s")
LOST = Transferred(place("n4"), Outcome.UNREACHABLE, error="no pod there")
SENT = Transferred(place("n5"), Outcome.OK, "/etc/hosts", 1, 10, 0.5)


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (OK, "✓ n1 exit=0 1.3s"),
        (FAILED, "✗ n2 exit=3 0.0s"),
        (LATE, "✗ n3 timeout 60.0s it was ended after 60 s"),
        (LOST, "✗ n4 unreachable 0.0s no pod there"),
        (SENT, "✓ n5 ok 0.5s"),
    ],
)
def test_the_line_of_a_target(result: Ran | Transferred, line: str) -> None:
    assert progress_line(result) == line


@pytest.mark.parametrize(
    ("results", "text"),
    [
        ((OK,), "1 of 1 ok"),
        ((OK, FAILED), "1 of 2 ok; failed: n2"),
        ((OK, FAILED, LATE, LOST), "1 of 4 ok; failed: n2; timeout: n3; unreachable: n4"),
    ],
)
def test_the_sum_names_those_that_failed(results: tuple[Ran, ...], text: str) -> None:
    assert summary(results) == text


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (0, ""),
        (3, "1\n2\n3"),
        (4, "1\n2\n3\n... 1 more line; --full shows them"),
        (9, "1\n2\n3\n... 6 more lines; --full shows them"),
    ],
)
def test_long_text_is_cut_and_says_by_how_much(lines: int, expected: str) -> None:
    text = "".join(f"{number}\n" for number in range(1, lines + 1))
    assert cut(text, 3) == expected


def test_short_answers_are_one_table() -> None:
    shown = to_text(executed_blocks(Executed(("x",), (OK, FAILED, LATE))))
    assert shown.splitlines() == [
        "TARGET   EXIT   SECONDS   OUTPUT",
        "n1       0      1.3",
        "n2       3      0.0       no",
        "n3       -      60.0      it was ended after 60 s",
        "",
        "1 of 3 ok; failed: n2; timeout: n3",
    ]


def test_long_answers_have_a_section_each() -> None:
    long = Ran(place("n9"), Outcome.FAILED, ("x",), 1, 2.0, "a\nb\n", "c\n", truncated=True)
    shown = to_text(executed_blocks(Executed(("x",), (OK, long))))
    assert shown == (
        "== n1: exit 0, 1.3 s ==\n\n== n9: exit 1, 2.0 s ==\n\na\nb\n\nc\n\n"
        "... the rest was dropped; --full shows all\n\n1 of 2 ok; failed: n9\n"
    )


def test_what_was_said_before_it_took_too_long_is_shown() -> None:
    late = Ran(place("n3"), Outcome.TIMEOUT, seconds=60.0, stdout="so far\n", error="ended")
    shown = to_text(executed_blocks(Executed(("x",), (late,))))
    assert shown == "== n3: timeout, 60.0 s ==\n\nso far\n\nended\n\n0 of 1 ok; timeout: n3\n"


def test_escape_sequences_of_a_target_do_not_reach_the_terminal() -> None:
    rude = Ran(place("n1"), Outcome.OK, ("x",), 0, 1.0, "\x1b[2Jgone\n")
    assert "\x1b" not in to_text(executed_blocks(Executed(("x",), (rude,))))


@pytest.mark.parametrize(
    ("skipped", "said"),
    [
        ((), "out/n5/etc\n"),
        (("etc/x",), "out/n5/etc (1 skipped, links out of the tree or special files: etc/x)\n"),
        (
            ("etc/x", "etc/y"),
            "out/n5/etc (2 skipped, links out of the tree or special files: etc/x, ...)\n",
        ),
    ],
)
def test_what_was_left_behind_is_told(skipped: tuple[str, ...], said: str) -> None:
    got = replace(SENT, path="out/n5/etc", skipped=skipped)
    assert said in to_text(fetched_blocks(Fetched("/etc", (got,))))
