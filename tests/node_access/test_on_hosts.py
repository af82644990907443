"""What is done on a host is the node's: its name, its files, its mounts, its processes."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kvestigate.client.api import Api
from kvestigate.client.streams import Channel
from kvestigate.errors import DeadlineExceeded, KvestigateError, NotFound
from kvestigate.node_access.model import NodeAccess
from kvestigate.node_access.reach import Host, Hosts, reach
from tests.bed import Bed


async def said(host: Host, script: str, *args: str) -> str:
    done = await host.script(script, *args)
    assert done.exit_code == 0, done.stderr
    return done.stdout.decode()


async def test_each_node_has_its_host(hosts: Hosts) -> None:
    assert {name: await said(host, "uname -n") for name, host in hosts.nodes.items()} == {
        "node-1": "node-1\n",
        "node-2": "node-2\n",
    }
    assert hosts.unreachable == {}


async def test_a_host_sees_all_gpus_of_its_node(hosts: Hosts) -> None:
    done = await hosts.host("node-1").run(("nvidia-smi", "-L"))
    assert len(done.stdout.splitlines()) == 8


async def test_files_and_mounts_are_seen_by_other_pods_of_the_node_only(
    hosts: Hosts, api: Api
) -> None:
    await said(
        hosts.host("node-1"),
        """
        mkdir -p /opt/shared-by-test/memory
        echo on disk >/opt/shared-by-test/file
        mount -t tmpfs -o size=1m memory /opt/shared-by-test/memory
        echo in memory >/opt/shared-by-test/memory/file
        """,
    )
    script = "cd /opt/shared-by-test 2>/dev/null && cat file memory/file"
    assert await _in_another_pod(api, "node-1", script) == "on disk\nin memory\n"
    assert await _in_another_pod(api, "node-2", script + " || echo nothing") == "nothing\n"
    await said(hosts.host("node-1"), "umount /opt/shared-by-test/memory")
    assert await _in_another_pod(api, "node-1", "ls /opt/shared-by-test/memory") == ""


async def _in_another_pod(api: Api, node: str, script: str) -> str:
    """What it says in a pod that has the node's /opt."""
    name = f"other-{abs(hash((node, script)))}"
    container: dict[str, Any] = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "opt", "mountPath": "/opt"}],
    }
    spec = {
        "nodeName": node,
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "opt", "hostPath": {"path": "/opt"}}],
    }
    bed = Bed(api)
    await bed.create("pods", {"metadata": {"name": name}, "spec": spec})
    await bed.until("pods", lambda pods: pods[name]["status"].get("phase") == "Succeeded")
    return (await api.request("GET", f"/api/v1/namespaces/default/pods/{name}/log")).decode()


async def test_a_process_that_leaves_its_session_outlives_it(hosts: Hosts) -> None:
    host = hosts.host("node-1")
    pid = await said(host, "setsid nohup sleep 4321 >/dev/null 2>&1 </dev/null & echo $!")
    assert await said(host, "kill -0 $1 && echo alive", pid.strip()) == "alive\n"
    await said(host, "kill $1", pid.strip())


@pytest.mark.parametrize(
    ("stdin", "command", "stdout"),
    [
        (b"", ("cat",), b""),
        (b"two\nlines", ("cat",), b"two\nlines"),
        (b"x" * 1_000_000, ("wc", "-c"), b"1000000\n"),
        (b"x" * 1_000_000, ("true",), b""),
    ],
)
async def test_input_reaches_the_command_and_ends(
    hosts: Hosts, stdin: bytes, command: tuple[str, ...], stdout: bytes
) -> None:
    done = await hosts.host("node-1").run(command, stdin=stdin)
    assert (done.exit_code, done.stdout) == (0, stdout)


async def test_a_script_ends_at_its_first_failure(hosts: Hosts) -> None:
    done = await hosts.host("node-1").script("echo $2; (exit 3); echo never", "one", "two words")
    assert (done.exit_code, done.stdout) == (3, b"two words\n")


@pytest.mark.parametrize("ignored", ["", "trap '' HUP; ", "trap '' HUP TERM; "])
async def test_what_takes_too_long_is_ended_with_all_it_started(hosts: Hosts, ignored: str) -> None:
    host = hosts.host("node-1")
    running = "/opt/running"
    script = f"{ignored}exec 9>{running}; flock 9; (sleep 4321; :) & wait"
    with pytest.raises(DeadlineExceeded, match=r"node-1: 'sh' was stopped after 0\.5 s"):
        await host.script(script, timeout=0.5)
    # Its lock is free when all of them are gone.
    assert await said(host, f"flock --timeout 20 {running} echo free") == "free\n"


async def test_leaving_a_session_ends_its_command(hosts: Hosts) -> None:
    host = hosts.host("node-1")
    async with host.session(("sh", "-c", "echo $$; sleep 4321; :")) as session:
        piece = await anext(aiter(session))
        assert piece.channel is Channel.STDOUT
    waiting = "while kill -0 $1 2>/dev/null; do sleep 0.1; done; echo gone"
    assert await said(host, waiting, piece.data.decode().strip()) == "gone\n"


def archive(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name.replace("_", "/"))
            entry.size, entry.mode, entry.uid = len(data), 0o750, 4242
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 10_000):
        yield data[start : start + 10_000]


async def test_trees_are_sent_and_received(hosts: Hosts) -> None:
    host, large = hosts.host("node-2"), bytes(300_000)
    await host.send(pieces(archive(a=b"one", deep_b=large)), "/opt/sent here")
    listed = await said(host, "cd '/opt/sent here'; stat -c '%n %a %u %s' a deep/b")
    assert listed == f"a 750 0 3\ndeep/b 750 0 {len(large)}\n"
    received = b"".join([piece async for piece in host.receive("/opt/sent here")])
    with tarfile.open(fileobj=io.BytesIO(received)) as tar:
        assert {"sent here/a", "sent here/deep/b"} <= set(tar.getnames())


async def test_what_a_link_leads_to_is_received(hosts: Hosts) -> None:
    host = hosts.host("node-2")
    await said(host, "echo content >/opt/real; ln -sfn /opt/real /opt/link")
    received = b"".join([piece async for piece in host.receive("/opt/link")])
    with tarfile.open(fileobj=io.BytesIO(received)) as tar:
        [entry] = tar.getmembers()
        content = tar.extractfile(entry)
        assert content is not None
        assert content.read() == b"content\n"


async def test_what_tar_says_is_the_error(hosts: Hosts) -> None:
    host = hosts.host("node-2")
    with pytest.raises(KvestigateError, match="node-2: /opt/broken: tar: "):
        await host.send(b"no archive" * 1000, "/opt/broken")
    with pytest.raises(KvestigateError, match="node-2: /opt/none: no such file or directory"):
        _ = [piece async for piece in host.receive("/opt/none")]


async def test_without_the_daemon_set_the_way_to_it_is_told(api: Api) -> None:
    with pytest.raises(
        NotFound, match="DaemonSet 'other' does not exist in namespace 'kube-system'"
    ) as caught:
        await reach(api, NodeAccess("kube-system", "other"))
    assert "kvestigate fanout manifest | kubectl apply -f -" in (caught.value.hint or "")
