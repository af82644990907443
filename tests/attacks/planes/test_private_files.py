"""What a server keeps is its owner's alone, whatever was there before."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from kvestigate.cluster.assembly.directory import ClusterDirectory
from kvestigate.cluster.plane.front.audit_log import AuditLog
from kvestigate.cluster.plane.front.data_directory import DataDirectory
from kvestigate.cluster.plane.store.sqlite.backend import SqliteBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cybernet.audit_log import AuditLog as GatewayLog
from kvestigate.cybernet.spec import AuditSpec
from kvestigate.errors import InputError
from kvestigate.files import private_file
from tests.attacks.planes.conftest import opened, options_in


@pytest.fixture
def careless() -> Iterator[None]:
    """A process whose new files are everybody's."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(directory: Path) -> dict[str, str]:
    """The permissions of all that is in a directory, and of itself."""
    found = [directory, *directory.rglob("*")]
    return {
        str(path.relative_to(directory)): oct(stat.S_IMODE(path.stat().st_mode)) for path in found
    }


def assert_private(directory: Path) -> None:
    for name, mode in modes(directory).items():
        expected = "0o700" if (directory / name).is_dir() else "0o600"
        assert mode == expected, (name, mode)


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o700, 0o750, 0o711])
async def test_a_server_in_a_directory_that_was_there(
    tmp_path: Path, careless: None, mode: int
) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=mode)
    options = replace(options_in(tmp_path, memory=False), audit_log=data / "audit.log")
    async with opened(options):
        assert_private(data)
        assert "planes.db-wal" in modes(data)
    assert_private(data)


async def test_a_server_whose_files_were_open(tmp_path: Path, careless: None) -> None:
    data = tmp_path / "data"
    options = replace(options_in(tmp_path, memory=False), audit_log=data / "audit.log")
    async with opened(options):
        pass
    for path in [data, *data.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o644)
    (data / "planes.db-wal").touch(0o644)
    async with Store(SqliteBackend(data / "planes.db")):
        assert modes(data)["planes.db"] == "0o600"
    DataDirectory(data).prepare()
    with closing(AuditLog(data / "audit.log")):
        assert_private(data)


def test_a_shared_directory_is_refused_not_closed(tmp_path: Path) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(InputError, match="shared with other users"):
        DataDirectory(shared).prepare()
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_an_embedded_cluster(tmp_path: Path, careless: None, mode: int) -> None:
    base = tmp_path / "clusters"
    (base / "c").mkdir(mode=mode, parents=True)
    (base / "c" / "lock").touch(0o666)
    cluster = ClusterDirectory(base, "c")
    with cluster.held():
        assert_private(base / "c")


async def test_the_audit_log_of_a_gateway(tmp_path: Path, careless: None) -> None:
    path = tmp_path / "audit.jsonl"
    path.touch(0o666)
    with closing(GatewayLog(AuditSpec(str(path)))):
        assert oct(stat.S_IMODE(path.stat().st_mode)) == "0o600"


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666, 0o777, 0o400 | 0o044])
def test_a_file_that_was_there(tmp_path: Path, careless: None, mode: int) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    os.close(private_file(path, os.O_RDONLY))
    assert oct(stat.S_IMODE(path.stat().st_mode)) == "0o600"
