"""How long a user waits for the first word, beside kubectl."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.frame import Contender, Result, race
from bench.settings import Settings
from bench.versions import versions
from tests.upstream import binaries


def run(settings: Settings) -> Result:
    kubectl = binaries.find().path("kubectl")
    ours = str(Path(sys.executable).with_name("kvestigate"))
    contenders = [
        Contender("kvestigate --help", [ours, "--help"]),
        Contender("kvestigate --version", [ours, "--version"]),
        Contender("python -c pass", [sys.executable, "-c", "pass"]),
        Contender("kubectl --help", [kubectl, "--help"]),
        Contender("kubectl version --client", [kubectl, "version", "--client"]),
    ]
    runs = settings.runs * 4  # each takes some hundredths of a second
    rows = race(contenders, runs, lambda _: None)
    method = f"median of {runs} interleaved runs, output to /dev/null"
    return Result("startup", method, versions("kvestigate", "click"), rows)
