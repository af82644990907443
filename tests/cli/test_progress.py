"""A line for those who wait, gone without a trace, and none for pipes."""

from __future__ import annotations

import asyncio
import io

import pytest

from kvestigate.cli.progress import Counting, counting, said_if_silent, ticking, waiting


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_first_second_is_silent_then_counts_are_shown_and_erased() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = Counting(stream, 80, clock)
    progress("nodes", 3)
    progress.erase()
    assert stream.getvalue() == ""
    clock.now = 1.0
    progress("pods", 1000)
    assert stream.getvalue() == "\r\x1b[Kreading nodes 3, pods 1000"
    progress("pods", 2000)
    assert "2000" not in stream.getvalue()
    progress.erase()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_bar_shows_how_much_of_it_all_is_done() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = Counting(stream, 80, clock)
    progress("nodes", 100, 100)
    progress("events", 7)
    clock.now = 1.0
    progress("pods", 400, 900)
    bar = "[##########----------] 50%"
    assert stream.getvalue() == f"\r\x1b[Kreading {bar} nodes 100, events 7, pods 400"


def test_a_narrow_terminal_gets_one_line() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = Counting(stream, 12, clock)
    clock.now = 1.0
    progress("persistentvolumes", 7)
    assert stream.getvalue().removeprefix("\r\x1b[K") == "reading per"


def test_a_server_that_says_nothing_is_waited_for_visibly() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = Counting(stream, 80, clock)
    clock.now = 1.0
    progress.show()
    assert stream.getvalue() == "\r\x1b[Kreading ..."


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_who_waits_is_told_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    with waiting("starting") as told:
        assert told is not None
        told(0.5)
        assert terminal.getvalue() == ""
        told(2.0)
        assert terminal.getvalue() == "\r\x1b[Kstarting: 2 s"
    assert terminal.getvalue().endswith("\r\x1b[K")


async def test_who_waits_sees_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    with ticking("creating"):
        pass
    assert terminal.getvalue() == ""  # it was done within the second
    with ticking("creating", pause=0.0):
        for _ in range(5):  # turns of the loop, each with a tick
            await asyncio.sleep(0)
    assert terminal.getvalue().count("creating: 0 s") >= 2
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(("heard", "words"), [(True, ""), (False, "nothing yet\n")])
async def test_silence_is_explained(
    monkeypatch: pytest.MonkeyPatch, heard: bool, words: str
) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    with said_if_silent("nothing yet", patience=0.0) as hear:
        if heard:
            hear()
        later = asyncio.Event()
        asyncio.get_running_loop().call_later(0.001, later.set)
        await later.wait()
    assert terminal.getvalue() == words


async def test_on_a_terminal_there_is_a_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    with counting() as progress:
        assert progress is not None
        progress("pods", 1)
    assert terminal.getvalue() == ""  # it was done within the second


def test_a_pipe_gets_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with counting() as progress, waiting("starting") as told:
        assert progress is None
        assert told is None
    assert capsys.readouterr().err == ""
