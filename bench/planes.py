"""Many planes in one server: what the next one costs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.load import OBJECT, Job
from bench.rates import Target, drive
from bench.settings import Settings
from bench.versions import versions
from tests.served_plane import ServedPlane

_PLANES = 1_000
_WARM = 20
"""Planes made before, so that what the first one loads is not counted."""
_NAME = f"bench-{OBJECT.decode()}"


@dataclass(frozen=True, slots=True)
class PlanesResult:
    name: str
    method: str
    versions: Mapping[str, str]
    planes: int
    create_ms: float
    """Of wall time, for each plane."""
    write_ms: float
    cpu_ms: float
    """The server's, for both."""
    resident_kb: float

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def render(self) -> str:
        versions = ", ".join(f"{name} {value}" for name, value in self.versions.items())
        return (
            f"{self.name}: {self.method}\n  {versions}\n"
            f"  {self.planes} planes, each: {self.create_ms:.2f} ms to create, "
            f"{self.write_ms:.2f} ms to write to, {self.cpu_ms:.2f} ms of CPU, "
            f"{self.resident_kb:.1f} KB resident"
        )


def run(settings: Settings) -> PlanesResult:
    with (
        tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as name,
        ServedPlane(Path(name)) as plane,
    ):
        pids = tuple(process.pid for process in plane.processes)
        target = Target("kvestigate", plane.port, plane.ca_file, plane.token, pids)
        _make(target, 0, _WARM)
        resident = target.resident()
        create, write, cpu = _make(target, _WARM, _PLANES)
        grown = target.resident() - resident
    settings.progress(f"{_PLANES} planes: {grown / 1e6:.1f} MB")
    method = (
        "planes created over HTTPS and each given one ConfigMap, on SQLite synced to disk, "
        "8 connections"
    )
    return PlanesResult(
        "planes",
        method,
        versions("kvestigate"),
        _PLANES,
        create / _PLANES * 1e3,
        write / _PLANES * 1e3,
        cpu / _PLANES * 1e3,
        grown / _PLANES / 1e3,
    )


def _make(target: Target, first: int, count: int) -> tuple[float, float, float]:
    """Make planes and write to each: seconds for the one, the other, and the CPU's for both."""
    made = drive(target, _job(target, first, count, "/clusters", f'{{"id":"{_NAME}"}}'))
    path = f"/clusters/{_NAME}/control-plane/api/v1/namespaces/default/configmaps"
    body = '{"metadata":{"name":"touched"},"data":{"by":"bench"}}'
    written = drive(target, _job(target, first, count, path, body))
    return made.outcome.seconds, written.outcome.seconds, made.cpu + written.cpu


def _job(target: Target, first: int, count: int, path: str, body: str) -> Job:
    return Job(
        target.port,
        str(target.ca),
        target.token,
        "POST",
        path,
        body,
        connections=8,
        requests=count,
        first=first,
    )
