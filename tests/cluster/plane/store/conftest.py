"""A real etcd for the tests of the store."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.upstream import binaries
from tests.upstream.processes import free_ports

PATIENCE = 60.0


def etcd_binary() -> str:
    """That of the virtualenv, of the system, or the one built with Kubernetes."""
    beside = Path(sys.executable).with_name("etcd")
    if beside.exists():
        return str(beside)
    if found := shutil.which("etcd"):
        return found
    try:
        return binaries.find().path("etcd")
    except binaries.BinariesMissing:
        pytest.skip("no etcd: install the dev requirements or the etcd-server package")


class Etcd:
    """One member. It keeps its address and its data when it is stopped and started."""

    def __init__(self, directory: Path, flags: Sequence[str] = (), name: str = "default") -> None:
        """`flags` are those for TLS, if any."""
        self._directory = directory
        client, peer = free_ports(2)
        self._flags = flags
        self._name = name
        scheme = "https" if flags else "http"
        self.url = f"{scheme}://127.0.0.1:{client}"
        self._peer = f"http://127.0.0.1:{peer}"
        self.cluster = [self]
        """All members, this one among them."""
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when etcd takes requests: it says so as it would to systemd."""
        self._directory.mkdir(exist_ok=True)
        everyone = ",".join(f"{each._name}={each._peer}" for each in self.cluster)
        with tempfile.TemporaryDirectory() as short, _listening(f"{short}/notify") as told:
            with (self._directory / "etcd.log").open("ab") as log:
                self._process = subprocess.Popen(
                    [
                        etcd_binary(),
                        *("--name", self._name, "--data-dir", str(self._directory / "data")),
                        *("--listen-client-urls", self.url, "--advertise-client-urls", self.url),
                        *("--listen-peer-urls", self._peer),
                        *("--initial-advertise-peer-urls", self._peer),
                        *("--initial-cluster", everyone),
                        *("--heartbeat-interval", "50", "--election-timeout", "500"),
                        *("--log-level", "error", "--unsafe-no-fsync", *self._flags),
                    ],
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "NOTIFY_SOCKET": f"{short}/notify"},
                )
            try:
                assert told.recv(100) == b"READY=1"
            except TimeoutError:
                said = (self._directory / "etcd.log").read_text()[-2000:]
                pytest.fail(f"etcd did not start: {said}")

    @property
    def leads(self) -> bool:
        address = self.url.removeprefix("http://")
        with closing(http.client.HTTPConnection(address, timeout=PATIENCE)) as connection:
            connection.request("POST", "/v3/maintenance/status", b"{}")
            status = json.load(connection.getresponse())
        return bool(status["leader"] == status["header"]["member_id"])

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def running_etcd(directory: Path, flags: Sequence[str] = ()) -> Iterator[Etcd]:
    etcd = Etcd(directory, flags)
    try:
        etcd.start()
        yield etcd
    finally:
        etcd.stop()


@pytest.fixture(scope="session")
def shared_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    """One for all tests that let it live."""
    with running_etcd(tmp_path_factory.mktemp("etcd")) as etcd:
        yield etcd


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[Etcd]:
    """One to be stopped and paused."""
    with running_etcd(tmp_path) as etcd:
        yield etcd


@pytest.fixture
def three_etcds(tmp_path: Path) -> Iterator[list[Etcd]]:
    """A cluster that outlives any one of its members."""
    members = [Etcd(tmp_path / name, name=name) for name in ("a", "b", "c")]
    for member in members:
        member.cluster = members
    try:
        # None of them is ready before most of them are.
        with ThreadPoolExecutor() as threads:
            list(threads.map(Etcd.start, members))
        yield members
    finally:
        for member in members:
            member.stop()


@pytest.fixture
def prefix() -> str:
    return f"/{uuid.uuid4().hex}"


@contextmanager
def _listening(path: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(path)
        told.settimeout(PATIENCE)
        yield told
