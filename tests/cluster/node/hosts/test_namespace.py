"""What only nodes made of namespaces can do."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kvestigate.cluster.node.hosts import cgroups, machine
from kvestigate.cluster.node.hosts.boot import DISK
from kvestigate.cluster.node.hosts.interface import (
    Bind,
    Ceiling,
    Launch,
    LaunchFailed,
    Propagation,
    RunKey,
)
from kvestigate.cluster.node.hosts.namespace import NamespaceHost, best_host
from tests.cluster.node.hosts.test_hosts import ENV, first_line, launch, output, run_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")

ROOT = Bind("/", "/host", on_node=True, propagation=Propagation.BOTH)


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[list[NamespaceHost]]:
    """Two nodes of one machine."""
    shared = tmp_path / "shared"
    shared.mkdir()
    made = [
        NamespaceHost(tmp_path / "nodes" / name, name, now=time.time, shared=[str(shared)])
        for name in ("one", "two")
    ]
    for host in made:
        await host.open()
    yield made
    for host in made:
        await host.close(keep=False)


async def said(host: NamespaceHost, script: str, *binds: Bind) -> str:
    process = await host.start(launch("sh", "-c", script, binds=binds, attempt=time.time_ns()))
    await process.ended
    return await output(process)


async def test_nodes_have_their_own_names_files_and_processes(nodes: list[NamespaceHost]) -> None:
    one, two = nodes
    await said(one, "echo mine >/var/tmp/kvestigate-test")
    assert await said(one, "cat /var/tmp/kvestigate-test") == "mine\n"
    assert "No such file" in await said(two, "cat /var/tmp/kvestigate-test")
    assert not await asyncio.to_thread(Path("/var/tmp/kvestigate-test").exists)
    assert await said(one, "hostname") == "one\n"
    pids = await said(one, "ls -d /proc/[0-9]* | wc -l")
    assert int(pids) < 8


async def test_a_container_is_named_after_its_pod(nodes: list[NamespaceHost]) -> None:
    process = await nodes[0].start(launch("hostname", hostname="web-0"))
    await process.ended
    assert await output(process) == "web-0\n"
    assert await said(nodes[0], "hostname") == "one\n"


async def test_the_nodes_state_is_hidden_from_its_containers(
    nodes: list[NamespaceHost], tmp_path: Path
) -> None:
    assert await said(nodes[0], f"ls -A {tmp_path}/nodes 2>/dev/null") == ""


async def test_the_root_of_the_node_can_be_entered_and_mounted_in(
    nodes: list[NamespaceHost],
) -> None:
    """What a privileged DaemonSet with hostPath / does."""
    script = (
        "mkdir -p /host/mnt/new; mount -t tmpfs new /host/mnt/new; echo there >/host/mnt/new/file;"
        "chroot /host cat /mnt/new/file"
    )
    assert await said(nodes[0], script, ROOT) == "there\n"
    # A container that comes later sees the mount, as the node does; another node does not.
    assert await said(nodes[0], "cat /mnt/new/file") == "there\n"
    assert await said(nodes[1], "ls /mnt/new 2>/dev/null") == ""


@pytest.mark.parametrize(("create", "kind"), [("directory", "directory"), ("file", "regular")])
async def test_a_host_path_is_made_on_its_node(
    nodes: list[NamespaceHost], create: str, kind: str
) -> None:
    bind = Bind("/var/tmp/kvestigate-made", "/made", on_node=True, create=create)
    assert kind in await said(nodes[0], "stat -c %F /made", bind)
    assert kind in await said(nodes[0], "stat -c %F /var/tmp/kvestigate-made")
    assert "cannot stat" in await said(nodes[1], "stat /var/tmp/kvestigate-made")


async def test_a_host_path_that_is_not_there_is_refused(nodes: list[NamespaceHost]) -> None:
    bind = Bind("/var/tmp/kvestigate-absent", "/made", on_node=True)
    with pytest.raises(LaunchFailed, match="kvestigate-absent"):
        await nodes[0].start(launch("true", binds=(bind,)))


async def test_a_private_mount_stays_in_its_container(nodes: list[NamespaceHost]) -> None:
    await said(nodes[0], "mkdir -p /mnt/own; mount -t tmpfs own /mnt/own; touch /mnt/own/x")
    assert await said(nodes[0], "ls /mnt/own") == ""


async def test_memory_volumes_are_shared_by_a_pods_containers(nodes: list[NamespaceHost]) -> None:
    source = nodes[0].volumes_root / "pod-1" / "mem"
    source.mkdir(parents=True)
    bind = Bind(str(source), "/mem", memory=1024 * 1024)
    assert "tmpfs" in await said(nodes[0], "echo kept >/mem/x; stat -f -c %T /mem", bind)
    assert await said(nodes[0], "cat /mem/x", bind) == "kept\n"
    assert "No space" in await said(nodes[0], "head -c 2000000 /dev/zero >/mem/y", bind)
    await nodes[0].forget("pod-1")
    assert not source.exists()


async def test_read_only_volumes_refuse_writes(nodes: list[NamespaceHost]) -> None:
    source = nodes[0].volumes_root / "pod-1" / "conf"
    source.mkdir(parents=True)
    bind = Bind(str(source), "/conf", read_only=True)
    assert "Read-only" in await said(nodes[0], "touch /conf/x", bind)


async def test_shared_directories_are_the_machines(
    nodes: list[NamespaceHost], tmp_path: Path
) -> None:
    bind = Bind(str(tmp_path / "shared"), "/claim")
    await said(nodes[0], "echo one >/claim/from", bind)
    assert await said(nodes[1], "cat /claim/from", bind) == "one\n"


async def test_exec_sees_the_containers_own_volumes(nodes: list[NamespaceHost]) -> None:
    source = nodes[0].volumes_root / "pod-1" / "data"
    source.mkdir(parents=True)
    binds = (Bind(str(source), "/data/deep"),)
    process = await nodes[0].start(
        launch("sh", "-c", "echo x >/data/deep/f; echo; sleep 1000", binds=binds)
    )
    await first_line(process)
    assert await run_in(nodes[0], process, "cat", "/data/deep/f") == (0, "x\n", "")


async def test_the_memory_limit_is_enforced_where_cgroups_are_ours(
    nodes: list[NamespaceHost],
) -> None:
    limited = Launch(
        RunKey("pod-1", "main", 0),
        ("sh", "-c", "head -c 300000000 /dev/zero | tail -c 299000000 >/dev/null"),
        ENV,
        ceiling=Ceiling(memory=64 << 20),
    )
    process = await nodes[0].start(limited)
    ending = await process.ended
    enforced = cgroups.find("one") is not None
    assert ending.out_of_memory == enforced
    assert (ending.code == 137) == enforced
    limits = nodes[0].facts().limits
    assert ("resource limits are not enforced" in limits) == (not enforced)


async def test_a_containers_user_is_the_one_asked_for(nodes: list[NamespaceHost]) -> None:
    process = await nodes[0].start(launch("id", "-u", user=1234, group=1234))
    assert (await process.ended).code == 0
    # One user is all that an unprivileged node has.
    assert await output(process) == ("1234\n" if machine.can_mount() else "0\n")


async def test_the_best_host_of_this_machine_is_one_of_namespaces(tmp_path: Path) -> None:
    host = await best_host(tmp_path / "nodes" / "n", "n", now=time.time)
    assert isinstance(host, NamespaceHost)
    await host.close(keep=False)


async def test_nothing_but_its_disk_is_left_of_a_node_that_ended(tmp_path: Path) -> None:
    # A name of its own: what a killed run left behind is not this node's.
    name = f"gone-{uuid.uuid4().hex[:8]}"
    host = NamespaceHost(tmp_path / "nodes" / "n", name, now=time.time)
    await host.open()
    process = await host.start(launch("sh", "-c", "setsid sleep 1000 & echo up; sleep 1000"))
    await first_line(process)
    await host.close(keep=False)
    assert (await process.ended).code == 137
    assert [path.name for path in (tmp_path / "nodes" / "n").iterdir()] == [DISK]
    mounts = await asyncio.to_thread(Path("/proc/self/mountinfo").read_text)
    assert str(tmp_path) not in mounts
    assert not await asyncio.to_thread(_groups_of, name)


def _groups_of(node: str) -> list[str]:
    """`os.walk` because groups of others may vanish while we look."""
    walked = (path for path, _, _ in os.walk("/sys/fs/cgroup"))
    return [path for path in walked if path.endswith(f"kvestigate/{node}")]


async def test_limits_can_change_while_a_container_runs(nodes: list[NamespaceHost]) -> None:
    if cgroups.find("one") is None:
        pytest.skip("nobody here may limit anything")
    script = "read _; head -c 100000000 /dev/zero | tail -c 99000000 >/dev/null"
    limited = Launch(
        RunKey("pod-1", "main", 0), ("sh", "-c", script), ENV, stdin=True,
        ceiling=Ceiling(memory=32 << 20),
    )  # fmt: skip
    process = await nodes[0].start(limited)
    nodes[0].resize(process, Ceiling(memory=512 << 20))
    process.write_stdin(b"go\n")
    assert (await process.ended).code == 0


async def test_a_node_shows_the_memory_that_it_claims_to_have(
    nodes: list[NamespaceHost],
) -> None:
    """A workspace of 500 GB fits on a node of 1 TiB, however small the machine is."""
    for _ in range(2):
        await nodes[0].show_memory(1 << 40)
    seen = await said(nodes[0], "chroot /host grep ^Mem /proc/meminfo", ROOT)
    amounts = dict(line.split(":") for line in seen.splitlines())
    assert amounts["MemTotal"].split() == ["1073741824", "kB"]
    assert int(amounts["MemAvailable"].split()[0]) > 500_000_000
    others = await said(nodes[1], "chroot /host grep ^MemTotal /proc/meminfo", ROOT)
    assert "1073741824" not in others
