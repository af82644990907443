"""Help is quick because it imports almost nothing. Counted, not timed."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "asyncio",
    "cryptography",
    "httptools",
    "msgspec",
    "ssl",
    "urllib.request",
    "uvloop",
    "websockets",
    "yaml",
}

# Python itself and click are 95 modules on 3.11; the shell adds its own few, dataclasses and
# a few from the standard library. The rest is room for other Python versions, not for ours.
MOST = 140

PROGRAM = """
import sys
from kvestigate.cli.main import {root}, run
code = run({root}, {args!r})
print(code, *sorted(sys.modules), file=sys.stderr)
"""


def imported_by(root: str, *args: str) -> set[str]:
    done = subprocess.run(
        # -S: what an installation's site hooks import is not ours to count.
        [
            sys.executable,
            "-S",
            "-c",
            f"import sys; sys.path[:0] = {sys.path!r}\n"
            + PROGRAM.format(root=root, args=list(args)),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    code, *modules = done.stderr.split()
    assert code == "0", done.stderr
    return set(modules)


@pytest.mark.parametrize("root", ["KVESTIGATE_PROGRAM", "K8S_CLI_PROGRAM", "K8S_COLLECT_PROGRAM"])
@pytest.mark.parametrize("args", [("--help",), ("--version",)], ids=" ".join)
def test_help_and_version_import_nothing_heavy(root: str, args: tuple[str, ...]) -> None:
    modules = imported_by(root, *args)
    assert not modules & HEAVY
    ours = {name for name in modules if name.startswith("kvestigate")}
    assert {name.split(".")[1] for name in ours if "." in name} <= {
        "catalog",
        "cli",
        "errors",
        "files",
        "kube",
    }
    assert len(modules) <= MOST, sorted(modules)


@pytest.mark.parametrize(
    "args",
    [
        ("app", "--help"),
        ("collect", "--help"),
        ("cybernet", "--help"),
        ("plane", "serve", "--help"),
        ("scenario", "--help"),
    ],
    ids=" ".join,
)
def test_the_help_of_commands_that_are_not_derived_imports_nothing_heavy_either(
    args: tuple[str, ...],
) -> None:
    assert not imported_by("KVESTIGATE_PROGRAM", *args) & HEAVY
