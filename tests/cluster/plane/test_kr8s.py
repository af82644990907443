"""kr8s works on a plane: it finds kinds by discovery, and creates, patches, watches and waits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.served_plane import ServedPlane


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPlane]:
    options = ("--memory", "--controllers", "--nodes", "1")
    with ServedPlane(tmp_path_factory.mktemp("plane"), *options) as served:
        yield served


@pytest.mark.parametrize(
    ("errand", "outcome"),
    [
        ("change", [{"a": "1", "b": "2"}, ["settings"], False]),
        ("roll_out", [["web", "web"], 3]),
        ("discover", [2]),
        ("watch", ["ADDED", "MODIFIED", "DELETED"]),
    ],
)
def test_errands(plane: ServedPlane, errand: str, outcome: Any) -> None:
    program = [
        sys.executable,
        "-m",
        "tests.cluster.plane.kr8s_errands",
        str(plane.admin_kubeconfig()),
    ]
    done = subprocess.run(
        [*program, errand], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == outcome
