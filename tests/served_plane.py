"""A server of planes as users start it, in a process of its own: the embedded rung."""

from __future__ import annotations

import json
import ssl
import sys
from pathlib import Path
from typing import Any

from tests.upstream.judge import Judge
from tests.upstream.processes import Process

_PROGRAM = "from kvestigate.cli.main import kvestigate; kvestigate()"


class ServedPlane:
    """`with ServedPlane(directory) as plane:`; what it writes is in `directory`.

    `options` are further ones of `plane serve`.
    """

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        self._options = options
        self.kubeconfig = directory / "admin.kubeconfig"
        self.url = ""
        """With the port that the server was given, once it listens."""
        self.ca_file = directory / "pki" / "ca.crt"
        self.processes: list[Process] = []
        """Stopped in reverse order."""

    def __enter__(self) -> ServedPlane:
        serve = ["plane", "serve", "--data", str(self.directory), "--listen", "127.0.0.1:0"]
        serve += self._options
        process = Process(
            "plane", [sys.executable, "-c", _PROGRAM, *serve], self.directory / "plane.log"
        )
        process.start(lambda: "\nnext: " in f"\n{process.tail()}")
        self.processes.append(process)
        self.url = self._written()["clusters"][0]["cluster"]["server"]
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            process.stop()

    def admin_kubeconfig(self) -> Path:
        return self.kubeconfig

    def judge(self) -> Judge:
        context = ssl.create_default_context(cafile=str(self.ca_file))
        return Judge(self.port, context, token=self.token)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def token(self) -> str:
        """The owner's."""
        token: str = self._written()["users"][0]["user"]["token"]
        return token

    def _written(self) -> dict[str, Any]:
        """The kubeconfig."""
        document: dict[str, Any] = json.loads(self.kubeconfig.read_text())
        return document
