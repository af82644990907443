"""The launcher's commands, on a cluster of this machine whose pods are processes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvestigate.cli.main import K8S_CLI_PROGRAM
from kvestigate.cluster.assembly import process
from kvestigate.cluster.assembly.directory import clusters_directory, known
from tests.cli.conftest import Invoke, Outcome
from tests.upstream.processes import free_ports

TRAINING = """\
name: training-job
num_nodes: 2
resources:
  cpus: "100m"
  memory: "64Mi"
  accelerators: "1"
  image_id: "python:3.11"
volumes:
  /data: data-vol
envs:
  EPOCHS: "100"
  KVESTIGATE_LINGER_SECONDS: "2"
setup: |
  echo "setup of $NODE_RANK"
run: |
  echo "rank $NODE_RANK of $NUM_NODES, $EPOCHS epochs, $SKYPILOT_NUM_GPUS_PER_NODE GPU"
  echo "$NODE_RANK" > "/data/rank-$NODE_RANK"
"""
READING = "name: reading\nvolumes: {/data: data-vol}\nrun: cat /data/rank-0 /data/rank-1\n"
SERVE = "from kvestigate.cli.main import k8s_cli; k8s_cli()"
FAILING = "run: |\n  echo before\n  exit 3\n"


@pytest.fixture(autouse=True)
def config(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("K8S_CLI_API_URL", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    return home / "config"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One cluster for all: each test has users of its own."""
    state = tmp_path_factory.mktemp("state")
    environ = os.environ | {"XDG_STATE_HOME": str(state), "KUBECONFIG": str(state / "kubeconfig")}
    command = [sys.executable, "-m", "kvestigate", "up", "--nodes", "1", "--gpus", "2"]
    try:
        up = subprocess.run(
            [*command, "--host", "directory"], env=environ, capture_output=True, timeout=60
        )
        assert up.returncode == 0, up.stderr
        yield state
    finally:
        for each in known(clusters_directory(environ)):
            process.stop(each)


@pytest.fixture
def cluster(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(state))


def ok(outcome: Outcome) -> str:
    assert outcome.code == 0, outcome
    return outcome.out


def id_in(message: str) -> str:
    return message.splitlines()[0].rpartition(": ")[2]


def test_the_whole_life_of_a_task(invoke: Invoke, home: Path, cluster: None) -> None:
    (home / "task.yaml").write_text(TRAINING)
    (home / "reading.yaml").write_text(READING)
    ok(invoke("auth", "login", "myuser", root=K8S_CLI_PROGRAM))
    made = ok(invoke("volumes", "create", "data-vol", "10Gi", root=K8S_CLI_PROGRAM))
    volume = id_in(made)

    said = ok(invoke("jobs", "submit", "task.yaml", root=K8S_CLI_PROGRAM))
    task = id_in(said)
    lines = said.splitlines()[1:]
    for rank in ("0", "1"):
        mine = [line for line in lines if line.startswith(f"node-{rank} | ")]
        assert mine == [
            f"node-{rank} | setup of {rank}",
            f"node-{rank} | rank {rank} of 2, 100 epochs, 1 GPU",
        ]

    status = json.loads(ok(invoke("jobs", "status", task, "-o", "json")))
    assert (status["name"], status["status"], status["username"]) == (
        "training-job",
        "completed",
        "myuser",
    )
    assert status["metadata"] | {"namespace": ""} == {
        "job_name": f"training-job-{task}",
        "namespace": "",
        "num_nodes": 2,
        "node_jobs": [f"training-job-{task}-node-0", f"training-job-{task}-node-1"],
        "succeeded_nodes": 2,
        "failed_nodes": 0,
        "running_nodes": 0,
        "pending_nodes": 0,
    }
    again = ok(invoke("jobs", "logs", task, "--no-follow", "--node", "1", "--tail", "1"))
    assert again == "node-1 | rank 1 of 2, 100 epochs, 1 GPU\n"

    # The volume keeps what was written, for the next task.
    assert ok(invoke("jobs", "submit", "reading.yaml")).splitlines()[1:] == ["0", "1"]
    shown = json.loads(ok(invoke("volumes", "status", volume, "-o", "json")))
    assert (shown["status"], shown["size"]) == ("Bound", "10Gi")
    assert "data-vol" in ok(invoke("volumes", "list", "--details", root=K8S_CLI_PROGRAM))

    listed = json.loads(ok(invoke("jobs", "list", "-o", "json")))["tasks"]
    assert [each["name"] for each in listed] == ["reading", "training-job"]
    assert "Stopped 0 tasks" in ok(invoke("jobs", "stop", "--all", root=K8S_CLI_PROGRAM))
    for each in listed:  # what has ended is removed by its name
        ok(invoke("jobs", "stop", each["task_id"]))
    assert "no tasks" in ok(invoke("jobs", "list"))
    ok(invoke("volumes", "delete", volume, "--force", root=K8S_CLI_PROGRAM))
    assert "no volumes" in ok(invoke("volumes", "list"))


