"""Where results go, and how they look there."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Sequence

import pytest
import yaml

from kvestigate.cli.failures import way_out
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import Screen, emit
from kvestigate.errors import NotFound
from kvestigate.render.blocks import Block, Column, Facts, Table, next_command


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "no_color", "color"),
    [
        (Terminal(), {"TERM": "xterm"}, False, True),
        (Terminal(), {"TERM": "dumb"}, False, False),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, False, False),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": ""}, False, True),
        (Terminal(), {"TERM": "xterm"}, True, False),
        (io.StringIO(), {"TERM": "xterm"}, False, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, False, True),
        (io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_who_decides_about_colour(
    stream: io.StringIO, environ: dict[str, str], no_color: bool, color: bool
) -> None:
    assert Screen.of(stream, environ, no_color=no_color).color is color


def test_the_width_is_the_terminals() -> None:
    assert Screen.of(Terminal(), {"COLUMNS": "57"}).width == 57


RESULT = {"name": "web", "node": "n1"}


def blocks(result: dict[str, str]) -> Sequence[Block]:
    columns = (Column("name"), Column("node", wide=True))
    return [Table(columns, [list(result.values())]), Facts((("names", "1"),))]


@pytest.mark.parametrize(
    ("format", "shown"),
    [
        ("table", "NAME\nweb\n\nnames:   1\n"),
        ("wide", "NAME   NODE\nweb    n1\n\nnames:   1\n"),
        ("json", json.dumps(RESULT, indent=2) + "\n"),
        ("yaml", yaml.safe_dump(RESULT)),
    ],
)
def test_one_result_in_every_format(
    capsys: pytest.CaptureFixture[str], format: str, shown: str
) -> None:
    emit(GlobalOptions(output=format), RESULT, blocks)
    assert capsys.readouterr().out == shown


def test_colour_can_be_forced_into_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    emit(GlobalOptions(), RESULT, blocks)
    assert "\x1b[1mNAME" in capsys.readouterr().out


@pytest.mark.parametrize("format", ["json", "table"])
def test_a_format_imports_only_what_it_needs(format: str) -> None:
    program = (
        "import sys\n"
        "from kvestigate.cli.options import GlobalOptions\n"
        "from kvestigate.cli.output import emit\n"
        f"emit(GlobalOptions(output={format!r}), {{}}, lambda result: [])\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "yaml" not in done.stderr.split()


def test_commands_to_type_next_are_for_the_same_cluster(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def rendered(_: object) -> list[Block]:
        return [next_command("next: ", "kvestigate node cordon a"), next_command("", "ssh a")]

    emit(GlobalOptions(context="my fleet", as_user="jane"), {}, rendered)
    aimed = "kvestigate --context 'my fleet' --as jane node cordon a"
    assert capsys.readouterr().out == f"next: {aimed}\n\nssh a\n"
    emit(GlobalOptions(), {}, rendered)
    assert capsys.readouterr().out == "next: kvestigate node cordon a\n\nssh a\n"


def test_commands_of_hints_are_for_the_same_cluster() -> None:
    hint = "install it with `kvestigate fanout manifest | kubectl apply -f -`; kubectl is needed"
    error = NotFound("there is no DaemonSet", hint=hint)
    assert way_out(error, "--context fleet") == (
        "install it with `kvestigate --context fleet fanout manifest | "
        "kubectl --context fleet apply -f -`; kubectl is needed"
    )
    assert way_out(error) == hint
