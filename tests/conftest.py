"""The clusters that tests run on.

A test asks for one of two fixtures:

- `cluster`: any cluster; the test runs once on each of `PROVIDERS`.
- `kubernetes`: unmodified upstream Kubernetes, for what only it has (restarts, compaction,
  static tokens). `full_kubernetes` is another one, with controllers and scheduler. A test that
  uses either is marked `real` by that alone.

Isolation is by `namespace`, a new one for each test, and by server, a new one for each module:
what a module leaves behind (custom resources, controllers it started) troubles no other.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import HealthCheck, settings

from tests.served_plane import ServedPlane
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster
from tests.upstream.judge import Judge

# A shell that runs this in the background has it ignore interrupts, as would all programs that
# the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says more of the machine's load than of the code, and a run that
# draws other examples than the last one fails by chance. Whoever wants to draw others asks for
# them: pytest --hypothesis-profile=exploring.
_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("exploring", _UNTIMED)
settings.register_profile("repeatable", _UNTIMED, derandomize=True, database=None)
settings.load_profile("repeatable")


class Cluster(Protocol):
    """What every provider's fixture yields."""

    @property
    def url(self) -> str: ...

    @property
    def ca_file(self) -> Path: ...

    def admin_kubeconfig(self) -> Path: ...

    def judge(self) -> Judge:
        """A plain HTTP client with all rights, independent of the code under test."""


# The rungs of the ladder that have a server, each by its fixture. A provider joins by
# one line here, and every test that asks for `cluster` then runs on it too.
PROVIDERS = [
    pytest.param("embedded", id="embedded"),
    pytest.param("kubernetes", marks=pytest.mark.real, id="real"),
]

_REAL_SECONDS = 240
"""The first test of a module starts its cluster too, which has taken above a minute already."""
_WORKFLOW_SECONDS = 180
"""What takes twenty seconds on a machine that does nothing else takes longer on others."""
_running = pytest.StashKey[str]()


@pytest.fixture(scope="module")
def kubernetes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[UpstreamCluster]:
    """etcd and kube-apiserver: nothing happens on it that a test did not do."""
    with _upstream(tmp_path_factory.mktemp("kubernetes")) as cluster:
        with cluster.judge() as judge, cluster.etcd() as etcd:
            version = judge.get("/version")["gitVersion"]
            etcd_version = etcd.get("/version")["etcdserver"]
        request.config.stash[_running] = f"kube-apiserver {version}, etcd {etcd_version}"
        yield cluster


@pytest.fixture(scope="module")
def full_kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpstreamCluster]:
    """With kube-controller-manager and kube-scheduler, which act on all that they see."""
    with _upstream(tmp_path_factory.mktemp("full-kubernetes")) as cluster:
        cluster.start_controllers()
        cluster.start_scheduler()
        yield cluster


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPlane]:
    """The root plane of `kvestigate plane serve`."""
    with ServedPlane(tmp_path_factory.mktemp("embedded")) as plane:
        yield plane


@contextmanager
def _upstream(directory: Path) -> Iterator[UpstreamCluster]:
    try:
        found = binaries.find()
    except binaries.BinariesMissing as missing:
        pytest.fail(str(missing), pytrace=False)
    with UpstreamCluster(found, directory) as cluster:
        yield cluster
    shutil.rmtree(directory / "etcd")  # the logs stay, for as long as pytest keeps them


@pytest.fixture(scope="module", params=PROVIDERS)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    provider: Cluster = request.getfixturevalue(request.param)
    return provider


@pytest.fixture
def judge(cluster: Cluster) -> Iterator[Judge]:
    with cluster.judge() as judge:
        yield judge


@pytest.fixture
def namespace(judge: Judge) -> str:
    """A new namespace that takes pods: without controllers, nobody else makes its account."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    judge.post("/api/v1/namespaces", {"metadata": {"name": name}})
    judge.ensure(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    return name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are processors: tests wait too, for processes and timers."""
    linux = hasattr(os, "sched_getaffinity")
    processors = len(os.sched_getaffinity(0)) if linux else os.cpu_count() or 1
    return processors + (processors + 1) // 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: to look through it for garbage takes a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not _elsewhere(item)]
    for item in items:
        if {"kubernetes", "full_kubernetes"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.real)
        if item.get_closest_marker("timeout"):
            continue
        if item.get_closest_marker("real"):
            item.add_marker(pytest.mark.timeout(_REAL_SECONDS))
        elif item.get_closest_marker("workflow"):
            item.add_marker(pytest.mark.timeout(_WORKFLOW_SECONDS))


def _elsewhere(item: pytest.Item) -> bool:
    """Asks for the real cluster by name, but would get its namespace on another one."""
    if not isinstance(item, pytest.Function) or "kubernetes" not in item.fixturenames:
        return False
    chosen = item.callspec.params.get("cluster") if hasattr(item, "callspec") else None
    return chosen != "kubernetes" and any(chosen in provider.values for provider in PROVIDERS)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if (running := config.stash.get(_running, None)) is not None:
        terminalreporter.write_line(f"real Kubernetes: {running}")