RANKS = """\
import os, socket
port = int(os.environ["MASTER_PORT"])
if os.environ["NODE_RANK"] == "0":
    with socket.create_server(("", port)) as server:
        open("listening", "w").close()
        peer, _ = server.accept()
        peer.sendall(b"hello from rank 0")
        peer.close()
else:
    while not os.path.exists("listening"):
        os.sched_yield()
    with socket.create_connection((os.environ["MASTER_ADDR"], port), 20) as peer:
        print(peer.recv(100).decode(), len(os.environ["SKYPILOT_NODE_IPS"].split()))
"""


def test_two_ranks_talk_to_each_other(invoke: Invoke, home: Path, cluster: None) -> None:
    (home / "code").mkdir()
    (home / "code" / "ranks.py").write_text(RANKS)
    (port,) = free_ports(1)
    task = {
        "num_nodes": 2,
        "workdir": str(home / "code"),
        "envs": {"MASTER_PORT": port, "KVESTIGATE_LINGER_SECONDS": "2"},
        "run": f"{sys.executable} ranks.py",
    }
    (home / "task.yaml").write_text(yaml.safe_dump(task))
    ok(invoke("auth", "login", "jane"))
    said = ok(invoke("jobs", "submit", "task.yaml"))
    assert said.splitlines()[1:] == ["node-1 | hello from rank 0 2"]


def test_one_failure_ends_the_others(invoke: Invoke, home: Path, cluster: None) -> None:
    (home / "task.yaml").write_text(
        "num_nodes: 2\nrun: |\n  [ $NODE_RANK = 1 ] && exit 7\n  sleep 600\n"
    )
    ok(invoke("auth", "login", "gang@example.com"))
    outcome = invoke("jobs", "submit", "task.yaml", "--watch")
    assert outcome.code == 1
    last = outcome.out.splitlines()[-1]
    assert last.startswith(
        f"{id_in(outcome.out)} failed: node-0 Failed (node-1: the container ended with"
    )
    said = ok(invoke("jobs", "why", id_in(outcome.out)))
    assert "DeadlineExceeded" not in said
    assert "the task was ended: node-1: the container ended with exit code 7" in said
    (entry,) = json.loads(ok(invoke("jobs", "history", "-o", "json")))["tasks"]
    assert entry["reason"] == "node-1: the container ended with exit code 7"


def test_large_files_go_straight_to_the_node(invoke: Invoke, home: Path, cluster: None) -> None:
    (home / "code").mkdir()
    with (home / "code" / "large").open("wb") as file:
        file.truncate(40_000_000)
        file.write(b"x")
    task = {
        "workdir": "code",
        "envs": {"HOME": str(home / "container")},
        "run": "wc -c < large",
    }
    (home / "task.yaml").write_text(yaml.safe_dump(task))
    ok(invoke("auth", "login", "jane"))
    assert ok(invoke("jobs", "submit", "task.yaml")).splitlines()[1:] == ["40000000"]


