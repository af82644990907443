"""Reading, handling and sending in turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kvestigate.http.rounds import LONGEST, Rounds


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Echo:
    """Answers everything, and notes what it does."""

    def __init__(self, name: str, rounds: Rounds, log: list[str]) -> None:
        self._name, self._rounds, self._log = name, rounds, log
        self.on_delivery: Callable[[], None] = lambda: None

    def deliver(self, data: bytes) -> None:
        self._log.append(f"{self._name} handles {data.decode()}")
        self.on_delivery()
        self._rounds.send(self)

    def flush(self) -> None:
        self._log.append(f"{self._name} sends")


async def turns(count: int) -> None:
    """So many rounds of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_comes_together_is_handled_together_and_then_sent() -> None:
    log: list[str] = []
    rounds = Rounds(Clock())
    names = [f"c{number}" for number in range(8)]
    for name in names:
        rounds.take(Echo(name, rounds, log), b"a")
    assert log == []
    await turns(1)
    early, late = names[:5], names[5:]
    assert log[:10] == [*(f"{name} handles a" for name in early), *(f"{it} sends" for it in early)]
    # Of the last few each is answered at once: the next might take long.
    assert log[10:] == [f"{name} {what}" for name in late for what in ("handles a", "sends")]


async def test_no_answer_waits_long_for_others() -> None:
    log: list[str] = []
    clock = Clock()
    rounds = Rounds(clock)
    first, second = Echo("first", rounds, log), Echo("second", rounds, log)
    rounds.send(first)
    clock.now += 2 * LONGEST
    assert log == []
    rounds.send(second)
    assert log == ["first sends", "second sends"]


async def test_one_that_fails_takes_nobody_along(caplog: pytest.LogCaptureFixture) -> None:
    log: list[str] = []
    rounds = Rounds(Clock())
    broken, sound = Echo("broken", rounds, log), Echo("sound", rounds, log)

    def fail() -> None:
        raise ZeroDivisionError

    broken.on_delivery = fail
    rounds.take(broken, b"a")
    rounds.take(sound, b"b")
    await turns(2)
    assert log == ["broken handles a", "sound handles b", "sound sends"]
    assert "ZeroDivisionError" in caplog.text


async def test_what_is_short_is_sent_before_what_is_long() -> None:
    log: list[str] = []
    rounds = Rounds(Clock())
    short = Echo("short", rounds, log)
    rounds.send(short)
    rounds.hurry()
    log.append("long sends")
    await turns(2)
    assert log == ["short sends", "long sends"]
