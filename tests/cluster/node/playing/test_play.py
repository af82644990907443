"""What simulated containers print and how they end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.node.playing.play import play


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


GUARD = """
echo "orders 3.1 starting"
if [ -z "$DATABASE_URL" ]; then
  echo "fatal: DATABASE_URL is not set" >&2
  exit 1
fi
exec orders --serve
"""


@pytest.mark.parametrize(
    ("argv", "env", "lines", "end"),
    [
        (["false"], {}, [], (0, 1)),
        (["/bin/true"], {}, [], (0, 0)),
        (["sleep", "1.5"], {}, [], (1.5, 0)),
        (["sleep", "2m"], {}, [], (120, 0)),
        (["sleep", "infinity"], {}, [], None),
        (["echo", "a", "b"], {}, ["a b"], (0, 0)),
        (["nginx", "-g", "daemon off;"], {}, [], None),
        ([], {}, [], None),
        (["sh"], {}, [], (0, 0)),
        (sh("exit 3"), {}, [], (0, 3)),
        (sh("exit 256"), {}, [], (0, 0)),
        (sh(GUARD), {}, ["orders 3.1 starting", "fatal: DATABASE_URL is not set"], (0, 1)),
        (sh(GUARD), {"DATABASE_URL": "x"}, ["orders 3.1 starting"], None),
        (sh("echo 'column does not exist' >&2; exit 3"), {}, ["column does not exist"], (0, 3)),
        (sh("true && echo yes || echo no"), {}, ["yes"], (0, 0)),
        (sh("false && echo yes || echo no"), {}, ["no"], (0, 0)),
        (sh("! true; echo $?"), {}, ["1"], (0, 0)),
        (sh("set -e\nfalse\necho never"), {}, [], (0, 1)),
        (sh("set -e; if false; then :; fi; false || true; echo on"), {}, ["on"], (0, 0)),
        (
            ["bash", "-ec", "cat /missing; echo never"],
            {},
            [("cat: can't open '/missing': No such file or directory")],
            (0, 1),
        ),
        (sh('A=1; B="${A:-2} ${C:-3}"; echo $B "$B"'), {}, ["1 3 1 3"], (0, 0)),
        (sh(': "${TOKEN:?must be set}"; echo never'), {}, ["sh: TOKEN: must be set"], (0, 2)),
        (sh("for i in 1 2 3; do echo $i; sleep 1; done"), {}, ["1", "2", "3"], (3, 0)),
        (sh("while true; do echo tick; sleep 5; done"), {}, ["tick"] * 3, None),
        (sh("until [ -f /ready ]; do sleep 1; done"), {}, [], None),
        (sh("while true; do break; done; exit 7"), {}, [], (0, 7)),
        (sh("[ 2 -gt 10 ] || exit 5"), {}, [], (0, 5)),
        (sh('[ "$MODE" = prod ] && exit 9'), {"MODE": "prod"}, [], (0, 9)),
        (sh("(exit 2)"), {}, [], (0, 2)),
        (sh("{ echo a; echo b; } ; python train.py; echo never"), {}, ["a", "b"], None),
        (sh("echo hidden > /tmp/x; echo seen"), {}, ["seen"], (0, 0)),
        (sh("ps | grep x"), {}, [], None),
        (sh("echo 'unfinished"), {}, [], None),
        (sh("x=$(date)"), {}, [], None),
        (sh("printf 'a %s\\n' b; env | sort"), {}, [], None),
    ],
)
def test_a_command_is_played(
    argv: list[str],
    env: dict[str, str],
    lines: list[str],
    end: tuple[float, int] | None,
) -> None:
    played = play(argv, env)
    assert [line.text for line in played.lines] == lines
    assert (None if played.ends_at is None else (played.ends_at, played.code)) == end


def test_lines_have_their_time_and_stream() -> None:
    played = play(sh("echo a; sleep 2; echo b >&2"), {})
    assert [(line.at, line.stream) for line in played.lines] == [(0, "stdout"), (2, "stderr")]


def test_files_of_volumes_are_there() -> None:
    script = sh("[ -f /etc/app/config.yaml ] || exit 1")
    assert play(script, {}).code == 1
    assert play(script, {}, ["/etc/app"]).code == 0


def test_long_scripts_end() -> None:
    nested = "for i in 1 2 3 4 5 6 7 8 9; do " * 8 + "echo x" + "; done" * 8
    played = play(sh(nested), {})
    assert played.ends_at is None
    assert len(played.lines) <= 1000


@given(st.text(alphabet="ab'\"$(){}[];|&<>! \n\\#=?-", max_size=60))
def test_no_script_breaks_the_player(script: str) -> None:
    play(sh(script), {"a": "b"})
