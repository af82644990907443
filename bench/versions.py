"""What was measured, to print beside the figures."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from tests.upstream import binaries


def versions(*distributions: str) -> dict[str, str]:
    """Of the given Python distributions, of Python, Kubernetes and the machine."""
    known = {name: metadata.version(name) for name in distributions}
    known["Python"] = platform.python_version()
    known["Kubernetes"] = binaries.find().version()
    known["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    return known
