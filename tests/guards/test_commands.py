"""Every command is documented, has examples, and is tried by a test."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import click
import pytest

from kvestigate.catalog import OPERATIONS
from kvestigate.cli.commands import K8S_CLI, K8S_COLLECT, KVESTIGATE, Entry
from kvestigate.cli.group import Command, Group, RunnableGroup
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

NO_OPERATION = {"completion", "plane serve", "plane kubeconfig", "up", "demo", "down", "status"} | {
    "scenario list",
    "scenario show",
    "app render",
    "app plan",
    "app up",
    "app down",
    "app diff",
    "app status",
    "app list",
    "audit diff",
    "cybernet call",
    "cybernet emit-helper",
    "cybernet hash-token",
    "cybernet init",
    "cybernet mcp-server",
    "cybernet serve",
    "cybernet status",
    "auth login",
    "auth logout",
    "auth token",
    "auth whoami",
    "kubeconfig analyze",
    "kubeconfig convert",
    "kubeconfig diff",
    "kubeconfig verify",
    "jobs attach",
    "jobs cancel",
    "jobs exec",
    "jobs serve",
    "volumes cp",
    "serve",
    "workspace apply",
    "workspace cordon",
    "workspace export",
    "workspace uncordon",
    "fanout manifest",
    "collect watch",
    "collect from-file",
    "watch",
    "from-file",
}
"""About this machine and its files, endless streams, or what hands out credentials: nothing for
the gateway."""


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
    for example in command.examples:
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


def test_the_catalog_and_the_commands_are_the_same_list() -> None:
    commands = {context.command_path.split(" ", 1)[1] for context in LEAVES}
    operations = [operation.name.replace(".", " ") for operation in OPERATIONS]
    assert len(operations) == len(set(operations))
    assert commands - NO_OPERATION == set(operations)


def test_the_reference_pages_are_what_help_says() -> None:
    import subprocess

    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "docs.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), f"run `make docs`: {done.stdout}{done.stderr}"
