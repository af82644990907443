"""What every host that runs real processes promises, on each of them."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kvestigate.cluster.node.gpu.model import Load, node_gpus
from kvestigate.cluster.node.hosts.disk import remove_tree
from kvestigate.cluster.node.hosts.interface import (
    Bind,
    Host,
    Launch,
    LaunchFailed,
    Process,
    RunKey,
)
from kvestigate.cluster.node.hosts.logs import LogQuery
from tests.cluster.node.conftest import AS_ROOT, LONG, MakeHost

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}


def launch(*argv: str, attempt: int = 0, **more: Any) -> Launch:
    return Launch(RunKey("pod-1", "main", attempt), argv, more.pop("env", ENV), **more)


@pytest.fixture
async def host(make_host: MakeHost) -> AsyncIterator[Host]:
    made = make_host("node-1")
    await made.open()
    yield made
    await made.close(keep=False)


async def output(process: Process) -> str:
    pieces = [piece async for piece in process.log.read(LogQuery())]
    return b"".join(pieces).decode()


async def first_line(process: Process) -> str:
    """Wait for a container to say something."""
    async with asyncio.timeout(LONG):
        async for piece in process.log.read(LogQuery(follow=True)):
            return piece.decode()
    raise AssertionError("it said nothing")


async def run_in(host: Host, process: Process, *argv: str, stdin: bytes | None = None) -> Any:
    session = await host.enter(process, argv, tty=False, stdin=stdin is not None)
    if stdin is not None:
        await session.write(stdin)
        session.close_stdin()
    said: dict[str, bytes] = {"stdout": b"", "stderr": b""}
    async with asyncio.timeout(LONG):
        while (piece := await session.read()) is not None:
            said[piece[0]] += piece[1]
        ending = await session.ended
    await session.aclose()
    return ending.code, said["stdout"].decode(), said["stderr"].decode()


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill $$", 143)]
)
async def test_a_run_ends_with_its_exit_code(host: Host, script: str, code: int) -> None:
    process = await host.start(launch("sh", "-c", script))
    assert (await process.ended).code == code


async def test_output_is_logged_with_nothing_of_ours_in_it(host: Host) -> None:
    process = await host.start(launch("sh", "-c", "echo out; echo err >&2; printf end; kill $$"))
    await process.ended
    assert sorted((await output(process)).split()) == ["end", "err", "out"]


async def test_a_lot_of_output_is_complete(host: Host) -> None:
    process = await host.start(launch("sh", "-c", "seq 1 50000"))
    await process.ended
    assert (await output(process)).split() == [str(number) for number in range(1, 50001)]


async def test_the_environment_is_the_containers_own(host: Host) -> None:
    env = {**ENV, "WHO": "me and you"}
    process = await host.start(launch("sh", "-c", 'echo "$WHO:$SECRET_OF_OURS"', env=env))
    await process.ended
    assert await output(process) == "me and you:\n"


@pytest.mark.parametrize("program", ["no-such-program", "/no/such/program"])
async def test_a_program_that_is_not_there_cannot_be_started(host: Host, program: str) -> None:
    with pytest.raises(LaunchFailed, match=program) as failure:
        await host.start(launch(program))
    assert failure.value.reason == "ContainerCannotRun"


async def test_a_signal_reaches_the_command(host: Host) -> None:
    script = "trap 'echo asked; exit 4' TERM; echo up; while :; do sleep 0.05; done"
    process = await host.start(launch("sh", "-c", script))
    await first_line(process)
    process.signal(signal.SIGTERM)
    async with asyncio.timeout(LONG):
        assert (await process.ended).code == 4
    assert await output(process) == "up\nasked\n"


async def test_a_kill_ends_what_the_container_started_too(host: Host, tmp_path: Path) -> None:
    script = "setsid sh -c 'echo $$; exec sleep 1000' & wait"
    process = await host.start(launch("sh", "-c", script, env={**ENV, "LEFT": "behind-7261"}))
    await first_line(process)
    process.kill()
    async with asyncio.timeout(LONG):
        assert (await process.ended).code == 137
    await asyncio.to_thread(_until_none_has, b"LEFT=behind-7261")


async def test_what_a_container_leaves_in_the_background_ends_with_it(host: Host) -> None:
    script = "setsid sleep 1000 & echo started"
    process = await host.start(launch("sh", "-c", script, env={**ENV, "LEFT": "behind-1874"}))
    async with asyncio.timeout(LONG):
        assert (await process.ended).code == 0
    await asyncio.to_thread(_until_none_has, b"LEFT=behind-1874")


async def test_volumes_are_seen_at_their_paths(host: Host) -> None:
    assert host.volumes_root is not None
    source = host.volumes_root / "pod-1" / "data"
    source.mkdir(parents=True)
    (source / "given").write_text("hello\n")
    binds = (Bind(str(source), "/data"),)
    script = "cat /data/given; echo made >/data/new"
    process = await host.start(launch("sh", "-c", script, binds=binds))
    assert (await process.ended).code == 0
    assert await output(process) == "hello\n"
    assert (source / "new").read_text() == "made\n"


async def test_commands_run_inside_a_container(host: Host) -> None:
    env = {**ENV, "WHO": "inside"}
    process = await host.start(launch("sleep", "1000", env=env))
    script = 'echo "$WHO"; cat; echo err >&2; exit 3'
    assert await run_in(host, process, "sh", "-c", script, stdin=b"typed\n") == (
        3,
        "inside\ntyped\n",
        "err\n",
    )


@AS_ROOT
async def test_commands_run_as_the_containers_user(host: Host) -> None:
    process = await host.start(launch("sleep", "60", user=1234, group=56, groups=(78,)))
    said = await run_in(host, process, "sh", "-c", "id -u >/dev/stdout; id -G >/dev/stderr")
    assert said == (0, "1234\n", "56 78\n")


@AS_ROOT
@pytest.mark.parametrize("tty", [False, True])
async def test_a_user_may_open_the_output_anew(host: Host, tty: bool) -> None:
    script = "echo out >/dev/stdout && echo err >/dev/stderr && head -c0 /dev/stdin"
    process = await host.start(launch("sh", "-c", script, user=1234, tty=tty))
    assert (await process.ended).code == 0
    assert sorted((await output(process)).split()) == ["err", "out"]


def descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize(
    ("word", "why"),
    [("x" * 200_000, "Argument list too long"), ("x\0y", "embedded null byte")],
    ids=["long", "null"],
)
async def test_what_the_machine_cannot_start_is_told_and_leaves_nothing(
    host: Host, word: str, why: str, tty: bool
) -> None:
    process = await host.start(launch("sleep", "60"))
    before = descriptors()
    with pytest.raises(LaunchFailed, match=why):
        await host.start(launch("true", attempt=1, env={**ENV, "WORD": word}, tty=tty))
    with pytest.raises(LaunchFailed, match=why):
        await host.enter(process, ("true", word), tty=tty, stdin=False)
    assert descriptors() == before


async def test_a_terminal_is_one_and_has_the_size_it_is_told(host: Host) -> None:
    process = await host.start(launch("sleep", "1000"))
    session = await host.enter(process, ("sh",), tty=True, stdin=True)
    session.resize(120, 40)
    await session.write(b"test -t 0 && test -t 1 && stty size; exit 6\n")
    said = b""
    async with asyncio.timeout(LONG):
        while (piece := await session.read()) is not None:
            said += piece[1]
        assert (await session.ended).code == 6
    await session.aclose()
    assert b"40 120" in said


async def test_a_container_with_a_terminal_can_be_typed_to(host: Host) -> None:
    process = await host.start(launch("sh", tty=True, stdin=True))
    process.write_stdin(b"echo $((40 + 2)); exit 5\n")
    async with asyncio.timeout(LONG):
        assert (await process.ended).code == 5
    assert "42" in await output(process)


async def test_stdin_reaches_a_container(host: Host) -> None:
    process = await host.start(launch("sh", "-c", "read line; echo got $line", stdin=True))
    process.write_stdin(b"it\n")
    async with asyncio.timeout(LONG):
        await process.ended
    assert await output(process) == "got it\n"


@pytest.mark.parametrize("tty", [False, True])
async def test_a_run_outlives_its_agent(make_host: MakeHost, tty: bool) -> None:
    if tty and "directory" in type(make_host("node-1")).__module__:
        pytest.skip("the directory host keeps no terminals over a restart of the agent")
    first = make_host("node-1")
    await first.open()
    script = "echo before; read line; echo after; exit 9"
    started = await first.start(launch("sh", "-c", script, stdin=True, tty=tty))
    await first_line(started)
    await first.close(keep=True)
    second = make_host("node-1")
    await second.open()
    try:
        (found,) = await second.adopt()
        assert found.key == started.key
        assert found.started_at == started.started_at
        assert not found.ended.done()
        found.write_stdin(b"go\n")
        async with asyncio.timeout(LONG):
            assert (await found.ended).code == 9
        assert [line for line in (await output(found)).split() if line != "go"] == [
            "before",
            "after",
        ]
    finally:
        await second.close(keep=False)


async def test_an_end_without_an_agent_is_learnt_later(make_host: MakeHost, tmp_path: Path) -> None:
    first = make_host("node-1")
    await first.open()
    assert first.volumes_root is not None
    flag = first.volumes_root / "pod-1" / "flags"
    flag.mkdir(parents=True)
    script = "echo up; until [ -e /flags/go ]; do sleep 0.02; done; echo late; exit 11"
    started = await first.start(launch("sh", "-c", script, binds=(Bind(str(flag), "/flags"),)))
    await first_line(started)
    await first.close(keep=True)
    (flag / "go").touch()
    await asyncio.to_thread(_until_there, tmp_path / "nodes", "exit")
    second = make_host("node-1")
    await second.open()
    try:
        (found,) = await second.adopt()
        assert (await found.ended).code == 11
        assert await output(found) == "up\nlate\n"
    finally:
        await second.close(keep=False)


async def test_the_disk_of_a_node_is_there_when_it_starts_again(
    make_host: MakeHost, tmp_path: Path
) -> None:
    places = ("/opt/kept", "/data/kept", "/mnt/kept")
    binds = tuple(Bind(path, path, on_node=True, create="directory") for path in places)
    write = "; ".join(f"echo kept >{path}/file" for path in places)
    locked = "mkdir /opt/kept/locked; touch /opt/kept/locked/file; chmod 000 /opt/kept/locked"
    for script, said in (
        (f"{write}; {locked}", ""),
        ("cat " + " ".join(f"{path}/file" for path in places), "kept\n" * 3),
    ):
        host = make_host("node-1")
        await host.open()
        assert await host.adopt() == []
        process = await host.start(launch("sh", "-c", script, binds=binds))
        assert (await process.ended).code == 0
        assert await output(process) == said
        await host.close(keep=False)
        assert len(list((tmp_path / "nodes" / "node-1").iterdir())) == 1, "nothing but the disk"
    remove_tree(tmp_path / "nodes")
    assert not (tmp_path / "nodes").exists()


async def test_a_forgotten_pod_leaves_nothing(host: Host, tmp_path: Path) -> None:
    process = await host.start(launch("true"))
    await process.ended
    await host.forget("pod-1")
    assert not list((tmp_path / "nodes").rglob("pod-1"))


async def test_the_end_of_a_run_is_none_of_its_twin_on_another_node(make_host: MakeHost) -> None:
    """A plane that was forked has pods with the uids of its origin's."""
    hosts = [make_host("node-1"), make_host("node-2")]
    for one in hosts:
        await one.open()
    lasting, brief = [
        await one.start(launch("sh", "-c", "echo up; read -r _; exit 3", stdin=True))
        for one in hosts
    ]
    await first_line(lasting)
    brief.kill()
    assert (await brief.ended).code == 137
    lasting.write_stdin(b"\n")
    assert (await lasting.ended).code == 3
    for one in hosts:
        await one.close(keep=False)