def test_files_are_copied_to_a_volume_and_back(
    invoke: Invoke, home: Path, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "data").mkdir()
    (home / "data" / "words").write_text("kept\n")
    (home / "long.yaml").write_text("run: sleep 600\nvolumes: {/data: data-vol}\n")
    ok(invoke("auth", "login", "jane"))
    ok(invoke("volumes", "create", "data-vol", "1Gi"))
    ok(invoke("volumes", "cp", "data", "data-vol:/"))
    assert ok(invoke("volumes", "ls", "data-vol", "/data")).splitlines()[1].endswith(" words")
    ok(invoke("volumes", "cp", "data-vol:/data/words", "copy"))
    assert (home / "copy").read_text() == "kept\n"
    for source, target in (("data", "copy"), ("a:/", "b:/")):
        assert invoke("volumes", "cp", source, target).code == 2
    outside = invoke("volumes", "ls", "data-vol", "/../..")
    assert (outside.code, "leads out of the volume" in outside.err) == (2, True)
    near = invoke("volumes", "ls", "dta-vol")
    assert (near.code, "did you mean 'data-vol'" in near.err) == (5, True)
    lost = invoke("volumes", "create", "fast-vol", "1Gi", "--storage-class", "fast")
    assert (lost.code, "hint: there are: local-path\n" in lost.err) == (2, True)
    for answer in ("n\n", ""):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        kept = invoke("volumes", "delete", "data-vol")
        assert (
            kept.code,
            "was not deleted: the question was not answered with yes" in kept.err,
        ) == (1, True)
    smaller = invoke("volumes", "resize", "data-vol", "1Mi")
    assert (smaller.code, "is not larger than the current size 1Gi" in smaller.err) == (2, True)
    assert "is being resized to 2Gi" in ok(invoke("volumes", "resize", "data-vol", "2Gi"))

    # A volume that a task has mounted can still be looked at, and cannot be deleted.
    task = id_in(ok(invoke("jobs", "submit", "long.yaml", "--detach")))
    assert "data" in ok(invoke("volumes", "ls", "data-vol"))
    refused = invoke("volumes", "delete", "data-vol", "--force")
    assert (refused.code, "in use by" in refused.err) == (6, True)
    # Where nobody types, the shell reads what there is: no command.
    with (home / "data" / "words").open() as typed:
        monkeypatch.setattr("sys.stdin", typed)
        joined = invoke("jobs", "attach", task)
    assert (joined.code, "kept: " in joined.err or "not found" in joined.err) == (127, True)
    ok(invoke("jobs", "stop", task))


