"""`kvestigate workspace` on hosts that are there: mounts, processes and files are real."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kvestigate.client.api import PODS
from kvestigate.client.connect import connect
from kvestigate.cybernet.bodies import Answer, Room
from kvestigate.errors import EXIT_NOT_FOUND, AlreadyExists, KvestigateError
from kvestigate.node_access.reach import reach
from kvestigate.nodeops.cordon import set_cordoned
from kvestigate.operation import Operation
from kvestigate.workspace.cordons import cordon_reason
from kvestigate.workspace.lifecycle import Creation
from kvestigate.workspace.operations import CREATE, DESTROY, FETCH, PS, RUN, SYNC
from kvestigate.workspace.options import CreateOptions, LogsOptions
from kvestigate.workspace.runs import follow
from kvestigate.workspace.spec import WorkspaceSpec, load_workspace
from kvestigate.workspace.uploads import Upload
from tests.bed import Bed
from tests.cli.conftest import Invoke, Outcome
from tests.contexts import acting, planning
from tests.hosts_cluster import HostsCluster

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can mount on the hosts that are made here"
)

MEANT = ("--apply", "--i-understand-this-modifies-hosts")
UNDERSTOOD = MEANT[1]
ROOT = "/opt/kvestigate-workspaces"

Describe = Callable[..., str]
OnHost = Callable[[str], str]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsCluster]:
    cluster = HostsCluster(tmp_path_factory.mktemp("workspaces"), nodes=1, gpus=4)
    yield cluster
    cluster.close()


@pytest.fixture
def kubeconfig(cluster: HostsCluster, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))


@pytest.fixture
def on_host(cluster: HostsCluster) -> OnHost:
    """Run a script on node-1, and have what it prints."""

    async def run(script: str) -> str:
        async with connect(cluster.access()) as api:
            done = await (await reach(api)).host("node-1").script(script)
            assert done.exit_code == 0, done.stderr
            return done.stdout.decode()

    return lambda script: asyncio.run(run(script))


@pytest.fixture
def describe(kubeconfig: None, home: Path, invoke: Invoke) -> Iterator[Describe]:
    """`describe(name, storage={...})` writes a workspace.yaml; what is made of it is removed."""
    made: list[str] = []

    def write(name: str, **fields: Any) -> str:
        storage = {"mode": "disk"} | fields.pop("storage", {})
        spec = {"name": name, "node": "node-1", "storage": storage, **fields}
        path = home / f"{name}.yaml"
        path.write_text(yaml.safe_dump({"workspace": spec}))
        made.append(str(path))
        return str(path)

    yield write
    left = {it["name"] for it in answer(invoke("workspace", "status", "-o", "json"))["workspaces"]}
    for path in made:
        if Path(path).stem in left:
            ok(invoke("workspace", "destroy", "--config", path, *MEANT))
            left.discard(Path(path).stem)


def ok(outcome: Outcome) -> str:
    assert outcome.code == 0, outcome.err + outcome.out
    return outcome.out


def answer(outcome: Outcome) -> Any:
    return json.loads(ok(outcome))


def cordoned(invoke: Invoke) -> bool:
    seen = answer(invoke("debug", "api", "/api/v1/nodes/node-1", "-o", "json"))["body"]
    node = json.loads(seen) if isinstance(seen, str) else seen
    return bool(node["spec"].get("unschedulable"))


def test_a_workspace_from_its_file_to_its_end(
    invoke: Invoke, describe: Describe, home: Path, on_host: OnHost
) -> None:
    (home / "my-code").mkdir()
    (home / "my-code" / "train.sh").write_text(
        'echo "$CUDA_VISIBLE_DEVICES $LEVEL"; echo model >../checkpoints/m\n'
    )
    (home / "my-code" / "junk.pyc").touch()
    config = describe(
        "finetune",
        storage={"mode": "all-tmpfs", "tmpfs_size": "16M"},
        gpu={"reserve": 2},
        sources=[{"local": "./my-code", "subdir": "code", "excludes": ["*.pyc"]}],
    )
    assert "does not exist; create would" in ok(invoke("workspace", "diff", "--config", config))
    planned = invoke("workspace", "apply", "--config", config)
    assert (planned.code, "nothing was changed" in planned.err) == (0, True)
    assert f"mount -t tmpfs -o size=16M,mode=755 kvestigate {ROOT}/finetune" in planned.out
    assert "no workspaces" in ok(invoke("workspace", "status"))

    assert "is ready" in ok(invoke("workspace", "apply", "--config", config, *MEANT))
    assert cordoned(invoke)
    [found] = answer(invoke("workspace", "status", "-o", "json"))["workspaces"]
    assert (found["name"], found["storage"], found["tmpfs_bytes"]) == (
        "finetune",
        "all-tmpfs",
        16 << 20,
    )
    assert [gpu["index"] for gpu in found["gpus"]] == [0, 1]
    [node] = answer(invoke("workspace", "gpus", "--node", "node-1", "-o", "json"))["nodes"]
    uses = [(gpu["use"], gpu["holder"]) for gpu in node["gpus"]]
    assert uses == [("workspace", "finetune")] * 2 + [("free", "")] * 2
    again = ok(invoke("workspace", "apply", "--config", config))
    assert "exists and matches its description" in again
    assert "is up to date (1 file)" in again
    assert "matches its description" in ok(invoke("workspace", "diff", "--config", config))

    command = ("--config", config, "--tag", "train-1", "--gpu", "1", "--env", "LEVEL=a 'b'")
    dry = invoke("workspace", "run", *command, "--", "sh", "train.sh")
    uuid = node["gpus"][1]["uuid"]
    assert (dry.code, f"CUDA_VISIBLE_DEVICES={uuid}" in dry.out) == (0, True)
    ok(invoke("workspace", "run", *command, *MEANT, "--", "sh", "train.sh"))
    assert ok(invoke("workspace", "logs", "train-1", "--config", config, "-f")) == f"{uuid} a 'b'\n"
    [run] = answer(invoke("workspace", "ps", "--config", config, "-o", "json"))["runs"]
    assert (run["tag"], run["state"], run["exit_code"]) == ("train-1", "exited", 0)
    ok(invoke("workspace", "fetch", "checkpoints", "out", "--config", config))
    assert (home / "out" / "checkpoints" / "m").read_text() == "model\n"

    exported = home / "snapshots" / "exported.yaml"
    ok(invoke("workspace", "export", "finetune", "--node", "node-1", "-o", str(exported)))
    assert yaml.safe_load(exported.read_text())["workspace"]["gpu"] == {"reserve": 2}
    shown = invoke("workspace", "destroy", "--config", str(exported))
    assert shown.code == 0
    assert f"[1] umount {ROOT}/finetune" in shown.out
    assert "[2] uncordon node node-1" in shown.out
    assert f"[3] rmdir {ROOT}/finetune" in shown.out
    ok(invoke("workspace", "destroy", "--config", str(exported), *MEANT))
    assert not cordoned(invoke)
    assert on_host(f"ls -A {ROOT}; grep {ROOT} /proc/mounts || :") == ".state\n"


def test_what_runs_can_be_stopped_and_is_when_its_workspace_goes(
    invoke: Invoke, describe: Describe, on_host: OnHost
) -> None:
    config = describe("runs", storage={"mode": "hybrid", "tmpfs_size": "1M"})
    ok(invoke("workspace", "create", "--config", config, *MEANT))
    start = ("workspace", "run", "--config", config, *MEANT)
    ok(invoke(*start, "--tag", "loop", "--", "sh", "-c", "sleep 300 & wait"))
    busy = invoke(*start, "--tag", "loop", "--", "true")
    assert (busy.code, "'loop' is running already" in busy.err) == (6, True)
    unsure = invoke("workspace", "kill", "loop", "--config", config)
    assert (unsure.code, "would send TERM" in unsure.out) == (0, True)
    said = ok(
        invoke("workspace", "kill", "loop", "--config", config, "--signal", "SIGKILL", UNDERSTOOD)
    )
    assert "sent KILL to loop" in said
    ok(invoke("workspace", "logs", "loop", "--config", config, "-f"))
    late = ok(invoke("workspace", "kill", "loop", "--config", config, UNDERSTOOD))
    assert "was not running: it has ended, exit code 137" in late
    unknown = invoke("workspace", "logs", "nobody", "--config", config)
    assert (unknown.code, "its runs are: loop" in unknown.err) == (5, True)

    ok(invoke(*start, "--tag", "bytes", "--", "printf", "a\\377b"))
    ok(invoke("workspace", "logs", "bytes", "--config", config, "-f"))
    log = answer(invoke("workspace", "logs", "bytes", "--config", config, "-o", "json"))
    assert (log["text"], log["run"]["exit_code"]) == ("a\ufffdb", 0)
    on_host(f"rm {ROOT}/runs/logs/bytes.log")
    gone = invoke("workspace", "logs", "bytes", "--config", config, "-f")
    assert (gone.code, "the log of bytes was cut off" in gone.err) == (1, True)

    ok(invoke(*start, "--tag", "holds", "--", "sh", "-c", "cd ../datasets; sleep 300"))
    assert "1/3 running" in ok(invoke("workspace", "status"))
    shown = invoke("workspace", "destroy", "--config", config).out
    assert f"processes that run in {ROOT}/runs" in shown
    assert f"umount {ROOT}/runs/datasets" in shown
    ok(invoke("workspace", "destroy", "--config", config, *MEANT))
    assert on_host("grep -lz ^KVESTIGATE_WORKSPACE= /proc/[0-9]*/environ 2>/dev/null || :") == ""


def test_a_workspace_that_is_full_can_be_seen_and_removed(
    invoke: Invoke, describe: Describe
) -> None:
    config = describe("full", storage={"mode": "all-tmpfs", "tmpfs_size": "1M"})
    ok(invoke("workspace", "create", "--config", config, *MEANT))
    start = ("workspace", "run", "--config", config, *MEANT)
    ok(invoke(*start, "--tag", "fills", "--", "sh", "-c", "cat /dev/zero >../datasets/all; exit 9"))
    ok(invoke("workspace", "logs", "fills", "--config", config, "-f"))
    [run] = answer(invoke("workspace", "ps", "--config", config, "-o", "json"))["runs"]
    assert (run["state"], run["exit_code"]) == ("exited", 9)
    another = invoke(*start, "--tag", "more", "--", "true")
    assert (another.code, "no room left in the workspace" in another.err) == (1, True)
    assert "full" in ok(invoke("workspace", "status"))
    ok(invoke("workspace", "destroy", "--config", config, *MEANT))
    for again in (MEANT, ()):
        shown = ok(invoke("workspace", "destroy", "--config", config, *again))
        assert shown == "workspace full on node-1 does not exist: nothing to remove\n"


def test_only_what_changed_is_sent(
    invoke: Invoke, describe: Describe, home: Path, on_host: OnHost
) -> None:
    config = describe("synced", gpu={"cordon_node": False})
    ok(invoke("workspace", "create", "--config", config, *MEANT))
    local = home / "src"
    (local / "lib").mkdir(parents=True)
    (local / "lib" / "a b'c.py").write_text("1")
    (local / "main.py").write_text("1")
    (local / "link").symlink_to("/etc/hostname")
    (local / os.fsdecode(b"no\xffutf8")).touch()
    dry = invoke("workspace", "sync", str(local), "--config", config)
    assert (dry.code, "would send 5 paths (2 B)" in dry.out) == (0, True)
    sync = ("workspace", "sync", str(local), "--config", config, "-o", "json")
    first = answer(invoke(*sync, *MEANT))
    assert first["sent"] == ["lib", "lib/a b'c.py", "link", "main.py", "no\ufffdutf8"]
    assert answer(invoke(*sync, *MEANT))["sent"] == []

    (local / "main.py").write_text("22")
    on_host(f"cd {ROOT}/synced/code; touch extra cache.pyc; rm -r lib; ln -s /etc lib")
    second = answer(invoke(*sync, "--delete", "--exclude", "*.pyc", *MEANT))
    assert second["sent"] == ["lib", "lib/a b'c.py", "main.py"]
    assert second["removed"] == ["extra", "lib"]
    assert on_host(f"cd {ROOT}/synced/code; ls | wc -l; cat main.py; ls lib; readlink link") == (
        "5\n22a b'c.py\n/etc/hostname\n"
    )
    on_host(f"cd {ROOT}/synced; ln -s /etc datasets/out; ln -s /etc/passwd code/secret")
    outside = invoke(*sync, "--subdir", "datasets/out", *MEANT)
    assert (outside.code, "leads out of the workspace" in outside.err) == (1, True)
    stolen = invoke("workspace", "fetch", "code/secret", "--config", config)
    assert (stolen.code, "leads out of the workspace" in stolen.err) == (1, True)
    missing = invoke("workspace", "fetch", "code/nothing.py", "--config", config)
    assert (missing.code, "code/nothing.py does not exist in workspace synced" in missing.err) == (
        EXIT_NOT_FOUND,
        True,
    )


def test_what_cannot_be_had_is_refused_and_nothing_is_made(
    invoke: Invoke, describe: Describe, on_host: OnHost
) -> None:
    ok(invoke("workspace", "create", "--config", describe("first", gpu={"indices": [2]}), *MEANT))
    on_host(f"mkdir -p {ROOT}/precious; echo mine >{ROOT}/precious/file")
    memory = {"mode": "hybrid", "tmpfs_size": "500T"}
    other = {"mode": "hybrid", "tmpfs_size": "1M"}
    for config, code, message in [
        (describe("big", storage=memory), 6, "of memory that node-1 has free"),
        (describe("many", gpu={"reserve": 4}), 6, "4 are wanted, and 3 of 4 GPUs"),
        (describe("taken", gpu={"indices": [2]}), 6, "workspace first has reserved it"),
        (describe("none", gpu={"indices": [9]}), 2, "node-1 has no GPU 9"),
        (describe("precious"), 6, "exists but is not a workspace"),
        (describe("first", storage=other), 6, "storage.mode is disk, not hybrid"),
        (describe("nowhere", node="node-9"), 5, "there is no node 'node-9'"),
    ]:
        refused = invoke("workspace", "create", "--config", config, *MEANT)
        assert (refused.code, message in refused.err) == (code, True), refused.err
    diff = ok(invoke("workspace", "diff", "--config", describe("first", gpu={"indices": [1]})))
    assert "gpu.indices   [1]         [2]" in diff
    refused = invoke("workspace", "destroy", "--config", describe("precious"), *MEANT)
    assert (refused.code, "not a workspace" in refused.err) == (6, True)
    assert on_host(f"cat {ROOT}/precious/file; rm -r {ROOT}/precious; ls {ROOT}") == "mine\nfirst\n"


def test_a_gpu_that_a_pod_was_given_is_not_free(
    invoke: Invoke, describe: Describe, cluster: HostsCluster, on_host: OnHost
) -> None:
    uid = asyncio.run(_with_gpu(cluster))
    [node] = answer(invoke("workspace", "gpus", "-o", "json"))["nodes"]
    assert [gpu["use"] for gpu in node["gpus"]] == ["pod", "free", "free", "free"]
    # As a kubelet notes it: which pod has which device.
    entry = {"PodUID": uid, "ResourceName": "nvidia.com/gpu"}
    devices = {"DeviceIDs": {"0": [node["gpus"][3]["uuid"]]}}
    record = json.dumps({"Data": {"PodDeviceEntries": [entry | devices]}})
    place = "/var/lib/kubelet/device-plugins"
    on_host(f"mkdir -p {place}; echo '{record}' >{place}/kubelet_internal_checkpoint")
    [node] = answer(invoke("workspace", "gpus", "-o", "json"))["nodes"]
    assert (node["gpus"][3]["use"], node["gpus"][3]["holder"]) == ("pod", "default/holder")
    config = describe("wants", gpu={"indices": [3]})
    refused = invoke("workspace", "create", "--config", config, *MEANT)
    assert (refused.code, "pod (default/holder) was given it" in refused.err) == (6, True)
    assert not cordoned(invoke)
    on_host(f"rm {place}/kubelet_internal_checkpoint")
    asyncio.run(_without_gpu(cluster))


async def _without_gpu(cluster: HostsCluster) -> None:
    async with connect(cluster.access()) as api:
        await api.delete(PODS, "holder")
        await Bed(api).until("pods", lambda found: "holder" not in found)


async def _with_gpu(cluster: HostsCluster) -> str:
    """The uid of a pod that runs with a GPU."""
    name = "holder"
    limits = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    container = {"name": "c", "image": "busybox", "command": ["sleep", "infinity"], **limits}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    async with connect(cluster.access()) as api:
        bed = Bed(api)
        made = await bed.create("pods", {"metadata": {"name": name}, "spec": spec})
        await bed.until("pods", lambda found: found[name]["status"].get("phase") == "Running")
        return str(made["metadata"]["uid"])


def test_the_operations_do_the_same_for_a_gateway(
    cluster: HostsCluster, describe: Describe, home: Path
) -> None:
    """Everything comes as JSON, and the caller has a name."""
    config = yaml.safe_load(Path(describe("agents")).read_text())["workspace"]
    config["gpu"] = {"reserve": 1, "cordon_node": False}

    def call(
        operation: Operation[Any, Any],
        *,
        owner: str = "agent-1",
        apply: bool = True,
        **options: Any,
    ) -> Any:
        given: Any = msgspec.convert(
            {"workspace": config, **options}, operation.input, dec_hook=lambda _, value: value
        )

        async def handled() -> Any:
            return await operation.run(
                replace(planning(cluster.access(), owner), apply=apply), given
            )

        done = asyncio.run(handled())
        assert isinstance(done, operation.output)
        answer = Answer(done, Room())
        with closing(answer):
            return json.loads(answer.whole)

    made = call(CREATE)
    assert (made["applied"], len(made["gpus"])) == (True, 1)
    with pytest.raises(AlreadyExists, match="belongs to 'agent-1'"):
        call(CREATE, owner="agent-2")
    (home / "in").mkdir()
    (home / "in" / "f").write_text("content")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.add(home / "in", arcname=".")
    with closing(Upload(packed.getvalue())) as archive:
        assert call(SYNC, archive=archive, subdir="datasets/in")["sent"] == ["f"]
        assert call(SYNC, archive=archive, subdir="datasets/in")["equal"] == 1
    launched = call(RUN, tag="t", command=["cat", "../datasets/in/f"])
    assert launched["gpus"] == made["gpus"]
    ended = asyncio.run(_followed(cluster, config))
    assert ended == b"content"
    assert call(PS)["runs"][0]["exit_code"] == 0
    fetched = base64.b64decode(call(FETCH, path="datasets/in")["archive"])
    with tarfile.open(fileobj=io.BytesIO(fetched)) as tar:
        assert tar.getnames() == ["in", "in/f"]
    assert call(DESTROY, apply=False)["applied"] is False
    assert call(DESTROY)["applied"] is True


async def _followed(cluster: HostsCluster, config: Any) -> bytes:
    wanted = LogsOptions(msgspec.convert(config, WorkspaceSpec), "t")
    return b"".join([piece async for piece in follow(planning(cluster.access()), wanted)])


def test_who_loses_a_race_for_gpus_leaves_nothing_and_the_node_closed(
    invoke: Invoke, describe: Describe, cluster: HostsCluster, on_host: OnHost
) -> None:
    configs = [describe(name, gpu={"reserve": 3}) for name in ("racer-1", "racer-2")]

    async def race() -> list[Any]:
        context = acting(cluster.access())
        wanted = [CreateOptions(load_workspace(config)) for config in configs]
        return await asyncio.gather(
            *(CREATE.run(context, it) for it in wanted), return_exceptions=True
        )

    outcomes = asyncio.run(race())
    assert sorted(isinstance(it, KvestigateError) for it in outcomes) == [False, True]
    assert on_host(f"ls {ROOT} | grep -c racer") == "1\n"
    assert cordoned(invoke)
    won = next(c for c, it in zip(configs, outcomes, strict=True) if isinstance(it, Creation))
    ok(invoke("workspace", "destroy", "--config", won, *MEANT))
    assert not cordoned(invoke)


def test_what_was_made_is_taken_back_if_a_step_fails(
    invoke: Invoke, describe: Describe, on_host: OnHost
) -> None:
    config = describe(
        "broken", root="/opt/elsewhere", storage={"mode": "all-tmpfs", "tmpfs_size": "1M"}
    )
    on_host("mkdir -p /opt/elsewhere/.state/.lock")  # what should be a file cannot be written
    failed = invoke("workspace", "create", "--config", config, *MEANT)
    assert (failed.code, ".lock" in failed.err) == (1, True)
    left = "find /opt/elsewhere -mindepth 1 ! -path '*/.state*'; grep elsewhere /proc/mounts || :"
    assert on_host(left) == ""
    assert not cordoned(invoke)
    # A step that was done in part: its directories are there when memory cannot be mounted.
    half = describe("half", storage={"mode": "hybrid", "tmpfs_size": "1M"})
    on_host("mv /bin/mount /bin/mount.away")
    failed = invoke("workspace", "create", "--config", half, *MEANT)
    on_host("mv /bin/mount.away /bin/mount")
    assert (failed.code, "mount" in failed.err, "left behind" in failed.err) == (1, True, False)
    assert "half" not in on_host(f"ls {ROOT}")
    assert not cordoned(invoke)
    # Not even what is there can be found out, before or after.
    on_host("mv /bin/sed /bin/sed.away")
    failed = invoke("workspace", "create", "--config", half, *MEANT)
    on_host("mv /bin/sed.away /bin/sed")
    assert (failed.code, "sed" in failed.err) == (1, True)
    assert not cordoned(invoke)


def test_a_node_is_opened_when_the_last_workspace_that_closed_it_goes(
    invoke: Invoke, describe: Describe
) -> None:
    one, two = describe("one"), describe("two")
    for config in (one, two):
        ok(invoke("workspace", "create", "--config", config, *MEANT))
    ok(invoke("workspace", "destroy", "--config", one, *MEANT))
    assert cordoned(invoke)
    ok(invoke("workspace", "uncordon", "node-1", "--i-understand-this-modifies-cluster"))
    assert "node node-1   cordoned    open" in ok(invoke("workspace", "diff", "--config", two))
    ok(invoke("workspace", "create", "--config", two, *MEANT))
    assert cordoned(invoke)
    ok(invoke("workspace", "destroy", "--config", two, *MEANT))
    assert not cordoned(invoke)
    ok(invoke("workspace", "cordon", "node-1", "--i-understand-this-modifies-cluster"))
    assert cordoned(invoke)
    kept = describe("kept")
    ok(invoke("workspace", "create", "--config", kept, *MEANT))
    ok(invoke("workspace", "destroy", "--config", kept, *MEANT))
    assert cordoned(invoke), "it was closed before"
    ok(invoke("workspace", "uncordon", "node-1", "--i-understand-this-modifies-cluster"))


def test_a_cordon_whose_workspace_was_never_made_is_told_and_taken_over(
    invoke: Invoke, describe: Describe, cluster: HostsCluster
) -> None:
    """As it is after `kill -9` between the cordon and the marker, eleven minutes later."""
    when = datetime.now(UTC) - timedelta(minutes=11)
    reason = cordon_reason(f"{ROOT}/never", when)
    asyncio.run(_cordon(cluster, reason))
    shown = ok(invoke("workspace", "status"))
    assert f"node-1: cordoned for {ROOT}/never, which was never made" in shown
    config = describe("next")
    ok(invoke("workspace", "create", "--config", config, *MEANT))
    assert "never made" not in ok(invoke("workspace", "status")), "the node is in use now"
    ok(invoke("workspace", "destroy", "--config", config, *MEANT))
    assert not cordoned(invoke)
    asyncio.run(_cordon(cluster, cordon_reason(f"{ROOT}/soon", datetime.now(UTC))))
    assert "never made" not in ok(invoke("workspace", "status")), "it may be under way"
    ok(invoke("workspace", "uncordon", "node-1", "--i-understand-this-modifies-cluster"))
    asyncio.run(_cordon(cluster, ""))
    assert "never made" not in ok(invoke("workspace", "status")), "this was a person"
    ok(invoke("workspace", "uncordon", "node-1", "--i-understand-this-modifies-cluster"))


async def _cordon(cluster: HostsCluster, reason: str) -> None:
    async with connect(cluster.access()) as api:
        await set_cordoned(api, "node-1", True, apply=True, reason=reason)


def test_what_a_restart_took_is_told(invoke: Invoke, describe: Describe, on_host: OnHost) -> None:
    config = describe("gone", storage={"mode": "all-tmpfs", "tmpfs_size": "1M"})
    ok(invoke("workspace", "create", "--config", config, *MEANT))
    on_host(f"umount {ROOT}/gone")
    assert "gone is empty; a restart may have taken it" in ok(invoke("workspace", "status"))
    ok(invoke("workspace", "destroy", "--config", config, *MEANT))
    assert not cordoned(invoke)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("create",), "--config"),
        (("create", "--config", "none.yaml"), "none.yaml: cannot be read"),
        (("status", "--root", "relative"), "root: 'relative'"),
    ],
)
def test_a_mistake_is_named(invoke: Invoke, args: tuple[str, ...], message: str) -> None:
    outcome = invoke("workspace", *args)
    assert (outcome.code, message in outcome.err) == (2, True), outcome.err


def test_without_the_daemon_set_it_is_said_how_to_install_it(
    invoke: Invoke, kubeconfig: None
) -> None:
    outcome = invoke("workspace", "status", "--node-ds-name", "nothing")
    assert (outcome.code, "DaemonSet 'nothing' does not exist" in outcome.err) == (5, True)


def test_an_exported_description_works_where_it_was_written(
    invoke: Invoke, describe: Describe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kit" / "code").mkdir(parents=True)
    (tmp_path / "kit" / "code" / "train.py").write_text("print(1)\n")
    config = describe("moved", sources=[{"local": "code", "subdir": "code"}])
    (tmp_path / "kit" / "workspace.yaml").write_bytes(Path(config).read_bytes())
    ok(invoke("workspace", "apply", "--config", "kit/workspace.yaml", *MEANT))
    there = Path("elsewhere") / "deep" / "x.yaml"
    ok(invoke("workspace", "export", "moved", "--node", "node-1", "-o", str(there)))
    [source] = yaml.safe_load(there.read_text())["workspace"]["sources"]
    assert source["local"] == str(tmp_path / "kit" / "code")
    ok(invoke("workspace", "diff", "--config", str(there)))
    ok(invoke("workspace", "destroy", "--config", str(there), *MEANT))


def test_small_texts_are_written_read_listed_and_edited(
    invoke: Invoke, describe: Describe, on_host: OnHost
) -> None:
    where = ("--config", describe("texts"))
    ok(invoke("workspace", "create", *where, *MEANT))
    put = ("hi.sh", "sub/ho.sh")
    planned = invoke("workspace", "put-text", f"code/{put[0]}", "--text", "x", *where)
    assert (planned.code, "nothing was changed" in planned.err) == (0, True)
    for name in put:
        text = ("--text", "echo hä\n", "--executable")
        ok(invoke("workspace", "put-text", f"code/{name}", *text, *where, *MEANT))
    edited = ("code/hi.sh", "--old", "hä", "--new", "hö hö")
    ok(invoke("workspace", "edit", *edited, *where, *MEANT))
    assert on_host(f"cd {ROOT}/texts/code; sh hi.sh; test -x hi.sh; ls -A") == "hö hö\nhi.sh\nsub\n"
    twice = invoke("workspace", "edit", "code/hi.sh", "--old", "hö", "--new", "", *where, *MEANT)
    assert (twice.code, "2 times" in twice.err) == (2, True)
    read = ("workspace", "get-text", "code/hi.sh", "--limit", "7", "-o", "json")
    first = answer(invoke(*read, *where))
    assert (first["text"], first["next_offset"]) == ("echo h", 6), "characters are not cut"
    rest = answer(
        invoke("workspace", "get-text", "code/hi.sh", "--offset", "6", "-o", "json", *where)
    )
    assert (rest["text"], rest["next_offset"]) == ("ö hö\n", None)
    listed = ("workspace", "list-files", "--limit", "2", "-o", "json")
    first = answer(invoke(*listed, *where))
    assert (first["total"], [file["path"] for file in first["files"]]) == (3, ["hi.sh", "sub"])
    rest = answer(invoke("workspace", "list-files", "--after", first["next"], "-o", "json", *where))
    assert ([file["path"] for file in rest["files"]], rest["next"]) == (["sub/ho.sh"], None)
    on_host(
        f"cd {ROOT}/texts; ln -s /etc/passwd code/link; ln -s /etc out; head -c 9 /dev/zero >code/z"
    )
    ok(invoke("workspace", "put-text", "code/link", "--text", "mine", *where, *MEANT))
    assert on_host(f"cat {ROOT}/texts/code/link; test ! -L {ROOT}/texts/code/link") == "mine"
    for words, said in (
        (("put-text", "out/x", "--text", "x", *MEANT), "leads out of the workspace"),
        (("put-text", "code/sub", "--text", "x", *MEANT), "is a directory"),
        (("get-text", "code/z"), "is no text"),
        (("get-text", "code/sub"), "is a directory"),
        (("get-text", "out/passwd"), "leads out of the workspace"),
        (("list-files", "code/z"), "is a file"),
    ):
        outcome = invoke("workspace", *words, *where)
        assert (outcome.code != 0, said in outcome.err) == (True, True), outcome.err