async def test_nvidia_smi_tells_of_the_simulated_gpus(host: Host) -> None:
    gpus = node_gpus("node-1", 2, "T4", (Load.BUSY,))
    await host.install_gpus(gpus)
    env = {**ENV, "NVIDIA_VISIBLE_DEVICES": gpus[1].uuid}
    process = await host.start(launch("nvidia-smi", "-L", env=env))
    assert (await process.ended).code == 0
    assert await output(process) == f"GPU 0: Tesla T4 (UUID: {gpus[1].uuid})\n"


async def test_usage_is_measured(host: Host) -> None:
    process = await host.start(launch("sh", "-c", "echo up; exec sleep 1000"))
    await first_line(process)
    assert host.usage(process).memory_bytes > 0


def _until_there(root: Path, name: str) -> None:
    """Until the shim has written down how its command ended."""
    deadline = time.monotonic() + LONG
    while not any(path.read_text() for path in root.rglob(name) if "pods" in path.parts):
        assert time.monotonic() < deadline
        os.sched_yield()


def _until_none_has(variable: bytes) -> None:
    """Killed processes take a moment to go."""
    deadline = time.monotonic() + LONG
    while found := _with_variable(variable):
        assert time.monotonic() < deadline, found


def _with_variable(text: bytes) -> list[str]:
    """The processes that have a variable."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if text in (entry / "environ").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found
