"""Every command is documented, has examples, and is tried by a test."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import click
import pytest

from kvestigate.catalog import CATALOG, operation
from kvestigate.cli.command import Command, shown_examples
from kvestigate.cli.commands import K8S_CLI, K8S_COLLECT, KVESTIGATE, Entry
from kvestigate.cli.group import Group, RunnableGroup
from kvestigate.cli.main import K8S_CLI_PROGRAM, K8S_COLLECT_PROGRAM, KVESTIGATE_PROGRAM
from kvestigate.cli.tree import is_group, walk

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent

PROGRAMS = (KVESTIGATE_PROGRAM, K8S_CLI_PROGRAM, K8S_COLLECT_PROGRAM)
COMMANDS = [context for program in PROGRAMS for context in walk(program)]
LEAVES = [
    context
    for context in COMMANDS
    if not is_group(context) or isinstance(context.command, RunnableGroup)
]

WITHOUT_OPERATION = {
    "servers, which run until they are stopped": {
        "plane serve",
        "jobs serve",
        "serve",
        "cybernet serve",
        "cybernet mcp-server",
        "cybernet token create",
        "cybernet token list",
        "cybernet token revoke",
        "ui",
    },
    "streams without an end": {"collect watch", "collect from-file", "watch", "from-file"},
    "terminals, which last as long as somebody types": {"jobs attach", "jobs exec"},
    "credentials, which leave by no other face": {
        "auth login",
        "auth logout",
        "auth token",
        "auth whoami",
        "plane kubeconfig",
        "plane kubelet-certificate",
        "cybernet init",
        "cybernet hash-token",
    },
    "clients of a gateway": {"cybernet call", "cybernet status", "cybernet emit-helper"},
    "clusters of this machine, which the toolkit knows only by their API": {
        "up",
        "demo",
        "down",
        "status",
        "scenario list",
        "scenario show",
    },
    "the shell": {"completion"},
}
"""Why -> which commands run no operation."""
NO_OPERATION = frozenset().union(*WITHOUT_OPERATION.values())


def name_of(context: object) -> str:
    assert isinstance(context, click.Context)
    return context.command_path


@cache
def words_of_tests() -> str:
    guards = TESTS / "guards"
    files = (path for path in TESTS.rglob("test_*.py") if guards not in path.parents)
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


@pytest.mark.parametrize("context", LEAVES, ids=name_of)
def test_a_test_calls_the_command(context: click.Context) -> None:
    words = context.command_path.split()[1:]
    called = r",\s*".join(f'"{re.escape(word)}"' for word in words)
    assert re.search(rf"invoke\(\s*{called}", words_of_tests()), (
        f"no test calls invoke({', '.join(map(repr, words))}, ...)"
    )


@pytest.mark.parametrize("context", LEAVES, ids=name_of)
def test_the_command_is_ours_with_help_and_examples(context: click.Context) -> None:
    command = context.command
    assert isinstance(command, Command | RunnableGroup)
    assert command.help
    assert command.examples
    for example in shown_examples(context):
        assert context.command_path in example


@pytest.mark.parametrize("context", COMMANDS, ids=name_of)
def test_every_option_says_what_it_does(context: click.Context) -> None:
    assert isinstance(context.command, Command | Group)
    options = [param for param in context.command.params if isinstance(param, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize(
    "entry", [*KVESTIGATE, *K8S_CLI, *K8S_COLLECT], ids=lambda entry: entry.name
)
def test_the_table_says_what_the_command_says(entry: Entry) -> None:
    found = [
        context
        for context in COMMANDS
        if context.info_name == entry.name
        and context.parent is not None
        and context.parent.parent is None
    ]
    assert found
    for context in found:
        assert (context.command.help or "").splitlines()[0] == entry.summary


def test_every_command_runs_an_operation_but_for_a_few() -> None:
    runs = {words_of(context): operation_of(context) for context in LEAVES}
    assert {words for words, name in runs.items() if not name} == NO_OPERATION
    assert {name for name in runs.values() if name} == set(CATALOG)


def test_a_command_is_called_like_its_operation() -> None:
    other = {
        words_of(context): name
        for context in LEAVES
        if (name := operation_of(context))
        and name.replace(".", " ").replace("_", "-") != words_of(context)
    }
    assert other == {}


@pytest.mark.parametrize("name", CATALOG)
def test_a_command_begins_with_the_summary_of_its_operation(name: str) -> None:
    for context in LEAVES:
        if operation_of(context) == name:
            first = (context.command.help or "").splitlines()[0]
            assert first == operation(name).summary


def words_of(context: click.Context) -> str:
    return context.command_path.split(" ", 1)[1]


def operation_of(context: click.Context) -> str:
    assert isinstance(context.command, Command | RunnableGroup)
    runs = context.command.runs
    return runs if isinstance(runs, str) else runs.name


def test_generated_pages_and_pictures_are_up_to_date() -> None:
    import subprocess

    done = subprocess.run(
        [sys.executable, "-m", "tools.docs", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), f"run `make docs`: {done.stdout}{done.stderr}"
