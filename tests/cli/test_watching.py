"""What is seen of a fan-out while it goes on."""

from __future__ import annotations

import io

from kvestigate.cli.watching import Lines
from kvestigate.fanout.results import Outcome, Ran, TargetAddress


def ran(name: str, error: str = "") -> Ran:
    return Ran(TargetAddress(name, name), Outcome.ERROR if error else Outcome.OK, error=error)


def test_those_we_wait_for_stand_below_those_that_ended() -> None:
    stream = io.StringIO()
    lines = Lines(stream, 80)
    lines.begun("n1")
    lines.begun("n2")
    lines.show()
    lines.ended(ran("n1"))
    lines.show()
    lines.ended(ran("n2"))
    lines.show()
    assert stream.getvalue() == (
        "\r\x1b[Kwaiting for n1 (0 s), n2 (0 s)"
        "\r\x1b[K✓ n1 ok 0.0s\n"
        "\r\x1b[Kwaiting for n2 (0 s)"
        "\r\x1b[K✓ n2 ok 0.0s\n"
    )


def test_where_nothing_can_be_erased_nothing_is_that_would_have_to_be() -> None:
    stream = io.StringIO()
    lines = Lines(stream, 0)
    lines.begun("n1")
    lines.show()
    lines.ended(ran("n1", "bad\nnews \x1b[2J"))
    assert stream.getvalue() == "✗ n1 error 0.0s bad news ^[[2J\n"


def test_many_names_fit_on_one_line() -> None:
    stream = io.StringIO()
    lines = Lines(stream, 40)
    for number in range(50):
        lines.begun(f"node-{number}")
    lines.show()
    assert len(stream.getvalue().removeprefix("\r\x1b[K")) == 39
