"""Tasks on live clusters: ours, and our nodes under the real control plane."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.live.conftest import NODES, Kubectl, Live

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

K8S_CLI = str(Path(sys.executable).with_name("k8s-cli"))
RANKS = """\
import os, socket
port = 29500
if os.environ["NODE_RANK"] == "0":
    with socket.create_server(("", port)) as server:
        peer, _ = server.accept()
        peer.sendall(b"hello from rank 0")
        peer.close()
    print("rank 0 was heard")
else:
    while True:
        try:
            with socket.create_connection((os.environ["MASTER_ADDR"], port), 20) as peer:
                print(peer.recv(100).decode(), len(os.environ["SKYPILOT_NODE_IPS"].split()))
            break
        except OSError:
            continue
"""


class Commands:
    """`k8s-cli` as one user, in one namespace."""

    def __init__(self, kubectl: Kubectl, live: Live, home: Path) -> None:
        self._words = [
            K8S_CLI,
            f"--kubeconfig={live.kubeconfig}",
            f"--namespace={kubectl.namespace}",
        ]
        self._home = home
        self._environ = os.environ | {"XDG_CONFIG_HOME": str(home), "HOME": str(home)}
        self._environ.pop("K8S_CLI_API_URL", None)
        self("auth", "login", "jane@example.com")

    def __call__(self, *words: str, code: int = 0) -> str:
        """What it prints; it must end with `code`."""
        done = subprocess.run(
            [*self._words, *words],
            cwd=self._home,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    @contextmanager
    def begun(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """One that goes on meanwhile, and that is killed if it still does at the end."""
        with subprocess.Popen(
            [*self._words, *words],
            cwd=self._home,
            env=self._environ,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def submit(self, task: dict[str, Any], *words: str, code: int = 0) -> tuple[str, list[str]]:
        """The ID, and what else is printed."""
        (self._home / "task.yaml").write_text(json.dumps(task))
        first, *rest = self("jobs", "submit", "task.yaml", *words, code=code).splitlines()
        return first.rpartition(": ")[2], rest

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "-o", "json"))


@pytest.fixture
def commands(kubectl: Kubectl, live: Live, tmp_path: Path) -> Commands:
    return Commands(kubectl, live, tmp_path)


def test_two_ranks_talk_on_two_machines(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "ranks.py").write_text(RANKS)
    task = {"num_nodes": 2, "workdir": "code", "run": "python3 ranks.py"}
    _, lines = commands.submit(task)
    assert sorted(lines[:2]) == ["node-0 | rank 0 was heard", "node-1 | hello from rank 0 2"]


def test_one_failure_ends_all_with_its_reason(commands: Commands, kubectl: Kubectl) -> None:
    task = {"num_nodes": 2, "run": "[ $NODE_RANK = 1 ] && exit 7\nsleep 600"}
    task_id, lines = commands.submit(task, "--watch", code=1)
    assert any("node-1: the container ended with exit code 7" in line for line in lines)
    assert "node-1: the container ended with exit code 7" in commands("jobs", "why", task_id)
    kubectl("wait", "--for=condition=Failed", "job", "-l", f"task-id={task_id}", "--timeout=60s")
    running = kubectl("get", "pods", "--field-selector=status.phase=Running", "-o", "name")
    assert running == ""
    (entry,) = commands.json("jobs", "history")["tasks"]
    assert (entry["status"], entry["reason"]) == (
        "failed",
        "node-1: the container ended with exit code 7",
    )


def test_a_finished_task_is_removed_in_time_and_remembered(
    commands: Commands, kubectl: Kubectl
) -> None:
    task_id, lines = commands.submit({"name": "short", "run": "echo hi"}, "--ttl", "1h")
    assert lines[0] == "hi"
    # Who looks while it is there writes how it ended.
    assert commands.json("jobs", "history")["tasks"][0]["status"] == "completed"
    jobs = ("job", "-l", f"task-id={task_id}")
    (job,) = kubectl.json("get", *jobs)["items"]
    assert job["spec"]["ttlSecondsAfterFinished"] == 3600
    # Its time is cut short only now: it would be up before a slow machine had looked.
    now_up = '-p={"spec":{"ttlSecondsAfterFinished":0}}'
    kubectl("patch", "job", job["metadata"]["name"], "--type=merge", now_up)
    kubectl("wait", "--for=delete", *jobs, "--timeout=60s")
    assert commands.json("jobs", "list")["tasks"] == []
    (entry,) = commands.json("jobs", "history")["tasks"]
    assert (entry["task_id"], entry["name"], entry["status"]) == (task_id, "short", "completed")


@pytest.fixture
def volume(live: Live, kubectl: Kubectl, request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """How to make a volume: the real control plane has nobody who provisions any."""
    if "ours" in request.node.name:
        yield []
        return
    affinity = {
        "key": "kubernetes.io/hostname",
        "operator": "In",
        "values": [NODES[0]],
    }
    name = f"disk-{kubectl.namespace}"
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": name,
                "hostPath": {"path": f"/var/lib/{name}", "type": "DirectoryOrCreate"},
                "nodeAffinity": {
                    "required": {"nodeSelectorTerms": [{"matchExpressions": [affinity]}]}
                },
            },
        }
    )
    yield ["--storage-class", name]
    kubectl("delete", "pv", name, "--wait=false")


def test_a_volume_keeps_a_file_between_tasks(commands: Commands, volume: list[str]) -> None:
    commands("volumes", "create", "data-vol", "1Gi", *volume)
    mounted = {"volumes": {"/data": "data-vol"}}
    commands.submit({"run": "echo kept > /data/word", **mounted})
    assert commands.submit({"run": "cat /data/word", **mounted})[1][0] == "kept"
    if not volume:  # a volume made by hand has the size that it has
        assert "is being resized to 2Gi" in commands("volumes", "resize", "data-vol", "2Gi")
    assert "deleted successfully" in commands("volumes", "delete", "data-vol", "--force")


# Who says that it is enough is given the time to end: with the task, all its processes are killed.
COUNTING = """\
count=0
while [ ! -s /tmp/enough-$SKYPILOT_TASK_ID ]; do
  count=$((count + 1))
  echo "line $count"
  sleep 0.02
done
while kill -0 $(cat /tmp/enough-$SKYPILOT_TASK_ID) 2>/dev/null; do sleep 0.02; done
"""


@pytest.mark.parametrize(
    "cut", [(), ("--tail", "20"), ("--since", "60s")], ids=["all", "tail", "since"]
)
def test_a_followed_log_outlives_its_cluster(
    commands: Commands, live: Live, kubectl: Kubectl, cut: tuple[str, ...]
) -> None:
    """Where the API server is in the same process as the nodes, that one is killed too."""
    task_id, _ = commands.submit({"name": "counting", "run": COUNTING}, "--detach")
    kubectl("wait", "--for=create", "pod", "-l", f"task-id={task_id}", "--timeout=60s")
    kubectl("wait", "--for=condition=Ready", "pod", "-l", f"task-id={task_id}", "--timeout=60s")
    with commands.begun("jobs", "logs", task_id, *cut) as following:
        assert following.stdout is not None
        seen = [following.stdout.readline() for _ in range(30)]
        live.crash()
        seen += [following.stdout.readline() for _ in range(200)]
        commands("jobs", "exec", task_id, "--", "sh", "-c", f"echo $$ >/tmp/enough-{task_id}")
        seen += list(following.stdout)
        assert following.wait(60) == 0
    numbers = [int(found[1]) for line in seen if (found := re.fullmatch(r"line (\d+)\n", line))]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(numbers) >= 230
