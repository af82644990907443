"""The command line as somebody with a kubeconfig calls it, in this process."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from kvestigate.cli.main import KVESTIGATE_PROGRAM, run


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def kvestigate(kubeconfig: Path, *args: str) -> Done:
    """Nothing of the developer's own is in reach: no variables, and another home."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    kept = {"PATH": os.environ["PATH"], "HOME": str(kubeconfig.parent)}
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name in list(os.environ):
            patch.delenv(name)
        for name, value in kept.items():
            patch.setenv(name, value)
        code = run(KVESTIGATE_PROGRAM, ["--kubeconfig", str(kubeconfig), *args])
    return Done(code, _written(out), _written(err))


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)  # which flushes as well
    return stream.read()
