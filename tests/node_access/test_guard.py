"""The guard on its own, under each shell that is here: no cluster, just pipes."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections.abc import Sequence

import pytest

from kvestigate.node_access.guard import guarded, tells_of_no_shell

SHELLS = [
    words for words in (["dash"], ["bash"], ["busybox", "sh"]) if shutil.which(words[0]) is not None
]


def start(shell: Sequence[str], *command: str, stdin: int = 0) -> subprocess.Popen[bytes]:
    _, *words = guarded(command, stdin)
    return subprocess.Popen(
        [*shell, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        bufsize=0,
    )


def line_of(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def wait_until_gone(pid: int) -> None:
    """A child of somebody else: its end is seen on a descriptor."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ready, _, _ = select.select([descriptor], [], [], 30)
    finally:
        os.close(descriptor)
    assert ready, f"{pid} is still there"


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_nothing_of_the_guard_is_in_the_way_of_who_looks(shell: list[str]) -> None:
    look = "tr '\\0' ' ' </proc/$PPID/cmdline; env"
    process = start(shell, "sh", "-c", look)
    out, _ = process.communicate(timeout=30)
    assert b"trap" not in out
    assert b"GUARD=" not in out


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize(
    ("command", "sent", "code", "out", "err"),
    [
        (("true",), b"", 0, b"", b""),
        (("false",), b"", 1, b"", b""),
        (("sh", "-c", "exit 42"), b"", 42, b"", b""),
        (("sh", "-c", "kill -9 $$"), b"", 137, b"", b""),
        (("sh", "-c", "echo out; echo err >&2"), b"", 0, b"out\n", b"err\n"),
        (("echo", "two words", "$HOME", "*"), b"", 0, b"two words $HOME *\n", b""),
        (("cat",), b"", 0, b"", b""),
        (("cat",), b"some\0thing", 0, b"some\0thing", b""),
        (("head", "-c", "3"), b"x" * 200_000, 0, b"xxx", b""),
        (("wc", "-c"), b"x" * 200_000, 0, b"200000\n", b""),
    ],
)
def test_a_command_is_as_it_would_be_alone(
    shell: list[str], command: tuple[str, ...], sent: bytes, code: int, out: bytes, err: bytes
) -> None:
    with start(shell, *command, stdin=len(sent)) as process:
        assert process.stdin is not None
        process.stdin.write(sent)
        # The connection stands until the command has ended.
        assert process.wait(30) == code
        process.stdin.close()
        assert process.stdout is not None
        assert process.stderr is not None
        assert (process.stdout.read().strip(b" "), process.stderr.read()) == (out, err)


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("sent", [b"", b"input"])
def test_the_end_of_the_connection_ends_the_command_and_what_it_started(
    shell: list[str], sent: bytes
) -> None:
    script = "sleep 4321 & echo $!; wait"
    with start(shell, "sh", "-c", script, stdin=len(sent)) as process:
        assert process.stdin is not None
        process.stdin.write(sent)
        child = int(line_of(process))
        process.stdin.close()
        process.wait(30)
        wait_until_gone(child)


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_what_left_the_session_stays_and_what_the_command_left_behind_too(
    shell: list[str],
) -> None:
    script = "setsid sleep 4321 >/dev/null 2>&1 & echo $!; sleep 4322 >/dev/null 2>&1 & echo $!"
    with start(shell, "sh", "-c", script) as process:
        assert process.stdin is not None
        pids = [int(line_of(process)), int(line_of(process))]
        assert process.wait(30) == 0
        process.stdin.close()
        for pid in pids:
            os.kill(pid, 0)
            os.kill(pid, 9)


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_group_that_is_not_the_guards_own_is_left_alone(shell: list[str]) -> None:
    """As if a runtime started the command in the group of the container's first process."""
    _, *words = guarded(("sh", "-c", "echo $$; exec sleep 4322"))
    first = 'echo $$; "$@" 0<&0; sleep 4321'
    with subprocess.Popen(
        ["sh", "-c", first, "first", *shell, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        bufsize=0,
    ) as container:
        try:
            assert container.stdin is not None
            line_of(container)
            command = int(line_of(container))
            container.stdin.close()
            wait_until_gone(command)
            assert container.poll() is None
        finally:
            os.killpg(container.pid, 9)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('OCI runtime exec failed: exec: "sh": executable file not found in $PATH: unknown', True),
        ("executable file `sh` not found in $PATH", True),
        ('exec: "sh": this container is simulated and knows only df, echo', True),
        ('exec: "sh": stat sh: no such file or directory', True),
        ('command ["sh" "-c" "..."] timed out', False),
        ("container not found", False),
        ('pods "sh-0" not found', False),
    ],
)
def test_a_missing_shell_is_told_from_other_refusals(message: str, expected: bool) -> None:
    assert tells_of_no_shell(message) is expected
