"""Where the upstream binaries are."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = ("kubectl", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


class BinariesMissing(Exception):
    """Not built yet, or `KVESTIGATE_KUBE_BIN` points elsewhere."""


@dataclass(frozen=True, slots=True)
class Binaries:
    directory: Path

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def version(self) -> str:
        """`v1.36.4`, asked of the API server's binary itself."""
        printed = subprocess.run(
            [self.path("kube-apiserver"), "--version"],
            check=True,
            capture_output=True,
            text=True,
            timeout=30,
        )
        return printed.stdout.split()[-1]


def pinned_version() -> str:
    """The release that `make kubernetes` builds."""
    module = (ROOT / "tools/kubernetes/go.mod").read_text()
    match = re.search(r"^\s*(?:require )?k8s\.io/kubernetes (v\S+)", module, re.MULTILINE)
    assert match, "tools/kubernetes/go.mod does not require k8s.io/kubernetes"
    return match[1]


def find() -> Binaries:
    """Those of `KVESTIGATE_KUBE_BIN`, else those `make kubernetes` put into the cache."""
    if chosen := os.environ.get("KVESTIGATE_KUBE_BIN"):
        directory, way_out = Path(chosen), "unset KVESTIGATE_KUBE_BIN or build them there"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        directory = cache / "kvestigate/kubernetes" / pinned_version()
        way_out = "make kubernetes"
    missing = [name for name in NAMES if not os.access(directory / name, os.X_OK)]
    if missing:
        raise BinariesMissing(f"no {', '.join(missing)} in {directory}; run: {way_out}")
    return Binaries(directory)
