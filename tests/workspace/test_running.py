"""Runs by the real shell: what is asked for is what runs, and its end is known."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.workspace.fence import Fencing
from kvestigate.workspace.limits import CONFINE, Kept, Limits
from kvestigate.workspace.marker import GpuId, Marker, encode, marker_path
from kvestigate.workspace.options import SIGNALS, KillOptions, RunOptions
from kvestigate.workspace.running import (
    BUSY,
    NO_PROGRAM,
    NOT_RUNNING,
    Launching,
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
        file = Path(marker_path(spec))
        file.parent.mkdir(exist_ok=True)
        file.write_text(encode(Marker(workspace=spec, created_at="")))
        return cls(spec)

    @property
    def marker(self) -> Marker:
        return Marker(workspace=self.spec, created_at="")

    @property
    def path(self) -> Path:
        return Path(self.spec.path)

    def start(
        self,
        *command: str,
        tag: str = "t",
        env: Mapping[str, str] | None = None,
        gpus: tuple[GpuId, ...] = (),
        limits: Limits = Limits(),  # noqa: B008  it is frozen
    ) -> int:
        options = RunOptions(self.spec, tag, command, env=env or {}, limits=limits)
        done = sh(launch_script(Launching(options, self.marker, gpus)))
        assert done.returncode == 0, done.stderr
        return int(done.stdout.split()[0])

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


def test_a_run_goes_on_though_who_starts_it_is_killed(place: Place) -> None:
    """A gateway that is killed takes with it the shell that waits for the run to begin."""
    os.mkfifo(place.path / "code" / "said")
    said = os.open(place.path / "code" / "said", os.O_RDWR)
    options = RunOptions(place.spec, "t", ("sh", "-c", "echo begun >said"))
    script = launch_script(Launching(options, place.marker, ()))
    before, between, _ = script.partition("read -r pid kept")
    assert between
    killed = sh(before + "kill -9 $$\n")
    assert killed.returncode == -signal.SIGKILL
    assert select.select([said], [], [], 20)[0]
    assert os.read(said, 100) == b"begun\n"
    os.close(said)
    place.wait()
    assert place.runs()["t"].exit_code == 0
    place.start("true")


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


def test_variables_may_be_called_as_those_of_the_scripts(place: Place) -> None:
    limits = Limits("1", "1Gi")
    options = RunOptions(place.spec, "t", ("x",), limits=limits)
    words = launch_script(Launching(options, place.marker, ()))
    env = {name: f"own {name}" for name in re.findall(r"\b[a-z_]+\b", words)}
    show = "import json, os; print(json.dumps(dict(os.environ)))"
    place.start(sys.executable, "-c", show, env=env, limits=limits)
    place.wait()
    seen = json.loads(place.log())
    assert {name: seen.get(name) for name in env} == env
    assert {name for name in seen if name.startswith("KVESTIGATE_")} == {
        "KVESTIGATE_TAG",
        "KVESTIGATE_WORKSPACE",
    }


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
    assert meta["cmd"][:2] == ["sh", "-c"]
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
        (("sh", "-c", "/no/such/program"), 127),
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
    options = RunOptions(place.spec, "t", ("true",))
    refused = sh(launch_script(Launching(options, place.marker, ())))
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
    with pytest.raises(InputError, match="'9; id' is not a signal"):
        KillOptions(SPEC, "t", "9; id")


MEMORY = "import sys; kept = bytearray(512 << 20); print('had it')"


def test_a_run_without_limits_has_none(place: Place) -> None:
    place.start(sys.executable, "-c", MEMORY)
    place.wait()
    run = place.runs()["t"]
    assert (run.limits, run.kept) == (Limits(), Kept())
    assert place.log() == b"had it\n"


def test_memory_is_kept_by_what_this_machine_has(place: Place) -> None:
    place.start(sys.executable, "-c", MEMORY, limits=Limits(memory="200Mi"))
    place.wait()
    run = place.runs()["t"]
    assert run.limits == Limits(memory="200Mi")
    assert run.kept.memory in ("systemd", "cgroup", "rlimit")
    assert run.kept.cpu == ""
    assert run.exit_code != 0
    assert b"had it" not in place.log()


def test_cpu_is_kept_by_what_this_machine_has(place: Place) -> None:
    """Whole CPUs where nothing finer is there."""
    shown = "import os; print(len(os.sched_getaffinity(0)))"
    place.start(sys.executable, "-c", shown, limits=Limits(cpu="700m"))
    place.wait()
    run = place.runs()["t"]
    assert run.kept.cpu in ("systemd", "cgroup", "taskset")
    assert run.kept.memory == ""
    if run.kept.cpu == "taskset":
        assert place.log() == b"1\n"


def test_more_cpus_than_there_are_are_all_of_them(place: Place) -> None:
    shown = "import os; print(len(os.sched_getaffinity(0)))"
    place.start(sys.executable, "-c", shown, limits=Limits(cpu="5000"))
    place.wait()
    assert place.log() == f"{len(os.sched_getaffinity(0))}\n".encode()


class Tools:
    """A host that has some programs and not others."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        for name in ("sh", "sed", "id", "cat", "mkdir", "rmdir", "timeout", "seq", "tail", "head"):
            self.link(name)
        for name in ("paste", "env"):
            self.link(name)

    def link(self, name: str) -> None:
        found = shutil.which(name)
        assert found is not None
        (self._directory / name).symlink_to(found)

    def add(self, name: str, script: str) -> None:
        (self._directory / name).write_text(f"#!/bin/sh\n{script}\n")
        (self._directory / name).chmod(0o755)

    def chosen(self, limits: Limits, base: Path) -> list[str]:
        """What keeps CPU and memory, and what the command would be started by."""
        ending = 'echo "cpu $cpu_by"; echo "memory $memory_by"; echo "wrapper $wrapper"'
        start = f"cpu_by= memory_by= wrapper= base={base}\n" + limits.assignments
        script = start + CONFINE.replace("/run/user/$(id -u)", str(self._directory)) + ending
        environ = {"PATH": str(self._directory), "KVESTIGATE_WORKSPACE": "/w"}
        done = subprocess.run(["/bin/sh", "-c", script], env=environ, capture_output=True)
        return done.stdout.decode().splitlines()


