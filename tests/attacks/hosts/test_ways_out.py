"""What an agent runs stays in its workspace, whatever it tries; what it syncs and fetches too."""

from __future__ import annotations

import base64
import io
import os
import tarfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kvestigate_client import CybernetClient
from kvestigate_client.gateway import CybernetError
from tests.attacks.hosts.ways_out import HARMLESS, HOST_FILES, SECRET, WAYS_OUT, script
from tests.cybernet.conftest import Document, changed
from tests.cybernet.served import ServedSpace
from tests.hosts_cluster import HostsCluster

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(os.geteuid() != 0, reason="hosts of their own can only be made by root"),
]

ALLOWED = [f"workspace.{name}" for name in (
    "create", "status", "sync", "run", "ps", "logs", "kill", "fetch", "destroy", "gpus",
)]  # fmt: skip


ROOT = "/opt/kvestigate-workspaces"
OPEN_TO_USERS = {
    *(f"read {path}" for path in (*HOST_FILES, "/dev/shm/secret")),
    "go through the root of its own process",
    "see that there is another workspace",
    "list another workspace",
    "see processes of the host",
    "read the Kubernetes configuration",
    "reach the cgroups",
    "speak to the container runtime",
    "speak to the system's services",
    "see a GPU that is not its own",
}
"""What any user of a host can do, so one without a namespace of its own can."""

SPACE = {
    "operations.allow": ALLOWED,
    "constraints.hosts": {},
    "constraints.workspace.storage": {"allowed_modes": ["disk", "hybrid", "all-tmpfs"]},
    "quotas": {},
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsCluster]:
    made = HostsCluster(tmp_path_factory.mktemp("ways-out"), nodes=2)
    plant = "".join(
        f"mkdir -p {path.rpartition('/')[0]}; echo {SECRET} >{path}; chmod 644 {path}\n"
        for path in (*HOST_FILES, "/dev/shm/secret")
    )
    for node in ("node-1", "node-2"):
        made.on_host(f"{plant}chmod 755 /root", node)
    yield made
    made.close()


def served(cluster: HostsCluster, home: Path, isolation: str) -> ServedSpace:
    document: Document = changed("audit.path", str(home / "audit"))
    for field, value in {**SPACE, "runs": {"isolation": isolation}}.items():
        document = changed(field, value, document)
    return ServedSpace(document, cluster.access())


@pytest.fixture(scope="module")
def space(cluster: HostsCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedSpace]:
    with served(cluster, tmp_path_factory.mktemp("audit"), "required") as space:
        yield space


@pytest.fixture
def ada(space: ServedSpace) -> Iterator[CybernetClient]:
    yield space.client("ada")
    removed(space)


def removed(space: ServedSpace) -> None:
    for identity in ("ada", "bob"):
        client = space.client(identity)
        for it in client.call("workspace.status")["workspaces"]:
            client.call("workspace.destroy", {"workspace": named(it["name"], it["node"])})


def named(name: str, node: str = "node-1") -> dict[str, Any]:
    return {
        "name": name,
        "node": node,
        "storage": {"mode": "all-tmpfs", "tmpfs_size": "16Mi"},
        "gpu": {"cordon_node": False},
    }


def sync(
    client: CybernetClient,
    name: str,
    files: Mapping[str, bytes | str],
    subdir: str,
    node: str = "node-1",
) -> None:
    """Files by their content; a text is where a link leads."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    encoded = base64.b64encode(packed.getvalue()).decode()
    wanted = {"workspace": named(name, node), "archive": encoded, "subdir": subdir}
    client.call("workspace.sync", wanted)


def finished(client: CybernetClient, name: str, tag: str, node: str = "node-1") -> None:
    """Wait until a run has ended."""
    running = True
    while running:
        runs = client.call("workspace.ps", {"workspace": named(name, node)})["runs"]
        running = any(it["tag"] == tag and it["state"] == "running" for it in runs)


def ran(client: CybernetClient, name: str, script: str, node: str = "node-1") -> str:
    """What a run says, once it has ended."""
    workspace = {"workspace": named(name, node)}
    command = ["sh", "-c", script]
    client.call("workspace.run", {**workspace, "tag": "t", "command": command})
    finished(client, name, "t", node)
    return str(client.call("workspace.logs", {**workspace, "tag": "t"})["text"])


def tried(
    cluster: HostsCluster,
    space: ServedSpace,
    node: str = "node-1",
    names: Collection[str] = tuple(WAYS_OUT),
) -> dict[str, str]:
    """Way -> `in` or `out`, as ada finds it beside a workspace of bob's."""
    ada, bob = space.client("ada"), space.client("bob")
    for client, name in ((ada, "agent-a"), (bob, "agent-b")):
        client.call("workspace.create", {"workspace": named(name, node=node)})
    sync(bob, "agent-b", {"secret": SECRET.encode()}, "code", node=node)
    long = {"workspace": named("agent-b", node=node), "tag": "long", "command": ["sleep", "600"]}
    bob.call("workspace.run", long)
    pid = cluster.on_host(f"cat {ROOT}/agent-b/pids/long.pid", node).strip()
    variables = f"export other={ROOT}/agent-b mine={ROOT}/agent-a pid={pid}\n"
    told = ran(ada, "agent-a", variables + script(names), node=node)
    found = {line.partition(" ")[2]: line.partition(" ")[0] for line in told.splitlines()}
    assert found.keys() == set(names), told
    return found


def test_no_way_leads_out(
    cluster: HostsCluster, space: ServedSpace, ada: CybernetClient, capsys: Any
) -> None:
    found = tried(cluster, space)
    escaped = [name for name, where in found.items() if where == "out"]
    with capsys.disabled():
        print(f"\n{len(found)} ways out of a fenced workspace tried: {len(escaped)} led out")
    assert escaped == []


