"""Runs by the real shell: what is asked for is what runs, and its end is known."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.workspace.marker import MARKER, GpuId
from kvestigate.workspace.options import SIGNALS, KillOptions, RunOptions
from kvestigate.workspace.running import (
    BUSY,
    NOT_RUNNING,
    Run,
    RunState,
    follow_script,
    kill_script,
    launch_script,
    parse_run,
    read_script,
)
from kvestigate.workspace.spec import LAYOUT, StorageMode, StorageSpec, WorkspaceSpec
from kvestigate.workspace.survey import _SCRIPT as SURVEY
from kvestigate.workspace.survey import parse_survey


def sh(script: str, *args: str) -> subprocess.CompletedProcess[bytes]:
    """As on a host: a clean environment, the script on standard input."""
    environ = {"PATH": os.environ["PATH"], "HOME": "/"}
    return subprocess.run(
        ["sh", "-eu", "-s", "--", *args],
        input=script.encode("utf-8", "surrogateescape"),
        capture_output=True,
        timeout=30,
        env=environ,
    )


def ended(pid: int) -> None:
    """Wait for a process that is not our child."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([process], [], [], 20)[0]
    os.close(process)


@dataclass(frozen=True)
class Place:
    """A workspace on this machine."""

    spec: WorkspaceSpec

    @classmethod
    def make(cls, root: Path) -> Place:
        spec = WorkspaceSpec("w", "n", root=str(root), storage=StorageSpec(StorageMode.DISK))
        for name in LAYOUT:
            (root / "w" / name).mkdir(parents=True, exist_ok=True)
        (root / "w" / MARKER).touch()
        return cls(spec)

    @property
    def path(self) -> Path:
        return Path(self.spec.path)

    def start(
        self,
        *command: str,
        tag: str = "t",
        env: Mapping[str, str] | None = None,
        gpus: tuple[GpuId, ...] = (),
    ) -> int:
        options = RunOptions(self.spec, tag, command, env=env or {})
        done = sh(launch_script(options, gpus))
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    def wait(self, tag: str = "t") -> None:
        """Until the process that writes down how the run ended has done so."""
        ended(int((self.path / "pids" / f"{tag}.start").read_text().split()[0]))

    def log(self, tag: str = "t") -> bytes:
        return (self.path / "logs" / f"{tag}.log").read_bytes()

    def runs(self) -> dict[str, Run]:
        done = sh(SURVEY, self.spec.name, self.spec.root)
        assert done.returncode == 0, done.stderr
        [found] = parse_survey(done.stdout.decode("utf-8", "surrogateescape")).found
        return {run.tag: run for run in found.runs}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.make(tmp_path)


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
ODD = st.sampled_from(
    ["'", '"', "$(id)", "`id`", "\n", "\\", "a b", "*", "~", "-n", "", "\udcff", "!"]
)


@settings(max_examples=25)
@given(
    st.lists(WORDS | ODD, max_size=5),
    st.dictionaries(
        st.from_regex(r"[A-Z_][A-Z0-9_]{2,6}", fullmatch=True), WORDS | ODD, max_size=3
    ),
)
def test_any_words_arrive_as_they_are(words: list[str], env: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory(prefix="ws") as root:
        place = Place.make(Path(root))
        names = sorted({*env} - {"PATH", "HOME"})
        given_env = {name: env[name] for name in names}
        show = 'printf "%s\\0" "$@" ' + "".join(f'"${name}" ' for name in names)
        place.start("sh", "-c", show, "sh", *words, env=given_env)
        place.wait()
        told = place.log().decode("utf-8", "surrogateescape").split("\0")[:-1]
        expected = [*words, *given_env.values()]
        assert told == (expected or [""])
        assert place.runs()["t"].exit_code == 0


def test_a_run_knows_its_place_and_its_gpus(place: Place) -> None:
    gpus = (GpuId(3, "GPU-a"), GpuId(5, "GPU-b"))
    (place.path / "env" / "bin").mkdir()
    place.start("sh", "-c", 'pwd; echo "$CUDA_VISIBLE_DEVICES"; echo "${PATH%%:*}"', gpus=gpus)
    place.wait()
    assert place.log().decode().splitlines() == [
        f"{place.path}/code",
        "GPU-a,GPU-b",
        f"{place.path}/env/bin",
    ]
    meta = json.loads((place.path / "pids" / "t.meta").read_text())
    assert meta["gpus"] == [{"index": 3, "uuid": "GPU-a"}, {"index": 5, "uuid": "GPU-b"}]
    assert meta["command"][:2] == ["sh", "-c"]
    assert meta["started_at"].endswith("Z")


def test_a_run_without_gpus_sees_none(place: Place) -> None:
    place.start("sh", "-c", 'echo "[$CUDA_VISIBLE_DEVICES]"')
    place.wait()
    assert place.log() == b"[]\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("true",), 0),
        (("sh", "-c", "exit 3"), 3),
        (("sh", "-c", "kill -KILL $$"), 137),
        (("/no/such/program",), 127),
    ],
)
def test_how_a_run_ended_is_known(place: Place, command: tuple[str, ...], code: int) -> None:
    place.start(*command)
    place.wait()
    run = place.runs()["t"]
    assert (run.state, run.exit_code, run.command) == (RunState.EXITED, code, command)
    assert run.ended_at >= run.started_at > "2020"


