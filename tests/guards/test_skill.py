"""What coding agents are taught is true: commands, exit codes and files exist."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from kvestigate import errors
from kvestigate.catalog import CATALOG
from kvestigate.cli.main import KVESTIGATE_PROGRAM

PACKAGE = Path(errors.__file__).parent
REPOSITORY = PACKAGE.parents[1]
SKILL = (PACKAGE / "SKILL.md").read_text("utf-8")
LLMS = (PACKAGE / "llms.txt").read_text("utf-8")
COMMANDS = sorted(set(re.findall(r"`kvestigate ([a-z][a-z -]*[a-z])", SKILL)))


@pytest.mark.parametrize("words", COMMANDS)
def test_the_commands_are_there(words: str) -> None:
    found: click.Command = KVESTIGATE_PROGRAM
    context = click.Context(KVESTIGATE_PROGRAM)
    for word in words.split():
        if not isinstance(found, click.Group) or word.startswith("-"):
            return  # an argument or a flag
        member = found.get_command(context, word)
        assert member is not None, words
        found = member


def test_the_exit_codes_are_ours() -> None:
    said = {int(code) for code in re.findall(r"^\| (\d) \|", SKILL, re.M)}
    ours = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert said == {code for code in ours if code < 100}


def test_the_operations_are_ours() -> None:
    known = {*CATALOG, "cyberspace.info"}
    assert set(re.findall(r"`((?:workspace|cyberspace)\.\w+)`", SKILL)) <= known


def test_the_files_are_there() -> None:
    for path in re.findall(r"docs/[\w./-]+", LLMS):
        assert (REPOSITORY / path.rstrip(":")).exists(), path