def test_who_has_a_token_is_who_it_says(
    invoke: Invoke, home: Path, cluster: None, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = invoke("auth", "token", "jane@example.com")
    assert made.code == 0
    token = made.err.strip()
    assert token not in made.out
    entries = yaml.safe_load(made.out)
    (home / "users.yaml").write_text(
        yaml.safe_dump({"tokens": entries, "quotas": {"default": {"jobs": 0}}})
    )
    (home / "token").write_text(f"{token}\n")
    (home / "task.yaml").write_text("run: x\n")
    served = subprocess.Popen(
        [sys.executable, "-c", SERVE, "serve", "--port", "0", "--config", "users.yaml"],
        stdout=subprocess.PIPE,
        text=True,
    )
    with served:
        try:
            assert served.stdout is not None
            monkeypatch.setenv("K8S_CLI_API_URL", served.stdout.readline().split()[-1])
            ok(invoke("auth", "login", "jane@example.com"))
            assert invoke("jobs", "list").code == 4
            with (home / "token").open() as typed:
                monkeypatch.setattr("sys.stdin", typed)
                assert ok(invoke("auth", "login", "--token")) == "logged in as jane@example.com\n"
            assert (config / "kvestigate" / "token").stat().st_mode & 0o777 == 0o600
            assert ok(invoke("auth", "whoami")) == "jane@example.com\n"
            assert "no tasks" in ok(invoke("jobs", "list"))
            assert "for administrators" in invoke("jobs", "list", "--all-users").err
            assert "quota exceeded" in invoke("jobs", "submit", "task.yaml").err
            ok(invoke("auth", "logout"))
            assert invoke("jobs", "list").code == 2
        finally:
            served.terminate()
            assert served.wait(30) == 0


def test_a_task_that_fails_says_so(invoke: Invoke, home: Path, cluster: None) -> None:
    (home / "task.yaml").write_text(FAILING)
    ok(invoke("auth", "login", "failing"))
    outcome = invoke("jobs", "submit", "task.yaml")
    assert (outcome.code, outcome.out.splitlines()[1:]) == (1, ["before"])
    task = id_in(outcome.out)
    assert outcome.err.endswith(
        f"Task {task} failed: node-0: the container ended with exit code 3\n"
    )

    ok(invoke("auth", "login", "fail@ing"))
    assert invoke("jobs", "status", task).code == 5
    assert invoke("jobs", "cancel", task).code == 5
    for everybodys in ("list", "history"):
        shown = ok(invoke("jobs", everybodys, "--all-users"))
        assert task in shown
        assert "USER" in shown.splitlines()[0]
    ok(invoke("auth", "login", "failing"))
    assert ok(invoke("jobs", "cancel", task)) == f"Task {task} stopped successfully\n"


def test_every_mistake_of_a_task_file_is_told_with_its_line(invoke: Invoke, home: Path) -> None:
    text = "num_node: 2\nresources:\n  cpus: many\n  ports: [80, 0]\nrun: x\n"
    (home / "task.yaml").write_text(text)
    outcome = invoke("jobs", "submit", "task.yaml")
    assert outcome.code == 2
    assert outcome.err.splitlines()[:4] == [
        "error: task.yaml: 3 mistakes",
        "task.yaml:1: num_node: no such field; did you mean num_nodes?",
        "task.yaml:3: resources.cpus: 'many' is not a CPU amount; write 4, 4+, 0.5 or 500m",
        "task.yaml:4: resources.ports[1]: 0 is not a port from 1 to 65535; write 8080 or 8080-8090",
    ]


def test_a_dry_run_shows_the_manifests_and_makes_nothing(
    invoke: Invoke, home: Path, cluster: None
) -> None:
    (home / "task.yaml").write_text("run: x\nnum_nodes: 2\nsecrets: {TOKEN: null}\n")
    ok(invoke("auth", "login", "dry@example.com"))
    shown = ok(invoke("jobs", "submit", "task.yaml", "--dry-run", "--secret", "TOKEN=hush"))
    kinds = [document["kind"] for document in yaml.safe_load_all(shown)]
    assert kinds == ["Service", "Secret", "Job", "Job"]
    assert "hush" not in shown
    assert "no tasks" in ok(invoke("jobs", "list"))


def test_the_same_commands_work_through_a_server(
    invoke: Invoke, home: Path, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "code").mkdir()
    (home / "code" / "words").write_text("hello\n")
    task_file = {
        "name": "hello",
        "num_nodes": 2,
        "workdir": "code",
        "resources": {"ports": 8080},
        # Pods of this kind of node are processes that see the machine's own files.
        "envs": {"HOME": str(home / "container"), "KVESTIGATE_LINGER_SECONDS": "2"},
        "run": "cat words",
    }
    (home / "task.yaml").write_text(yaml.safe_dump(task_file))
    (home / "long.yaml").write_text("name: long\nrun: sleep 600\n")
    ok(invoke("auth", "login", "jörg@example.com"))
    served = subprocess.Popen(
        [sys.executable, "-c", SERVE, "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    with served:
        try:
            assert served.stdout is not None
            url = served.stdout.readline().split()[-1]
            monkeypatch.setenv("K8S_CLI_API_URL", url)
            said = ok(invoke("jobs", "submit", "task.yaml"))
            assert sorted(said.splitlines()[1:]) == ["node-0 | hello", "node-1 | hello"]
            task = id_in(said)
            shown = ok(invoke("jobs", "submit", "task.yaml", "--dry-run"))
            kinds = [document["kind"] for document in yaml.safe_load_all(shown)]
            assert kinds == ["Service", "Service", "Job", "Job"]
            absent = invoke("jobs", "status", "abc12345")
            assert (absent.code, "hint: `k8s-cli jobs list` shows your tasks" in absent.err) == (
                5,
                True,
            )
            assert f"task-{task}-ports.default.svc:8080" in ok(invoke("jobs", "endpoint", task))
            watched = ok(invoke("jobs", "status", task, "--watch"))
            assert watched == f"{task} completed: node-0 Succeeded, node-1 Succeeded\n"
            assert "completed" in ok(invoke("jobs", "history"))
            assert_commands_run_beside(invoke, "long.yaml")
        finally:
            served.terminate()
            assert served.wait(30) == 0
    monkeypatch.delenv("K8S_CLI_API_URL")
    (seen,) = json.loads(ok(invoke("jobs", "list", "-o", "json")))["tasks"]
    assert (seen["task_id"], seen["status"]) == (task, "completed")


def assert_commands_run_beside(invoke: Invoke, file: str) -> None:
    """In a task that runs, whichever launcher is asked."""
    long = id_in(ok(invoke("jobs", "submit", file, "--detach")))
    waiting = invoke("jobs", "exec", long, "--", "true")
    while waiting.code == 6 or waiting.code == 5:  # it is about to start
        assert "not running" in waiting.err or "no running node 0" in waiting.err
        waiting = invoke("jobs", "exec", long, "--", "true")
    assert waiting.code == 0, waiting
    said = invoke("jobs", "exec", long, "--", "sh", "-c", "echo beside; exit 3")
    assert (said.code, said.out) == (3, "beside\n")
    assert long in ok(invoke("jobs", "queue"))
    assert invoke("jobs", "exec", long, "--node", "7", "--", "true").code == 5
    ok(invoke("jobs", "stop", long))
    assert long not in ok(invoke("jobs", "queue"))
    gone = json.loads(ok(invoke("jobs", "history", "-o", "json")))["tasks"][0]
    assert (gone["task_id"], gone["status"]) == (long, "stopped")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("localhost:8000", "K8S_CLI_API_URL: 'localhost:8000' is not the URL"),
        ("http://127.0.0.1:1", "127.0.0.1:1"),
    ],
)
def test_a_server_that_is_not_there(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, url: str, message: str
) -> None:
    ok(invoke("auth", "login", "jane"))
    monkeypatch.setenv("K8S_CLI_API_URL", url)
    outcome = invoke("jobs", "list")
    assert outcome.code == 3
    assert message in outcome.err


def test_local_files_are_there_when_the_task_runs(
    invoke: Invoke, home: Path, cluster: None
) -> None:
    code, there = home / "code", home / "container"
    (code / "package").mkdir(parents=True)
    (code / "package" / "main.py").write_text("print('from', __file__)\n")
    (home / "words").write_text("a file of its own\n")
    task = {
        "workdir": "code",
        "file_mounts": {str(there / "words"): "words"},
        # Pods of this kind of node are processes that see the machine's own files.
        "envs": {"HOME": str(there)},
        "run": f"python3 package/main.py\ncat {there / 'words'}\n",
    }
    (home / "task.yaml").write_text(yaml.safe_dump(task))
    ok(invoke("auth", "login", "jane"))
    said = ok(invoke("jobs", "submit", "task.yaml")).splitlines()[1:]
    assert said == [f"from {there}/sky_workdir/package/main.py", "a file of its own"]
    assert invoke("jobs", "submit", "task.yaml", "--dry-run").code == 0
    (home / "words").unlink()
    missing = invoke("jobs", "submit", "task.yaml")
    assert missing.code == 2
    assert "'words' cannot be read: No such file or directory" in missing.err


def test_who_is_logged_in(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "joe")
    assert ok(invoke("auth", "whoami")) == "joe\n"  # without a server nobody has to log in
    monkeypatch.setenv("K8S_CLI_API_URL", "http://127.0.0.1:1")
    nobody = invoke("auth", "whoami")
    assert (nobody.code, nobody.err) == (
        2,
        "error: no user is logged in\nhint: k8s-cli auth login NAME\n",
    )
    ok(invoke("auth", "login", "user@example.com"))
    assert ok(invoke("auth", "whoami", root=K8S_CLI_PROGRAM)) == "user@example.com\n"
    monkeypatch.delenv("K8S_CLI_API_URL")
    assert ok(invoke("auth", "whoami", root=K8S_CLI_PROGRAM)) == "user@example.com\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("jobs", "submit", "absent.yaml"), "absent.yaml: cannot be read"),
        (("jobs", "submit", "task.yaml"), "task.yaml:2: resources.cpu: no such field"),
        (("jobs", "submit", "task.yaml", "--env", "A"), "--env: 'A' is not NAME=VALUE"),
        (("jobs", "stop"), "name a task or give --all"),
        (("jobs", "stop", "a", "--all"), "name a task or give --all"),
        (("jobs", "stop", "a", "--all-users"), "name a task or give --all"),
        (("jobs", "logs", "a", "--tail", "x"), "'x' is not a whole number"),
        (("auth", "login", ""), "'' is not a user name"),
        (("auth", "login"), "no user name is given"),
        (("serve", "--config", "absent.yaml"), "absent.yaml: cannot be read"),
        (("serve", "--config", "task.yaml"), "task.yaml:1: run: no such field"),
        (
            ("jobs", "submit", "good.yaml", "--queue", "A b"),
            "'A b' is not the name of",
        ),
        (("jobs", "submit", "good.yaml", "--deadline", "soon"), "'soon' is not a duration"),
    ],
)
def test_a_mistake_is_named(
    invoke: Invoke, home: Path, args: tuple[str, ...], message: str
) -> None:
    (home / "task.yaml").write_text("run: x\nresources: {cpu: 1}\n")
    (home / "good.yaml").write_text("run: x\n")
    outcome = invoke(*args, root=K8S_CLI_PROGRAM)
    assert outcome.code == 2
    assert message in outcome.err


