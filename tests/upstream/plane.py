"""A served plane with the real controllers and scheduler on its root."""

from __future__ import annotations

import ssl
from pathlib import Path

from tests.served_plane import ServedPlane
from tests.upstream.binaries import Binaries
from tests.upstream.judge import Judge
from tests.upstream.processes import Process, free_ports


class ControlledPlane(ServedPlane):
    """`with ControlledPlane(binaries, directory) as plane:`"""

    def __init__(self, binaries: Binaries, directory: Path) -> None:
        super().__init__(directory)
        self.binaries = binaries

    def __enter__(self) -> ControlledPlane:
        super().__enter__()
        return self

    def start_controllers(self) -> None:
        """All but the one that gives up on nodes without a kubelet, each as its own account."""
        authority = self.directory / "pki" / "ca"
        self._component(
            "kube-controller-manager",
            "--controllers=*,-node-lifecycle-controller",
            "--use-service-account-credentials",
            f"--root-ca-file={authority}.crt",
            f"--cluster-signing-cert-file={authority}.crt",
            f"--cluster-signing-key-file={authority}.key",
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
        self.processes.append(process)
