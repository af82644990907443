"""How long a user waits for the first word, beside kubectl."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from bench.frame import Contender, Result, race
from bench.settings import Settings
from bench.versions import versions
from tests.served_plane import ServedPlane
from tests.upstream import binaries


def run(settings: Settings) -> Result:
    with (
        tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as directory,
        ServedPlane(Path(directory)) as plane,
    ):
        return _race(settings, Path(directory), str(plane.admin_kubeconfig()))


def _race(settings: Settings, directory: Path, config: str) -> Result:
    kubectl = binaries.find().path("kubectl")
    ours = str(Path(sys.executable).with_name("kvestigate"))
    # kubectl keeps what it discovers in HOME: its own, so that ours stays as it is. Our bytecode is
    # kept too, as pip does when it installs: a checkout may have been told not to.
    environment = os.environ | {
        "HOME": str(directory),
        "KUBECONFIG": config,
        "PYTHONPYCACHEPREFIX": str(directory / "bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    contenders = [
        Contender("kvestigate pods", [ours, "pods"], environment),
        Contender("kubectl get pods -A", [kubectl, "get", "pods", "-A"], environment),
        Contender("kvestigate --help", [ours, "--help"], environment),
        Contender("kvestigate --version", [ours, "--version"], environment),
        Contender("python -c pass", [sys.executable, "-c", "pass"], environment),
        Contender("kubectl --help", [kubectl, "--help"]),
        Contender("kubectl version --client", [kubectl, "version", "--client"]),
    ]
    runs = settings.runs * 4  # each takes some hundredths of a second
    rows = race(contenders, runs, lambda _: None)
    method = f"median of {runs} interleaved runs, output to /dev/null"
    return Result("startup", method, versions("kvestigate", "click"), rows)
