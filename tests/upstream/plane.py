"""A server of planes as users start it, with the real controllers and scheduler on its root."""

from __future__ import annotations

import json
import ssl
import sys
from pathlib import Path

from tests.upstream.binaries import Binaries
from tests.upstream.judge import Judge
from tests.upstream.processes import Process, free_ports

_PROGRAM = "from kvestigate.cli.main import kvestigate; kvestigate()"


class ServedPlane:
    """`with ServedPlane(binaries, directory) as plane:`; what it writes is in `directory`."""

    def __init__(self, binaries: Binaries, directory: Path) -> None:
        self.binaries = binaries
        self.directory = directory
        self.kubeconfig = directory / "admin.kubeconfig"
        (self.port,) = free_ports(1)
        self._processes: list[Process] = []

    def __enter__(self) -> ServedPlane:
        listen = f"127.0.0.1:{self.port}"
        serve = ["plane", "serve", "--data", str(self.directory), "--listen", listen]
        process = Process(
            "plane", [sys.executable, "-c", _PROGRAM, *serve], self.directory / "plane.log"
        )
        process.start(lambda: "\nnext: " in f"\n{process.tail()}")
        self._processes.append(process)
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.stop()

    def judge(self) -> Judge:
        config = json.loads(self.kubeconfig.read_text())
        context = ssl.create_default_context(cafile=str(self.directory / "pki" / "ca.crt"))
        return Judge(self.port, context, token=config["users"][0]["user"]["token"])

    def start_controllers(self) -> None:
        """All but the one that gives up on nodes without a kubelet."""
        self._component(
            "kube-controller-manager",
            "--controllers=*,-node-lifecycle-controller",
            f"--root-ca-file={self.directory / 'pki' / 'ca.crt'}",
        )

    def start_scheduler(self) -> None:
        self._component("kube-scheduler")

    def _component(self, name: str, *flags: str) -> None:
        (port,) = free_ports(1)
        command = [
            self.binaries.path(name),
            f"--kubeconfig={self.kubeconfig}",
            "--kube-api-content-type=application/json",  # planes answer in JSON only
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.directory / name}",
            *flags,
        ]
        process = Process(name, command, self.directory / f"{name}.log")
        with Judge(port, ssl._create_unverified_context()) as probe:
            process.start(lambda: probe.answers("/healthz"))
        self._processes.append(process)