def test_a_host_with_less_is_told_apart(cluster: HostsCluster, tmp_path: Path, capsys: Any) -> None:
    """Without namespaces only the user is its own: the table says what that is worth."""
    cluster.on_host("mv /usr/bin/unshare /usr/bin/unshare.away", "node-2")
    wanted = {"workspace": named("agent-a", node="node-2")}
    with served(cluster, tmp_path, "required") as space, pytest.raises(CybernetError) as refused:
        space.client("ada").call("workspace.create", wanted)
    assert "cannot fence runs in: it lacks unshare (of util-linux)" in refused.value.message
    with served(cluster, tmp_path, "best-effort") as space:
        found = tried(cluster, space, "node-2")
        [seen] = space.client("ada").call("workspace.status")["workspaces"]
        assert seen["fencing"] == "user"
        removed(space)
    open_ways = sorted(name for name, where in found.items() if where == "out")
    with capsys.disabled():
        print(f"\n{len(found)} ways out of a workspace with a user of its own and no more:")
        print("".join(f"  out: {name}\n" for name in open_ways) + "  the others: in")
    assert not [name for name in open_ways if name not in OPEN_TO_USERS]
    cluster.on_host("mv /usr/bin/unshare.away /usr/bin/unshare", "node-2")


def test_without_isolation_the_ways_do_lead_out(cluster: HostsCluster, tmp_path: Path) -> None:
    """What the others promise is worth nothing if it could not be broken."""
    with served(cluster, tmp_path, "none") as space:
        found = tried(cluster, space, names=HARMLESS)
        removed(space)
    assert found == dict.fromkeys(HARMLESS, "out")


def test_a_link_in_a_workspace_leads_nowhere(cluster: HostsCluster, ada: CybernetClient) -> None:
    """Neither for what is written nor for what is read."""
    ada.call("workspace.create", {"workspace": named("agent-a")})
    links = {"up": "..", "root": "/root", "secret": "/root/secret", "host": "/"}
    sync(ada, "agent-a", links, "code")
    for subdir in ("code/up/logs", "code/up/pids", "code/root", "code/host/root", "code/up/../x"):
        with pytest.raises(CybernetError):
            sync(ada, "agent-a", {"t.log": b"forged", "t.meta": b"{}", "t.pid": b"1"}, subdir)
    for path in ("code/secret", "code/root/secret", "code/host/srv/secret", "code/up/../../.state"):
        with pytest.raises(CybernetError) as refused:
            ada.call("workspace.fetch", {"workspace": named("agent-a"), "path": path})
        assert SECRET not in str(refused.value)
    assert cluster.on_host(f"ls {ROOT}/agent-a/logs {ROOT}/agent-a/pids").split() == [
        f"{ROOT}/agent-a/logs:",
        f"{ROOT}/agent-a/pids:",
    ]
    assert cluster.on_host("find /root /srv -name t.meta") == ""


def test_a_directory_that_becomes_a_link_meanwhile_leads_nowhere(
    cluster: HostsCluster, ada: CybernetClient
) -> None:
    ada.call("workspace.create", {"workspace": named("agent-a")})
    flip = "mkdir d; while :; do mv d e; ln -s /root d; rm d; mv e d; done"
    workspace = {"workspace": named("agent-a")}
    ada.call("workspace.run", {**workspace, "tag": "flip", "command": ["sh", "-c", flip]})
    before = cluster.on_host("ls /root")
    for number in range(10):
        try:
            sync(ada, "agent-a", {f"planted-{number}": b"x"}, "code/d")
        except CybernetError:
            pass  # it was no directory just then
    assert cluster.on_host("ls /root") == before


def test_programs_and_variables_of_an_agent_are_not_roots(
    cluster: HostsCluster, ada: CybernetClient
) -> None:
    ada.call("workspace.create", {"workspace": named("agent-a")})
    planted = b"#!/bin/sh\n/usr/bin/touch /root/planted /srv/planted\n"
    names = ("setsid", "nohup", "sh", "env", "mount", "unshare", "setpriv", "date", "sed", "cat")
    sync(ada, "agent-a", {f"bin/{name}": planted for name in names}, "env")
    variables = {"ENV": f"{ROOT}/agent-a/env/bin/sh", "BASH_ENV": f"{ROOT}/agent-a/env/bin/sh"}
    variables |= {"PATH": f"{ROOT}/agent-a/env/bin", "LD_PRELOAD": f"{ROOT}/agent-a/env/bin/sh"}
    workspace = {"workspace": named("agent-a")}
    ada.call("workspace.run", {**workspace, "tag": "t", "command": ["/bin/true"], "env": variables})
    finished(ada, "agent-a", "t")
    assert "planted" not in cluster.on_host("ls /root /srv")


def test_what_a_run_leaves_behind_ends_with_it(cluster: HostsCluster, ada: CybernetClient) -> None:
    ada.call("workspace.create", {"workspace": named("agent-a")})
    escape = "setsid sh -c 'unset KVESTIGATE_WORKSPACE; exec sleep 654' & echo started"
    assert ran(ada, "agent-a", escape) == "started\n"
    assert cluster.on_host("pgrep -f 'sleep 654' || echo none") == "none\n"
    workspace = {"workspace": named("agent-a")}
    hide = "while :; do env -i setsid sleep 655 & sleep 0.2; done"
    ada.call("workspace.run", {**workspace, "tag": "hide", "command": ["sh", "-c", hide]})
    ada.call("workspace.destroy", workspace)
    assert cluster.on_host("pgrep -f 'sleep 655' || echo none") == "none\n"