def test_a_server_is_not_for_everyone(invoke: Invoke) -> None:
    outcome = invoke("serve", "--host", "::", root=K8S_CLI_PROGRAM)
    assert outcome.code == 2
    assert "X-User is not authenticated" in outcome.err
    assert invoke("jobs", "serve", "--host", "0.0.0.0").code == 2


def test_why_a_task_does_not_run(invoke: Invoke, home: Path, cluster: None) -> None:
    (home / "large.yaml").write_text("run: x\nresources: {accelerators: 64}\n")
    (home / "wrong.yaml").write_text("run: no-such-command\n")
    ok(invoke("auth", "login", "jane"))
    wrong = invoke("jobs", "submit", "wrong.yaml")
    assert wrong.code == 1
    said = ok(invoke("jobs", "why", id_in(wrong.out)))
    assert "node-0: the container ended with exit code 127" in said
    assert "try: a command was not found" in said

    assert "failed: node-0: the container ended with exit code 127" in wrong.err
    large = id_in(ok(invoke("jobs", "submit", "large.yaml", "--detach")))
    assert "pending" in ok(invoke("jobs", "why", large))
    ok(invoke("jobs", "stop", large))


def test_a_log_is_followed_through_a_server_that_is_restarted(
    invoke: Invoke, home: Path, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    enough = home / "enough"
    (home / "task.yaml").write_text(
        f"run: |\n  n=0\n  while [ ! -e {enough} ]; do n=$((n+1)); echo line $n; sleep 0.02; done\n"
    )
    ok(invoke("auth", "login", "follower"))
    (port,) = free_ports(1)
    serve = [sys.executable, "-c", SERVE, "serve", "--port", str(port)]
    with ExitStack() as running:

        def started(command: list[str]) -> subprocess.Popen[str]:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            running.enter_context(process)
            running.callback(process.kill)  # before it is waited for
            return process

        first = started(serve)
        assert first.stdout is not None
        monkeypatch.setenv("K8S_CLI_API_URL", first.stdout.readline().split()[-1])
        task = id_in(ok(invoke("jobs", "submit", "task.yaml", "--detach")))
        follow = [sys.executable, "-c", SERVE, "jobs", "logs", task]
        following = started([*follow, "--tail", "50000", "--since", "1h"])
        assert following.stdout is not None
        seen = [following.stdout.readline() for _ in range(20)]
        first.kill()
        first.wait()
        started(serve)
        seen += [following.stdout.readline() for _ in range(100)]
        enough.touch()
        seen += list(following.stdout)
        assert following.wait(30) == 0
    assert seen == [f"line {number}\n" for number in range(1, len(seen) + 1)]


def test_programs_are_told_what_a_deed_came_to(invoke: Invoke, home: Path, cluster: None) -> None:
    def told(*args: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(ok(invoke(*args, "-o", "json", root=K8S_CLI_PROGRAM)))
        return said

    (home / "task.yaml").write_text("run: sleep 60\n")
    assert told("auth", "login", "teller") == told("auth", "whoami") == {"username": "teller"}
    task = told("jobs", "submit", "task.yaml", "--detach")
    assert task["message"].endswith(task["task_id"])
    created = told("jobs", "status", task["task_id"])["created_at"]
    assert f"{created[:10]} {created[11:19]} UTC" in ok(invoke("jobs", "list"))
    assert told("jobs", "stop", task["task_id"])["status"] == "stopped"
    assert told("jobs", "stop", "--all")["count"] == 0
    volume = told("volumes", "create", "told", "1Gi")["volume_id"]
    assert "size: quantity 'lots'" in invoke("volumes", "resize", "nowhere", "lots").err
    early = invoke("volumes", "resize", volume, "2Gi")
    assert (early.code, f"Volume {volume} is Pending" in early.err) == (6, True)
    assert told("volumes", "delete", volume, "--force")["status"] == "deleted"
