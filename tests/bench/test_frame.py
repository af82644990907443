"""The frame measures whole processes and refuses contenders that disagree or fail."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from bench.frame import BenchFailed, Contender, Result, Row, measure, race


def _python(name: str, code: str, *, answers: bool = False) -> Contender:
    return Contender(name, [sys.executable, "-I", "-S", "-c", code], answers=answers)


def _ignore(line: str) -> None:
    pass


def test_peak_memory_is_the_commands_own() -> None:
    ballast = bytearray(200 << 20)  # ours: a forked child would inherit it as its peak
    ballast[::4096] = b"x" * len(ballast[::4096])
    sample, _ = measure(_python("small", "pass"))
    assert sample.peak < 100
    sample, _ = measure(_python("large", "x = bytearray(120 << 20); x[::4096] = x[::4096]"))
    assert sample.peak > 120


def test_runs_are_interleaved() -> None:
    lines: list[str] = []
    rows = race([_python("a", "pass"), _python("b", "pass")], 2, lines.append)
    turns = [line.partition(":")[0] for line in lines]
    assert turns == ["run 1/2 a", "run 1/2 b", "run 2/2 a", "run 2/2 b"]
    assert [(row.name, row.runs) for row in rows] == [("a", 2), ("b", 2)]


def test_contenders_that_read_different_things_are_no_contest() -> None:
    contenders = [_python("a", "print(1)", answers=True), _python("b", "print(2)", answers=True)]
    with pytest.raises(BenchFailed, match="disagree"):
        race(contenders, 1, _ignore)


def test_a_failing_contender_fails_the_bench_with_its_words() -> None:
    with pytest.raises(BenchFailed, match=r"(?s)broken ended with 3.*no luck"):
        measure(_python("broken", "import sys; print('no luck', file=sys.stderr); sys.exit(3)"))


_DYING = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.parametrize(
    ("peer", "how"),
    [
        (_python("peer", _DYING), "killed, as the kernel does when memory is used up"),
        (_python("peer", "raise SystemExit(3)"), "ended with 3"),
        (
            replace(_python("peer", "import signal; signal.pause()"), patience=0.2),
            "ended after 0 s",
        ),
    ],
)
def test_a_peer_that_may_fail_is_reported_and_not_run_again(peer: Contender, how: str) -> None:
    lines: list[str] = []
    ours = _python("ours", "pass")
    rows = race([ours, replace(peer, may_fail=True)], 2, lines.append)
    turns = [line.split()[2].rstrip(":") for line in lines if line.startswith("run")]
    assert turns == ["ours", "peer", "ours"]
    assert [row.runs for row in rows] == [2, 1]
    assert how in rows[1].failed
    assert rows[1].failed in Result("audit", "how", {"Python": "3"}, rows).render()


def test_a_slow_peer_is_run_less_often() -> None:
    rows = race([_python("ours", "pass"), replace(_python("peer", "pass"), runs=1)], 3, _ignore)
    assert [(row.name, row.runs) for row in rows] == [("ours", 3), ("peer", 1)]


def test_ratios_are_of_the_others_to_ours() -> None:
    rows = [Row("ours", 1.0, 0.5, 0.5, 40, 3), Row("theirs", 3.0, 1.0, 1.0, 100, 3)]
    result = Result("list", "how", {"Python": "3"}, rows)
    *_, ours, theirs = result.render().splitlines()
    assert ours.split() == ["ours", "1.000", "1.0x", "1.000", "1.0x", "40", "1.0x"]
    assert theirs.split() == ["theirs", "3.000", "3.0x", "2.000", "2.0x", "100", "2.5x"]
    figures = result.as_json()["rows"]
    assert isinstance(figures, list)
    assert figures[1]["ratios"] == {"wall": 3.0, "cpu": 2.0, "peak": 2.5}
