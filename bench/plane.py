"""A plane beside kube-apiserver + etcd: reads, writes and watches under the same load."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from bench.load import COUNT, OBJECT, Job
from bench.rates import Measured, Rate, RateResult, Target, compared, drive
from bench.settings import Settings
from bench.versions import versions
from tests.served_plane import ServedPlane
from tests.upstream import binaries
from tests.upstream.cluster import READER_TOKEN, UpstreamCluster
from tests.upstream.judge import Judge

Json = dict[str, Any]

_OURS, _THEIRS = "kvestigate", "kube-apiserver + etcd"
_SECONDS = 1.5
_ROUNDS = 2
"""For each run that is asked for: the pace of a shared machine changes from second to second."""
_OBJECTS = 500
_WATCHERS, _EVENTS = 100, 1_000
_WRITERS = 16
"""Connections that make the events."""
_USER = "token-reader"
_TOKENS = f"{READER_TOKEN},{_USER},uid-of-the-reader\n"
_NAMESPACE, _NEW, _WATCHED = "bench", "bench-new", "bench-watched"
_OBJECT, _COUNT = OBJECT.decode(), COUNT.decode()
_PODS = f"/api/v1/namespaces/{_NAMESPACE}/pods"
_MAPS = f"/api/v1/namespaces/{_NAMESPACE}/configmaps"
_CACHED = "resourceVersion=0"
"""From a server's memory: whatever it has."""


@dataclass(frozen=True, slots=True)
class Load:
    name: str
    method: str
    path: str
    body: Json | None = None
    objects: int = _OBJECTS
    watched: str = ""
    """The collection that is watched: then events are what counts."""

    @property
    def cached(self) -> Load | None:
        """The same read as the real server answers it from its cache."""
        if self.method != "GET":
            return None
        return replace(self, path=f"{self.path}?{_CACHED}")


def _named(path: str) -> str:
    return f"{path}/bench-{_OBJECT}"


def run(settings: Settings) -> RateResult:
    with _ours() as ours, _theirs() as theirs:
        rates: list[Rate] = []
        for load in _loads():
            rates += _compare(load, ours, theirs, settings)
    method = (
        f"64 connections with TLS, {_SECONDS:g} s a turn, a user bound by RBAC, pods of 3 KB, no "
        "two of them alike; SQLite and etcd both sync to disk; one generator process beside the "
        f"servers on the same cores; watch: {_WATCHERS} watchers x {_EVENTS} pods created on "
        f"{_WRITERS} connections; CPU is the servers' per request or event; medians of "
        f"{settings.runs * _ROUNDS} rounds in which they take turns, as are the ratios"
    )
    return RateResult("plane", method, versions("kvestigate", "uvloop", "httptools"), rates)


def _loads() -> list[Load]:
    annotation = {"metadata": {"annotations": {"example.com/round": _COUNT}}}
    made = f"/api/v1/namespaces/{_NEW}"
    watched = f"/api/v1/namespaces/{_WATCHED}/pods"
    return [
        Load("GET pod", "GET", _named(_PODS)),
        Load(f"LIST {_OBJECTS} pods", "GET", _PODS),
        Load("CREATE pod", "POST", f"{made}/pods", _pod(), objects=0),
        Load("CREATE ConfigMap", "POST", f"{made}/configmaps", _config_map(), objects=0),
        Load("PATCH pod, merge", "PATCH", _named(_PODS), annotation),
        Load("PATCH ConfigMap, merge", "PATCH", _named(_MAPS), {"data": {"round": _COUNT}}),
        Load("watch, events", "POST", watched, _pod(), objects=0, watched=watched),
    ]


# -- the measurements --------------------------------------------------------------------


def _compare(load: Load, ours: Target, theirs: Target, settings: Settings) -> list[Rate]:
    contests = [(_OURS, ours, load), (_THEIRS, theirs, load)]
    if load.cached is not None:
        contests.append((f"{_THEIRS}, from its cache", theirs, load.cached))
    taken: dict[str, list[Measured]] = {name: [] for name, _, _ in contests}
    rounds = settings.runs * _ROUNDS
    for number in range(rounds):
        for name, target, each in contests:
            measured = drive(target, _job(each, target, number * 1_000_000))
            settings.progress(
                f"{load.name} {number + 1}/{rounds} {name}: {measured.per_second:,.0f}/s"
            )
            taken[name].append(measured)
    return compared(load.name, taken, _WATCHERS if load.watched else 1)