BOTH = Limits(cpu="1500m", memory="1Gi")


@pytest.mark.skipif(
    Path("/sys/fs/cgroup/cgroup.controllers").exists(), reason="this machine has cgroup v2"
)
@pytest.mark.parametrize(
    ("programs", "linked", "cpu", "memory"),
    [
        ({}, ["taskset", "renice"], "taskset", "rlimit"),
        ({}, ["renice"], "nice", "rlimit"),
        ({}, [], "", "rlimit"),
        ({"taskset": "exit 1"}, ["renice"], "nice", "rlimit"),
        ({"systemd-run": "exit 1"}, ["taskset"], "taskset", "rlimit"),
        ({"systemd-run": "exit 0"}, ["taskset"], "systemd", "systemd"),
    ],
)
def test_the_first_that_works_is_chosen(
    tmp_path: Path, programs: dict[str, str], linked: list[str], cpu: str, memory: str
) -> None:
    tools = Tools(tmp_path)
    for name in linked:
        tools.link(name)
    for name, script in programs.items():
        tools.add(name, script)
    found = tools.chosen(BOTH, tmp_path / "t")
    assert found[:2] == [f"cpu {cpu}".strip() if cpu else "cpu ", f"memory {memory}"]
    started_by_systemd = "systemd-run --user --scope" in found[2]
    assert started_by_systemd == (cpu == "systemd")
    if started_by_systemd:
        assert "-p CPUQuota=150% -p MemoryMax=1073741824 --" in found[2]


@pytest.mark.parametrize(
    ("cpu", "memory", "said"),
    [
        ("x", "", "limits.cpu"),
        ("1m", "", "limits.cpu: '1m' is less than 10m"),
        ("", "1Mi", "limits.memory: '1Mi' is less than 16Mi"),
        ("", "4GB", "limits.memory"),
    ],
)
def test_limits_that_mean_nothing_are_refused(cpu: str, memory: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Limits(cpu, memory)


@pytest.mark.parametrize("program", ["/no/such/program", "no-such-program", "./nothing"])
def test_a_program_that_does_not_exist_is_no_run(place: Place, program: str) -> None:
    options = RunOptions(place.spec, "t", (program,))
    done = sh(launch_script(Launching(options, place.marker, ())))
    assert done.returncode == NO_PROGRAM
    assert done.stderr.decode() == f"{program}: no such program\n"
    assert place.runs() == {}


def test_programs_of_the_workspace_are_found(place: Place) -> None:
    own = place.path / "env" / "bin"
    own.mkdir()
    (own / "mine").write_text("#!/bin/sh\necho mine\n")
    (own / "mine").chmod(0o755)
    place.start("mine")
    place.wait()
    assert place.log() == b"mine\n"


@pytest.mark.parametrize(("name", "env"), [("/root/secret", {}), ("x", {"PATH": "/root"})])
def test_a_fenced_run_learns_nothing_of_what_it_may_not_see(
    place: Place, name: str, env: dict[str, str]
) -> None:
    options = RunOptions(place.spec, "t", (name,), env=env)
    fenced = msgspec.structs.replace(
        place.marker, fencing=next(it for it in Fencing if it is not Fencing.NONE)
    )
    assert "no such program" not in launch_script(Launching(options, fenced, ()))


LARGE_RUNS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "a long argument": (("a" * 99_000,), {}),
    "many arguments": (("a",) * 19_000, {}),
    "control characters": (("\x01" * 16_000,), {}),
    "a long value": ((), {"LONG": "a" * 99_000}),
    "many values": ((), {f"V{number}": "a" * 490 for number in range(999)}),
    "long names": ((), {f"{'N' * 99}{number:02}": "" for number in range(90)}),
}


@pytest.mark.parametrize("case", LARGE_RUNS)
def test_the_largest_run_that_is_accepted_starts(place: Place, case: str) -> None:
    more, env = LARGE_RUNS[case]
    place.start("sh", "-c", "echo $#", "sh", *more, env=env)
    place.wait()
    assert place.log() == f"{len(more)}\n".encode()


@pytest.mark.parametrize(
    ("command", "env", "where"),
    [
        (("a" * 101_000,), {}, "command"),
        (("a",) * 26_000, {}, "command"),
        (("\x01" * 17_000,), {}, "command"),
        (("a",), {"LONG": "a" * 101_000}, "env.LONG"),
        (("a",), {f"V{number}": "a" * 90_000 for number in range(6)}, "env"),
        (("a",), {f"V{number}": "" for number in range(1_001)}, "env"),
        (("a",), {"N" * 10_001: ""}, "env"),
    ],
)
def test_what_no_host_could_start_is_refused(
    command: tuple[str, ...], env: dict[str, str], where: str
) -> None:
    spec = WorkspaceSpec("w", "n", storage=StorageSpec(StorageMode.DISK))
    with pytest.raises(InputError) as caught:
        RunOptions(spec, "t", command, env=env)
    assert caught.value.where == where