def test_a_run_leads_a_group_that_is_signalled_as_a_whole(place: Place) -> None:
    pid = place.start("sh", "-c", "sleep 60 & sleep 60 & echo up; wait")
    assert os.getpgid(pid) == pid == os.getsid(pid)
    running = place.runs()["t"]
    assert (running.state, running.pid, running.exit_code) == (RunState.RUNNING, pid, None)
    members = psutil.Process(pid).children()
    assert sh(kill_script(str(place.path), "t", "TERM")).returncode == 0
    for member in members:
        ended(member.pid)
    place.wait()
    assert place.runs()["t"].exit_code == 128 + signal.SIGTERM
    assert sh(kill_script(str(place.path), "t", "TERM")).returncode == NOT_RUNNING


def test_an_interrupt_is_not_ignored(place: Place) -> None:
    place.start("sleep", "60")
    assert sh(kill_script(str(place.path), "t", "INT")).returncode == 0
    place.wait()
    assert place.runs()["t"].exit_code == 128 + signal.SIGINT


def test_a_tag_is_used_by_one_run_at_a_time(place: Place) -> None:
    place.start("sleep", "60")
    refused = sh(launch_script(RunOptions(place.spec, "t", ("true",)), ()))
    assert refused.returncode == BUSY
    place.start("true", tag="t.1")
    sh(kill_script(str(place.path), "t", "KILL"))
    place.wait()
    place.start("echo", "again")
    place.wait()
    assert place.log() == b"again\n"
    assert place.runs()["t"].exit_code == 0


def test_after_a_restart_of_the_node_the_end_is_not_known(place: Place) -> None:
    place.start("sleep", "60")
    started = place.path / "pids" / "t.start"
    lines = [line.split() for line in started.read_text().splitlines()]
    sh(kill_script(str(place.path), "t", "KILL"))
    place.wait()
    (place.path / "pids" / "t.exit").unlink()
    # The numbers have been given to others since.
    started.write_text("".join(f"{os.getpid()} {start} {boot}\n" for _, start, boot in lines))
    run = place.runs()["t"]
    assert (run.state, run.exit_code, run.ended_at) == (RunState.EXITED, None, "")
    assert sh(kill_script(str(place.path), "t", "TERM")).returncode == NOT_RUNNING


@pytest.mark.parametrize(("tail", "expected"), [(None, b"1\n2\n3\n"), (2, b"2\n3\n"), (0, b"")])
def test_the_log_is_read_and_followed_to_its_end(
    place: Place, tail: int | None, expected: bytes
) -> None:
    place.start("sh", "-c", "echo 1; echo 2; echo 3")
    place.wait()
    run = place.runs()["t"]
    assert sh(read_script(str(place.path), "t", tail, 1000)).stdout == expected
    assert sh(follow_script(str(place.path), run, tail)).stdout == expected


def test_following_ends_with_the_run(place: Place) -> None:
    os.mkfifo(place.path / "code" / "gate")
    place.start("sh", "-c", "echo before; cat gate; echo after")
    run = place.runs()["t"]
    words = ["sh", "-euc", follow_script(str(place.path), run, None)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "before\n"
        (place.path / "code" / "gate").write_text("open\n")
        assert following.stdout.read() == "open\nafter\n"


def test_a_very_long_log_is_cut_at_its_beginning(place: Place) -> None:
    (place.path / "logs" / "t.log").write_bytes(b"x" * 1000 + b"end\n")
    assert sh(read_script(str(place.path), "t", None, 8)).stdout == b"xxxxend\n"
    assert sh(read_script(str(place.path), "t", 1, 8)).stdout == b"xxxxend\n"


@given(st.text())
def test_any_line_can_be_read_as_a_run(line: str) -> None:
    parse_run(line)


@given(st.text())
def test_any_survey_can_be_read(text: str) -> None:
    parse_survey("at /x\n" + text.replace("memory ", ""))


SPEC = WorkspaceSpec("w", "n")


@pytest.mark.parametrize(
    ("tag", "command", "env", "message"),
    [
        ("a/b", ("true",), {}, "tag: 'a/b' cannot be the tag"),
        ("../x", ("true",), {}, "tag: '../x'"),
        ("", ("true",), {}, "tag: ''"),
        ("t", (), {}, "command: is empty"),
        ("t", ("a\0b",), {}, "command: 'a\\x00b' has a zero byte"),
        ("t", ("\ud800",), {}, "command: '\\ud800' cannot be written"),
        ("t", ("true",), {"A B": "x"}, "env: 'A B' cannot be the name"),
        ("t", ("true",), {"A;id": "x"}, "env: 'A;id'"),
        ("t", ("true",), {"CUDA_VISIBLE_DEVICES": "0"}, "env: CUDA_VISIBLE_DEVICES is set by"),
    ],
)
def test_what_cannot_run_is_refused(
    tag: str, command: tuple[str, ...], env: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        RunOptions(SPEC, tag, command, env=env)
    assert message in caught.value.message


def test_only_signals_are_signals() -> None:
    for name in SIGNALS:
        assert KillOptions(SPEC, "t", name).signal == name
    with pytest.raises(InputError, match="'9; id' is no signal"):
        KillOptions(SPEC, "t", "9; id")
