"""What a server keeps beside its planes."""

from __future__ import annotations

import datetime
import stat
from pathlib import Path

import msgspec
import pytest

from kvestigate.cluster.plane.front.data_directory import DataDirectory
from kvestigate.errors import InputError

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    made = DataDirectory(tmp_path / "deep" / "down")
    made.prepare()
    return made


def test_the_ca_and_the_token_are_made_once(directory: DataDirectory) -> None:
    authority, token = directory.authority(NOW), directory.admin_token()

    again = DataDirectory(directory.path)

    assert again.authority(NOW).pair == authority.pair
    assert again.admin_token() == token
    assert len(token) > 40


def test_only_the_owner_can_read_secrets(directory: DataDirectory) -> None:
    directory.write_kubeconfig("https://x", directory.authority(NOW), directory.admin_token(), NOW)

    files = [path for path in directory.path.rglob("*") if path.is_file()]

    assert {path.name for path in files} == {
        "ca.crt",
        "ca.key",
        "admin.token",
        "admin.kubeconfig",
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700


def test_the_kubeconfig_leads_to_the_server(directory: DataDirectory) -> None:
    authority = directory.authority(NOW)
    directory.write_kubeconfig("https://127.0.0.1:6443", authority, "secret", NOW)

    written = msgspec.json.decode(directory.kubeconfig.read_bytes())

    assert written["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert written["users"][0]["user"]["token"] == "secret"
    assert written["current-context"] == written["contexts"][0]["name"]


def test_a_broken_ca_is_named(directory: DataDirectory) -> None:
    directory.authority(NOW)
    (directory.path / "pki" / "ca.crt").write_text("not a certificate")

    with pytest.raises(InputError, match=r"ca\.crt: the CA cannot be used"):
        directory.authority(NOW)


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")

    with pytest.raises(InputError, match="taken"):
        DataDirectory(tmp_path / "taken").prepare()
