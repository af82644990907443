"""What Apps become on hosts."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest

from kvestigate.app import compile_to_distributed, compile_to_workspace, load_app
from kvestigate.errors import InputError
from kvestigate.workspace.spec import GpuSpec, StorageMode, StorageSpec
from tests.app.conftest import EXAMPLES, app

NODE = {"node": "gpu-node-7"}


def test_the_trainer() -> None:
    workspace, launch = compile_to_workspace(load_app(EXAMPLES / "trainer.yaml"))
    assert (workspace.name, workspace.node) == ("trainer-01", "gpu-node-7")
    assert workspace.storage == StorageSpec(StorageMode.HYBRID, "500G")
    assert workspace.gpu == GpuSpec(reserve=2)
    assert [it.local for it in workspace.sources] == ["./code"]
    assert launch.command == ("python3", "-m", "train")
    assert re.fullmatch("trainer-01-[0-9a-f]{8}", launch.tag)
    assert launch.env == {"OMP_NUM_THREADS": "16"}


def test_another_launch_has_another_tag() -> None:
    def tag(**fields: Any) -> str:
        fields = {"command": ["run"], "workspace": NODE, **fields}
        return compile_to_workspace(app(**fields)).launch.tag

    assert tag() == tag(resources={"gpu": 1})
    tags = [
        tag(resources={"cpu": "2"}),
        tag(resources={"memory": "1Gi"}),
        tag(),
        tag(command=["walk"]),
        tag(env={"A": "1"}),
        tag(restart="on-failure"),
        tag(shared_config_files=[{"name": "a", "content": "x"}]),
        tag(shared_config_files=[{"name": "a", "content": "y"}]),
    ]
    assert len(set(tags)) == len(tags)


def test_all_that_can_be_said_of_a_workspace() -> None:
    spec = app(
        command=["run"],
        lifecycle="batch",
        resources={"gpu": 2},
        workspace={
            "node": "n",
            "root": "/srv/spaces",
            "storage": {"mode": "hybrid", "tmpfs_size": "1T", "hybrid_tmpfs_path": "env"},
            "gpu_indices": [3, 4],
            "cordon_node": False,
        },
        shared_config_files=[{"name": "a.toml", "content": "x"}],
    )
    workspace, launch = compile_to_workspace(spec)
    assert workspace.path == "/srv/spaces/web"
    assert workspace.storage == StorageSpec(StorageMode.HYBRID, "1T", "env")
    assert workspace.gpu == GpuSpec(indices=(3, 4), cordon_node=False)
    assert launch.env == {"APP_CONFIG_DIR": "/srv/spaces/web/config"}
    assert launch.files == {"a.toml": "x"}


@pytest.mark.parametrize(
    ("fields", "printed"),
    [
        ({"lifecycle": "batch"}, "once\n"),
        ({"lifecycle": "interactive"}, "once\n"),
        ({"restart": "never"}, "once\n"),
        ({"restart": "on-failure", "lifecycle": "batch"}, "once\nonce\nonce\n"),
        ({}, "once\n" * 3),
        ({"restart": "always", "lifecycle": "batch"}, "once\n" * 3),
    ],
)
def test_restarts(fields: dict[str, Any], printed: str, tmp_path: Any) -> None:
    """The third attempt succeeds; whoever goes on after that is stopped by the missing file."""
    script = (
        "[ -e go ] || kill -TERM $PPID; echo once; echo x >>count; "
        '[ "$(wc -l <count)" -lt 3 ] && exit 1; rm go'
    )
    (tmp_path / "go").touch()
    _, launch = compile_to_workspace(app(command=["sh", "-c", script], workspace=NODE, **fields))
    pauseless = [word.replace("sleep 1", "sleep 0") for word in launch.command]
    done = subprocess.run(
        pauseless, cwd=tmp_path, capture_output=True, text=True, timeout=20, check=False
    )
    assert done.stdout.startswith(printed)
    assert done.stdout.count("once") <= len(printed.split()) + 1


def test_shards_take_turns_on_the_nodes() -> None:
    spec = app(command=["run"], distributed={"shards": 3, "nodes": ["a", "b"]}, env={"X": "1"})
    shards = compile_to_distributed(spec).shards
    assert [(it.workspace.name, it.workspace.node) for it in shards] == [
        ("web-0", "a"),
        ("web-1", "b"),
        ("web-2", "a"),
    ]
    assert [it.launch.env["DIST_RANK"] for it in shards] == ["0", "1", "2"]
    for it in shards:
        assert it.launch.env["X"] == "1"
        assert it.launch.env["DIST_WORLD_SIZE"] == "3"
        assert it.launch.env["DIST_PEERS"] == "a,b,a"
        assert it.launch.env["DIST_COORDINATOR"] == "a"


def test_shards_find_each_other_at_addresses_where_they_are_known() -> None:
    spec = app(command=["run"], distributed={"shards": 2, "nodes": ["a", "b"]})
    [first, _] = compile_to_distributed(spec, {"a": "10.0.0.1"}).shards
    assert first.launch.env["DIST_PEERS"] == "10.0.0.1,b"
    assert first.launch.env["DIST_COORDINATOR"] == "10.0.0.1"


def test_shards_without_nodes_are_on_the_one_node() -> None:
    spec = app(command=["run"], distributed={"shards": 2}, workspace=NODE)
    shards = compile_to_distributed(spec).shards
    assert [it.workspace.node for it in shards] == ["gpu-node-7", "gpu-node-7"]


def test_an_app_that_is_not_distributed_is_one_shard() -> None:
    [shard] = compile_to_distributed(app(command=["run"], workspace=NODE)).shards
    assert shard.launch.env["DIST_WORLD_SIZE"] == "1"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "workspace.node: is needed"),
        ({"workspace": NODE}, "command: is needed"),
        ({"workspace": NODE, "command": ["x"], "distributed": {"shards": 2}}, "more than one"),
        ({"workspace": NODE, "command": ["x"], "env": {"a.b": "x"}}, r"env\.a\.b: 'a\.b' cannot"),
        (
            {"workspace": NODE, "command": ["x"], "env": {"CUDA_VISIBLE_DEVICES": "0"}},
            "is set by kvestigate",
        ),
    ],
)
def test_what_cannot_run_on_a_host(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        compile_to_workspace(app(**fields))
    assert caught.value.hint
