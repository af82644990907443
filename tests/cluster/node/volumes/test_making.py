"""Volumes as containers will see them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvestigate.cluster.node.spec.environment import (
    MissingReference,
    Surroundings,
)
from kvestigate.cluster.node.spec.pod import (
    CONFIG_MAP,
    SECRET,
    Container,
    Pod,
    TokenSource,
)
from kvestigate.cluster.node.volumes.files import File, write_atomically
from kvestigate.cluster.node.volumes.making import Volumes, binds, references
from kvestigate.cluster.node.volumes.sources import Claimed

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
AROUND = Surroundings(
    data={
        (CONFIG_MAP, "conf"): {"a": b"1", "b": b"2"},
        (SECRET, "sec"): {"pw": b"hunter"},
        (CONFIG_MAP, "gone"): None,
    }
)


def pod(*volumes: dict[str, Any]) -> Pod:
    metadata = {"name": "web", "namespace": "shop", "uid": "u1", "labels": {"app": "web"}}
    return msgspec.convert({"metadata": metadata, "spec": {"volumes": list(volumes)}}, Pod)


async def no_token(pod: Pod, wanted: TokenSource) -> str:
    return f"token for {wanted.audience}"


async def a_claim(pod: Pod, name: str) -> Claimed:
    return Claimed(f"/claims/{name}")


@pytest.fixture
def volumes(tmp_path: Path) -> Volumes:
    return Volumes(tmp_path, token=no_token, claim=a_claim)


def shown(directory: str) -> dict[str, str]:
    """What a container sees: the links, and the files behind them."""
    root = Path(directory)
    found: dict[str, str] = {}
    for link in root.iterdir():
        if not link.name.startswith(".."):
            behind = [link] if link.is_file() else list(link.iterdir())
            found |= {str(path.relative_to(root)): path.read_text() for path in behind}
    return found


def mode_of(directory: str, name: str) -> int:
    return stat.S_IMODE((Path(directory) / name).stat().st_mode)


def is_directory(path: str) -> bool:
    return Path(path).is_dir()


@pytest.mark.parametrize(
    ("source", "files"),
    [
        ({"configMap": {"name": "conf"}}, {"a": "1", "b": "2"}),
        ({"configMap": {"name": "conf", "items": [{"key": "b", "path": "x/y"}]}}, {"x/y": "2"}),
        ({"configMap": {"name": "gone", "optional": True}}, {}),
        ({"secret": {"secretName": "sec"}}, {"pw": "hunter"}),
        (
            {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"n": "web"},
        ),
        (
            {
                "projected": {
                    "sources": [
                        {"secret": {"name": "sec"}},
                        {"configMap": {"name": "conf", "items": [{"key": "a", "path": "a"}]}},
                        {"serviceAccountToken": {"path": "token", "audience": "me"}},
                    ]
                }
            },
            {"pw": "hunter", "a": "1", "token": "token for me"},
        ),
    ],
)
async def test_what_comes_from_the_api_becomes_files(
    volumes: Volumes, source: dict[str, Any], files: dict[str, str]
) -> None:
    made = await volumes.make(pod({"name": "v", **source}), AROUND, 0.0)
    assert shown(made["v"].source) == files
    assert made["v"].read_only


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMap": {"name": "gone"}}, 'configmap "gone" not found'),
        ({"configMap": {"name": "conf", "items": [{"key": "z", "path": "z"}]}}, "key: z"),
        ({}, "has a type that this node does not support"),
    ],
)
async def test_what_cannot_be_made_is_named(
    volumes: Volumes, source: dict[str, Any], message: str
) -> None:
    with pytest.raises(MissingReference, match=message):
        await volumes.make(pod({"name": "v", **source}), AROUND, 0.0)


def test_an_update_is_one_step_for_readers(tmp_path: Path) -> None:
    write_atomically(tmp_path, {"a": File(b"1", 0o644), "b": File(b"2", 0o400)}, 0.0)
    before = (tmp_path / "..data").readlink()
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o400
    write_atomically(tmp_path, {"a": File(b"1", 0o644), "b": File(b"2", 0o400)}, 1.0)
    assert (tmp_path / "..data").readlink() == before  # nothing changed, nothing moved
    write_atomically(tmp_path, {"a": File(b"new", 0o644)}, 2.0)
    assert (tmp_path / "a").read_bytes() == b"new"
    assert not (tmp_path / "b").is_symlink()
    assert not (tmp_path / before).exists()


async def test_mounts_name_where_containers_see_volumes(volumes: Volumes) -> None:
    made = await volumes.make(
        pod(
            {"name": "e", "emptyDir": {}},
            {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {"name": "h", "hostPath": {"path": "/var/log"}},
            {"name": "c", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        ),
        AROUND,
        0.0,
    )
    mounts = [
        {"name": "e", "mountPath": "/e", "subPathExpr": "$(WHO)/x"},
        {"name": "m", "mountPath": "/m"},
        {"name": "h", "mountPath": "/h", "readOnly": True},
        {"name": "c", "mountPath": "/c"},
    ]
    container = msgspec.convert({"volumeMounts": mounts}, Container)
    empty, memory, host, claim = binds(Pod(), container, made, {"WHO": "me"})
    assert empty.source.endswith("/e/me/x")
    assert is_directory(empty.source)
    assert memory.memory == 1024 * 1024
    assert (host.source, host.on_node, host.read_only) == ("/var/log", True, True)
    assert (claim.source, claim.read_only) == ("/claims/data", True)


@pytest.mark.parametrize("below", ["../x", "a/../../x", "/etc"])
async def test_a_sub_path_cannot_leave_its_volume(volumes: Volumes, below: str) -> None:
    made = await volumes.make(pod({"name": "e", "emptyDir": {}}), AROUND, 0.0)
    mount = {"name": "e", "mountPath": "/e", "subPath": below}
    with pytest.raises(MissingReference, match="points outside the volume"):
        binds(Pod(), msgspec.convert({"volumeMounts": [mount]}, Container), made, {})


@pytest.mark.parametrize(
    ("default", "security", "own", "mode"),
    [
        (None, {}, {}, 0o644),
        (0o400, {}, {}, 0o400),
        (None, {"runAsUser": 1000}, {}, 0o600),
        (None, {}, {"runAsUser": 1000}, 0o600),
        pytest.param(None, {"fsGroup": 1000}, {}, 0o640, marks=AS_ROOT),
    ],
)
async def test_a_token_is_for_whom_the_pod_names(
    volumes: Volumes,
    default: int | None,
    security: dict[str, int],
    own: dict[str, int],
    mode: int,
) -> None:
    source: dict[str, Any] = {"sources": [{"serviceAccountToken": {"path": "token"}}]}
    if default is not None:
        source["defaultMode"] = default
    spec = {
        "volumes": [{"name": "t", "projected": source}],
        "securityContext": security,
        "containers": [{"name": "main", "securityContext": own}],
        "ephemeralContainers": [{"name": "debug"}],
    }
    one = msgspec.convert({"metadata": {"name": "web", "uid": "u"}, "spec": spec}, Pod)
    made = await volumes.make(one, AROUND, 0.0)
    assert mode_of(made["t"].source, "token") == mode


async def test_a_projected_source_that_nobody_knows_is_told(volumes: Volumes) -> None:
    unknown = {"name": "u", "projected": {"sources": [{"clusterTrustBundle": {"path": "ca"}}]}}
    with pytest.raises(MissingReference, match="projected volume"):
        await volumes.make(pod(unknown), AROUND, 0.0)


async def test_a_sub_path_needs_the_values_it_is_made_of(volumes: Volumes) -> None:
    made = await volumes.make(pod({"name": "e", "emptyDir": {}}), AROUND, 0.0)
    mount = {"name": "e", "mountPath": "/e", "subPathExpr": "$(A)/$(B)/$$(C)"}
    container = msgspec.convert({"volumeMounts": [mount]}, Container)
    with pytest.raises(MissingReference, match=r"^missing value for A, B$"):
        binds(Pod(), container, made, {"B": ""})


def test_references_of_all_volumes_are_found() -> None:
    made = pod(
        {"name": "a", "configMap": {"name": "c1"}},
        {"name": "b", "secret": {"secretName": "s1"}},
        {"name": "c", "projected": {"sources": [{"configMap": {"name": "c2"}}]}},
    )
    assert references(made) == {(CONFIG_MAP, "c1"), (SECRET, "s1"), (CONFIG_MAP, "c2")}
