"""What our YAML reader makes of a manifest, beside what kubectl makes of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from kvestigate.kube.yaml_documents import load
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster

SCALARS = (
    *("y", "Y", "yes", "Yes", "YES", "yEs", "n", "N", "no", "No", "NO", "on", "On", "ON"),
    *("off", "Off", "OFF", "true", "True", "TRUE", "tRue", "false", "False", "FALSE"),
    *(
        "~",
        "null",
        "Null",
        "NULL",
        "nULL",
        "''",
        "010",
        "0o10",
        "08",
        "0x1F",
        "0X1F",
        "-0x1F",
        "0B1",
        "0O7",
        "0b11",
    ),
    *("-0b11", "1_000", "1__0", "190:20:30", "1:30", "1e3", "1E3", "1.5", ".5", "5.", "+1", "-1"),
    *("+.5", "1e", "12e03", "685.230_15e+03", "2026-01-01", "2026-01-01T00:00:00Z", "0", "-0"),
    *("2026-01-01 00:00:00", "00", "0.0", "1.0", "100000000000000000000", "18446744073709551615"),
    *("9223372036854775807", "-9223372036854775808", "1e400", "1e21", "1e20", "123456789.5e3"),
    *("'yes'", '"010"', "!!str 1", "!!binary YQ==", "!!timestamp 2026-01-01", "!!int '3'"),
    *(
        "!!float 3",
        "!!bool 'yes'",
        "!foo bar",
        "=",
        "<<",
        '"a\\u00e9"',
        '"\\x01"',
        "[a, 1]",
        "+",
        ".",
    ),
    *("{1: a, 1.5: b, yes: c, 2026-01-01: d, 010: e, 0x10: f, 1e3: g}", "{? a : b}", "-x", "_1"),
)


def test_scalars_mean_what_they_mean_to_kubectl(
    kubernetes: UpstreamCluster, tmp_path: Path
) -> None:
    lines = [f"  k{number:03}: {scalar}" for number, scalar in enumerate(SCALARS)]
    head = ["apiVersion: v1", "kind: ConfigMap", "metadata: {name: a}", "data:"]
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text("\n".join([*head, *lines]))
    command = [binaries.find().path("kubectl"), "--kubeconfig", str(kubernetes.admin_kubeconfig())]
    command += ["create", "--dry-run=client", "--validate=false", "-o", "json", "-f", str(manifest)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    theirs: dict[str, Any] = json.loads(answer.stdout)["data"]
    (document,) = load(manifest.read_bytes(), manifest.name)
    differing = {
        scalar: f"kubectl {theirs[key]!r}, ours {ours!r}"
        for scalar, (key, ours) in zip(SCALARS, document.value["data"].items(), strict=True)
        if (type(ours), ours) != (type(theirs[key]), theirs[key])
    }
    assert not differing
