"""The user's kubeconfig gains a context and loses it again; everything else stays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from kvestigate.cluster.assembly import kubeconfig
from kvestigate.errors import ConfigError

ADMIN = {
    "clusters": [{"name": "kvestigate", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "admin", "user": {"token": "t"}}],
    "contexts": [{"name": "kvestigate", "context": {"cluster": "kvestigate", "user": "admin"}}],
}
OWN = {
    "apiVersion": "v1",
    "kind": "Config",
    "preferences": {"colors": True},
    "clusters": [{"name": "work", "cluster": {"server": "https://work"}}],
    "users": [{"name": "me", "user": {"token": "secret"}}],
    "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
    "current-context": "work",
}


@pytest.fixture
def admin(tmp_path: Path) -> Path:
    path = tmp_path / "admin.kubeconfig"
    path.write_text(yaml.safe_dump(ADMIN))
    return path


def test_a_context_is_merged_in_and_taken_out_again(tmp_path: Path, admin: Path) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(OWN))
    path.chmod(0o640)

    assert kubeconfig.merge(path, admin, "lab") == "kvestigate-lab"
    merged = yaml.safe_load(path.read_text())
    assert [entry["name"] for entry in merged["contexts"]] == ["work", "kvestigate-lab"]
    assert merged["current-context"] == "work"
    assert merged["clusters"][1]["cluster"] == {"server": "https://127.0.0.1:1"}
    assert path.stat().st_mode & 0o777 == 0o640

    assert kubeconfig.remove(path, "lab")
    assert yaml.safe_load(path.read_text()) == OWN
    assert not kubeconfig.remove(path, "lab")


def test_merging_twice_changes_the_entry_and_adds_none(tmp_path: Path, admin: Path) -> None:
    path = tmp_path / "new" / "config"
    kubeconfig.merge(path, admin, "lab")
    first = path.read_bytes()
    kubeconfig.merge(path, admin, "lab")
    assert path.read_bytes() == first
    assert yaml.safe_load(first)["current-context"] == "kvestigate-lab"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_broken_file_is_left_alone(tmp_path: Path, admin: Path) -> None:
    path = tmp_path / "config"
    path.write_text("clusters: [")
    with pytest.raises(ConfigError, match="cannot add the cluster's context"):
        kubeconfig.merge(path, admin, "lab")
    with pytest.raises(ConfigError, match="cannot remove the cluster's context"):
        kubeconfig.remove(path, "lab")
    assert path.read_text() == "clusters: ["


def test_a_context_stays_in_a_file_that_cannot_be_written(tmp_path: Path, admin: Path) -> None:
    path = tmp_path / "config"
    kubeconfig.merge(path, admin, "lab")
    long = tmp_path / ("x" * 252)  # no name is left for a lock beside it
    path.rename(long)
    with pytest.raises(ConfigError, match=r"cannot remove the cluster's context: .*too long"):
        kubeconfig.remove(long, "lab")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"KUBECONFIG": "/a/one:/a/two"}, Path("/a/one")),
        ({"KUBECONFIG": ":/a/two"}, Path("/a/two")),
        ({}, Path.home() / ".kube" / "config"),
    ],
)
def test_the_file_is_the_one_that_kubectl_would_write(
    environ: dict[str, str], expected: Path
) -> None:
    assert kubeconfig.target(environ) == expected


def test_clusters_that_come_at_once_all_have_their_context(tmp_path: Path, admin: Path) -> None:
    path = tmp_path / "config"
    names = [f"lab-{number}" for number in range(8)]
    with ThreadPoolExecutor(len(names)) as together:
        merged = list(together.map(lambda name: kubeconfig.merge(path, admin, name), names))
    contexts = yaml.safe_load(path.read_text())["contexts"]
    assert {entry["name"] for entry in contexts} == set(merged)


def test_a_lock_that_nobody_gives_back_is_named(
    tmp_path: Path, admin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfig, "LOCK_SECONDS", 0.0)
    path = tmp_path / "config"
    path.with_name("config.lock").touch()
    with pytest.raises(ConfigError, match=r"config\.lock exists: another program is writing"):
        kubeconfig.merge(path, admin, "lab")
    assert not path.exists()
