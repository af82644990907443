"""What the shell is told: output, messages and exit codes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from kvestigate import errors
from kvestigate.cli.command import command
from kvestigate.cli.group import Group, group
from kvestigate.cli.main import K8S_CLI_PROGRAM, K8S_COLLECT_PROGRAM, KVESTIGATE_PROGRAM
from kvestigate.cli.options import GlobalOptions
from tests.cli.conftest import Invoke


def failing_with(raised: Callable[[], BaseException]) -> Group:
    """A program whose command fails, at once or in its coroutine."""

    @group("toy")
    def toy() -> None:
        """A toy."""

    @command("sync", examples=(), into=toy)
    def sync(options: GlobalOptions) -> None:
        raise raised()

    @command("async", examples=(), into=toy)
    async def run(options: GlobalOptions) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_raise(raised()))

    return toy


async def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (errors.KvestigateError("no"), 1, "error: no\n"),
        (errors.UsageError("no", hint="do"), 2, "error: no\nhint: do\n"),
        (errors.ConfigError("no"), 3, "error: no\n"),
        (errors.Forbidden("no", hint="ask"), 4, "error: no\nhint: ask\n"),
        (
            errors.Unauthorized("no"),
            4,
            "error: no\n"
            "hint: log in again; `kvestigate debug context` shows what is sent as credentials\n",
        ),
        (errors.NotFound("pods \x1b[2J", hint="\x07"), 5, "error: pods ^[[2J\nhint: ^G\n"),
        (errors.NotFound("no"), 5, "error: no\n"),
        (errors.Conflict("no"), 6, "error: no\n"),
        (errors.DeadlineExceeded("no"), 7, "error: no\n"),
        (
            KeyError("pods"),
            1,
            "error: unexpected KeyError: 'pods'\n"
            "hint: this is a defect of kvestigate, sorry; -v shows where it happened\n",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_failures_become_sentences_and_codes(
    invoke: Invoke, how: str, error: Exception, code: int, message: str
) -> None:
    outcome = invoke(how, root=failing_with(lambda: error))
    assert outcome.code == code
    if how == "async" and isinstance(error, KeyError):
        message = message.replace(
            "KeyError: 'pods'", "ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)"
        )
    assert (outcome.out, outcome.err) == ("", message)


def test_verbose_shows_where_a_defect_is(invoke: Invoke) -> None:
    outcome = invoke("sync", "-v", root=failing_with(lambda: KeyError("pods")))
    assert outcome.code == 1
    assert "Traceback" in outcome.err
    assert outcome.err.endswith("please report the lines above\n")


def test_a_defect_among_expected_failures_is_what_is_shown(invoke: Invoke) -> None:
    def raised() -> BaseException:
        return ExceptionGroup("both", [errors.NotFound("no"), KeyError("pods")])

    outcome = invoke("sync", root=failing_with(raised))
    assert outcome.code == 1
    assert "unexpected ExceptionGroup" in outcome.err


def test_an_interrupt_is_quiet(invoke: Invoke) -> None:
    outcome = invoke("sync", root=failing_with(KeyboardInterrupt))
    assert (outcome.code, outcome.err.strip()) == (130, "")


def test_a_command_may_choose_its_exit_code(invoke: Invoke) -> None:
    @command("verdict", examples=())
    async def verdict(options: GlobalOptions) -> int:
        click.echo("bad")
        return 1

    outcome = invoke(root=verdict)
    assert (outcome.code, outcome.out) == (1, "bad\n")


def test_help_comes_in_headings_with_exit_codes(invoke: Invoke) -> None:
    outcome = invoke("--help")
    assert outcome.code == 0
    assert "\nDiagnose:\n  kubeconfig " in outcome.out
    assert "Exit codes: 0 done, 1 failed, 2 usage" in outcome.out


@pytest.mark.parametrize("args", [(), ("debug",)])
def test_without_a_command_help_is_shown(invoke: Invoke, args: tuple[str, ...]) -> None:
    outcome = invoke(*args)
    assert (outcome.code, outcome.out) == (0, invoke(*args, "--help").out)
    assert outcome.err == ""


@pytest.mark.parametrize(
    "root", [KVESTIGATE_PROGRAM, K8S_CLI_PROGRAM, K8S_COLLECT_PROGRAM], ids=lambda root: root.name
)
def test_every_program_says_its_version_and_help(invoke: Invoke, root: click.Command) -> None:
    from kvestigate import __version__

    assert invoke("--version", root=root).out == f"{root.name} {__version__}\n"
    assert invoke("--help", root=root).out.startswith(f"Usage: {root.name} [OPTIONS]")


def test_help_of_a_group_says_all_of_it_and_names_the_program(invoke: Invoke) -> None:
    outcome = invoke("jobs", "--help", root=K8S_CLI_PROGRAM)
    assert "..." not in outcome.out.replace("[ARGS]...", "").replace("--context, ...", "")
    assert "see `k8s-cli --help`" in outcome.out
    assert "see `kvestigate --help`" in invoke("jobs", "submit", "--help").out


@pytest.mark.parametrize("script", ["kvestigate", "k8s-cli", "k8s-collect"])
def test_the_console_scripts_exist(script: str) -> None:
    from importlib.metadata import entry_points

    (entry,) = entry_points(group="console_scripts", name=script)
    assert callable(entry.load())


def test_python_dash_m_is_the_same_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kvestigate", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("kvestigate ")


def test_a_closed_pipe_is_quiet() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as stdout:
        done = subprocess.run(
            [sys.executable, "-m", "kvestigate", "--help"],
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, b"")


INTERRUPTED = """
import asyncio, sys
from kvestigate.cli.command import command
from kvestigate.cli.main import run

@command("wait", examples=())
async def wait(options):
    print("ready", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("closed", flush=True)

sys.exit(run(wait, []))
"""


def test_ctrl_c_unwinds_what_runs_and_exits_130() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=30) == ("closed\n", "")
    finally:
        child.kill()  # or whatever is wrong would be waited for without end
        child.communicate()
    assert child.returncode == 130


def test_characters_that_a_terminal_lacks_are_shown_by_their_numbers(home: Path) -> None:
    (home / "s.yaml").write_text(
        "apiVersion: kvestigate.dev/v1\nkind: Scenario\nmetadata: {name: small}\n"
        "spec: {summary: 日本, nodes: [{name: a}]}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "kvestigate", "scenario", "show", "./s.yaml"],
        env={"PATH": os.environ["PATH"], "PYTHONIOENCODING": "ascii:strict"},
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"summary: \\u65e5\\u672c" in done.stdout