def _job(load: Load, target: Target, first: int) -> Job:
    job = Job(
        target.port,
        str(target.ca),
        target.token,
        load.method,
        load.path,
        msgspec.json.encode(load.body).decode() if load.body is not None else "",
        _media(load.method),
        seconds=_SECONDS,
        objects=load.objects,
        first=first,
    )
    if not load.watched:
        return job
    version = _version(target, load.watched)
    return msgspec.structs.replace(
        job,
        seconds=0,
        connections=_WRITERS,
        requests=_EVENTS,
        watchers=_WATCHERS,
        watch=f"{load.watched}?watch=true&resourceVersion=",
        version=version,
    )


def _media(method: str) -> str:
    return "application/merge-patch+json" if method == "PATCH" else "application/json"


def _version(target: Target, collection: str) -> str:
    with target.judge() as judge:
        version: str = judge.get(f"{collection}?limit=1")["metadata"]["resourceVersion"]
        return version


# -- the servers -------------------------------------------------------------------------


@contextmanager
def _ours() -> Iterator[Target]:
    with tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as name:
        directory = Path(name)
        tokens = directory / "tokens.csv"
        tokens.write_text(_TOKENS)
        with ServedPlane(directory, "--token-file", str(tokens)) as plane:
            with plane.judge() as judge:
                _furnish(judge)
            pids = [process.pid for process in plane.processes]
            yield Target(_OURS, plane.port, plane.ca_file, READER_TOKEN, tuple(pids))


@contextmanager
def _theirs() -> Iterator[Target]:
    with (
        tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as directory,
        UpstreamCluster(binaries.find(), Path(directory), durable=True) as cluster,
    ):
        with cluster.judge() as judge:
            _furnish(judge)
        yield Target(_THEIRS, cluster.port, cluster.ca_file, READER_TOKEN, cluster.pids())


def _furnish(judge: Judge) -> None:
    """A user with rights, namespaces, and the objects that are read and patched."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"verbs": ["*"], "apiGroups": [""], "resources": ["pods", "configmaps"]}
    judge.post(f"{rbac}/clusterroles", {"metadata": {"name": "bench"}, "rules": [rule]})
    judge.post(
        f"{rbac}/clusterrolebindings",
        {
            "metadata": {"name": "bench"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "bench",
            },
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": _USER}],
        },
    )
    for namespace in (_NAMESPACE, _NEW, _WATCHED):
        judge.ensure("/api/v1/namespaces", {"metadata": {"name": namespace}})
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        judge.ensure(accounts, {"metadata": {"name": "default"}})
    for number in range(_OBJECTS):
        judge.post(_PODS, _numbered(_pod(), number))
        judge.post(_MAPS, _numbered(_config_map(), number))


# -- the objects -------------------------------------------------------------------------


def _numbered(obj: Json, number: int) -> Json:
    text = json.dumps(obj).replace(_OBJECT, f"{number:08}").replace(_COUNT, "0" * 8)
    numbered: Json = json.loads(text)
    return numbered


def _config_map() -> Json:
    lines = "\n".join(f"setting.{number} = value of the setting {number}" for number in range(20))
    return {
        "metadata": {"name": f"bench-{_OBJECT}", "labels": {"app": "bench"}},
        "data": {"round": _COUNT, "config.ini": lines},
    }


def _pod() -> Json:
    """About 3 KB once the server has added defaults and managed fields."""
    container = {
        "name": "server",
        "image": "registry.example/serving/server:2026.1",
        "command": ["/usr/bin/server", "--port=8000", f"--shard={_OBJECT}"],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"containerPort": 8000, "name": "http"}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8000}},
        "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }
    return {
        "metadata": {
            "name": f"bench-{_OBJECT}",
            "labels": {"app": "bench"},
            "annotations": {"example.com/round": _COUNT},
        },
        "spec": {
            "containers": [container],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "20Gi"}}],
        },
    }
