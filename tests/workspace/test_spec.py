"""What a workspace.yaml may say, and what is said of mistakes in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.workspace.names import DEFAULT_ROOT
from kvestigate.workspace.sizes import mount_size, parse_size
from kvestigate.workspace.spec import (
    GpuSpec,
    SourceSpec,
    StorageMode,
    StorageSpec,
    WorkspaceSpec,
    dump_workspace,
    load_workspace,
    parse_workspace,
)

FULL = """\
workspace:
  name: finetune-experiment
  node: node-02
  api_version: v1
  root: /srv/ws
  storage:
    mode: all-tmpfs
    tmpfs_size: 500G
  gpu:
    reserve: 4
    cordon_node: false
  sources:
    - local: ./my-code
      subdir: code
      excludes: ["__pycache__", "*.pyc", ".git"]
    - local: ./small-fixtures
      subdir: datasets
"""


def test_a_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "workspace.yaml").write_text(FULL)
    assert load_workspace(tmp_path / "workspace.yaml") == WorkspaceSpec(
        name="finetune-experiment",
        node="node-02",
        root="/srv/ws",
        storage=StorageSpec(StorageMode.ALL_TMPFS, "500G"),
        gpu=GpuSpec(reserve=4, cordon_node=False),
        sources=(
            SourceSpec(str(tmp_path / "my-code"), "code", ("__pycache__", "*.pyc", ".git")),
            SourceSpec(str(tmp_path / "small-fixtures"), "datasets"),
        ),
    )


def test_little_is_needed() -> None:
    spec = parse_workspace({"workspace": {"name": "a", "node": "n"}})
    assert (spec.root, spec.path) == (DEFAULT_ROOT, f"{DEFAULT_ROOT}/a")
    assert (spec.storage.mode, spec.tmpfs_path) == ("hybrid", f"{spec.path}/datasets")
    assert spec.storage.tmpfs_size == "500G"
    assert spec.gpu == GpuSpec(reserve=0, indices=(), cordon_node=True)


def spec(**fields: Any) -> dict[str, Any]:
    return {"workspace": {"name": "a", "node": "n", **fields}}


@pytest.mark.parametrize(
    ("document", "message", "hint"),
    [
        (None, "there is no `workspace:` in it", "name: NAME"),
        ({"workspace": {}}, "workspace.name: the field is required", ""),
        ({**spec(), "extra": 1}, "extra: no such field", "under `workspace:`"),
        (spec(nmae="x"), "workspace.nmae: no such field", "did you mean workspace.name?"),
        (spec(name="../etc"), "workspace.name: '../etc' cannot be the name", "a-z"),
        (spec(name="a b"), "workspace.name: 'a b'", "a-z"),
        (spec(node="$(reboot)"), "workspace.node: '$(reboot)'", "nodes"),
        (spec(root="/"), "workspace.root: '/'", "not '/' itself"),
        (spec(root="opt/x"), "workspace.root: 'opt/x'", "absolute"),
        (spec(root="/opt/../etc"), "workspace.root: '/opt/../etc'", "'..'"),
        (spec(root="/opt/a;b"), "workspace.root: '/opt/a;b'", "absolute"),
        (spec(root="/proc/x"), "workspace.root: '/proc/x' belongs to the kernel", "/opt"),
        (spec(api_version="v2"), "workspace.api_version: 'v2' is not known", "v1"),
        (spec(storage={"mode": "ram"}), "workspace.storage.mode: 'ram' is none of", "there are"),
        (spec(storage={"tmpfs_size": "lots"}), "storage.tmpfs_size: 'lots' is not a size", "500G"),
        (spec(storage={"tmpfs_size": "0"}), "storage.tmpfs_size: '0' is not a size", "500G"),
        (spec(storage={"hybrid_tmpfs_path": "../x"}), "hybrid_tmpfs_path: '../x'", "relative"),
        (spec(storage={"hybrid_tmpfs_path": "pids"}), "pids/ is kept for the runs", "datasets"),
        (spec(gpu={"reserve": -1}), "workspace.gpu.reserve: -1 is negative", ""),
        (
            spec(gpu={"indices": [1, 1]}),
            "workspace.gpu.indices: [1, 1] names the same GPU twice",
            "",
        ),
        (spec(gpu={"reserve": 1, "indices": [0]}), "reserve: 1 too", "give reserve"),
        (spec(sources=[{"local": "x", "subdir": "/etc"}]), "sources[0].subdir: '/etc'", "relative"),
        (spec(sources=[{"local": ""}]), "workspace.sources[0].local: is empty", ""),
    ],
)
def test_a_mistake_is_named_with_its_field_and_value(
    document: Any, message: str, hint: str
) -> None:
    with pytest.raises(InputError) as caught:
        parse_workspace(document, "w.yaml")
    assert caught.value.message.startswith("w.yaml: ")
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: cannot be read"):
        load_workspace(tmp_path / "none.yaml")


NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True)
SPECS = st.builds(
    WorkspaceSpec,
    name=NAMES,
    node=st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True),
    root=st.from_regex(r"/(opt|srv|data)(/[a-z0-9]{1,8}){0,2}", fullmatch=True),
    storage=st.builds(
        StorageSpec,
        st.sampled_from(StorageMode),
        st.from_regex(r"[1-9][0-9]{0,3}(|[KMGT]i?)", fullmatch=True),
        st.sampled_from(["datasets", "scratch/x"]),
    ),
    gpu=st.builds(GpuSpec, reserve=st.integers(0, 8), cordon_node=st.booleans())
    | st.builds(GpuSpec, indices=st.lists(st.integers(0, 9), unique=True).map(tuple)),
    sources=st.lists(
        st.builds(SourceSpec, st.text(min_size=1), NAMES, st.lists(st.text()).map(tuple)),
        max_size=2,
    ).map(tuple),
)


@given(SPECS)
def test_what_is_written_is_read_as_the_same(made: WorkspaceSpec) -> None:
    from kvestigate.kube.yaml_documents import load

    [document] = load(dump_workspace(made))
    assert parse_workspace(document.value) == made


@given(SPECS)
def test_the_gateway_can_take_it_as_json(made: WorkspaceSpec) -> None:
    assert msgspec.json.decode(msgspec.json.encode(made), type=WorkspaceSpec) == made


@pytest.mark.parametrize(
    ("text", "count", "option"),
    [
        ("500G", 500 << 30, "500G"),
        ("500Gi", 500 << 30, "500G"),
        ("1024M", 1 << 30, "1G"),
        ("1536k", 1536 << 10, "1536K"),
        ("2T", 2 << 40, "2T"),
        ("1000", 1000, "1000"),
    ],
)
def test_sizes_are_read_as_mount_reads_them(text: str, count: int, option: str) -> None:
    assert parse_size(text) == count
    assert mount_size(count) == option


@given(st.integers(1, 1 << 55))
def test_a_size_survives_being_an_option(count: int) -> None:
    assert parse_size(mount_size(count)) == count
