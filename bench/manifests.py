"""Reading manifests from a file, beside the YAML parser alone."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import yaml

from bench.frame import Contender, Result, race
from bench.settings import Settings
from bench.versions import versions
from bench.workloads import deployment

_DOCUMENTS = 10_000
_PARSER = """
import sys, yaml
with open(sys.argv[1], 'rb') as file:
    for document in yaml.load_all(file, yaml.CSafeLoader):
        pass
"""


def run(settings: Settings) -> Result:
    with tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as name:
        file = Path(name) / "manifests.yaml"
        documents = (
            {"apiVersion": "apps/v1", "kind": "Deployment", **deployment(index)}
            for index in range(_DOCUMENTS)
        )
        file.write_text(yaml.dump_all(documents, Dumper=yaml.CSafeDumper))
        size = file.stat().st_size
        ours = [sys.executable, "-m", "kvestigate", "collect", "from-file", str(file)]
        contenders = [
            Contender("kvestigate collect from-file", ours),
            Contender("PyYAML (C), parsing only", [sys.executable, "-c", _PARSER, str(file)]),
        ]
        rows = race(contenders, settings.runs, settings.progress)
    method = (
        f"{_DOCUMENTS} Deployments in one file of {size / 1e6:.0f} MB; ours: "
        f"{_DOCUMENTS / rows[0].wall:,.0f} documents a second; median of {settings.runs} runs"
    )
    return Result("from-file", method, versions("kvestigate", "pyyaml"), rows)
