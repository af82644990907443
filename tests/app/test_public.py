"""The names that are promised to importers, and what they cost."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kvestigate.app
from kvestigate.app import compile_to_k8s, format_manifest_summary, load_app
from tests.app.conftest import EXAMPLES


@pytest.mark.parametrize("name", kvestigate.app.__all__)
def test_every_promised_name_is_there(name: str) -> None:
    assert getattr(kvestigate.app, name) is not None


def test_a_name_that_is_not_promised() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = kvestigate.app.nothing


def test_the_package_alone_costs_nothing() -> None:
    program = (
        "import sys, kvestigate.app; print('msgspec' in sys.modules, 'asyncio' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False False\n"


def test_a_summary_of_manifests() -> None:
    manifests = compile_to_k8s(load_app(EXAMPLES / "web-service.yaml"))
    assert format_manifest_summary(manifests) == (
        "KIND         NAMESPACE   NAME                 ABOUT\n"
        "ConfigMap    default     web-service-config   index.html\n"
        "Service      default     web-service          ClusterIP 80\n"
        "Deployment   default     web-service          2 x python:3.13-slim\n"
    )
    distributed = compile_to_k8s(load_app(EXAMPLES / "distributed.yaml"))
    assert "headless" in format_manifest_summary(distributed)
    assert "4 x busybox:1.37" in format_manifest_summary(distributed)
    assert format_manifest_summary([]) == "no objects\n"
