"""Global options work before and after every command."""

from __future__ import annotations

import pytest

from kvestigate.cli.command import command
from kvestigate.cli.group import group
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.parameters import duration
from tests.cli.conftest import Invoke

seen: list[GlobalOptions] = []


@group("toy")
def toy() -> None:
    """A toy."""


@command("show", examples=(), into=toy)
def show(options: GlobalOptions) -> None:
    """Remember the options."""
    seen.append(options)


@pytest.mark.parametrize(
    ("args", "options"),
    [
        (["show"], GlobalOptions()),
        (["-n", "web", "show"], GlobalOptions(namespace="web")),
        (["show", "-n", "web"], GlobalOptions(namespace="web")),
        (["-n", "web", "show", "-n", "db"], GlobalOptions(namespace="db")),
        (["show", "--namespace=web"], GlobalOptions(namespace="web")),
        (["show", "-nweb", "-ojson"], GlobalOptions(namespace="web", output="json")),
        (["show", "-o", "wide"], GlobalOptions(output="wide")),
        (
            ["--kubeconfig", "a", "show", "--context", "b"],
            GlobalOptions(kubeconfig="a", context="b"),
        ),
        (
            ["--as", "jane", "--as-group", "a", "show", "--as-group", "b", "--as-uid", "7"],
            GlobalOptions(as_user="jane", as_groups=("a", "b"), as_uid="7"),
        ),
        (["show", "--request-timeout", "1m30s"], GlobalOptions(request_timeout=90.0)),
        (["show", "--request-timeout", "0"], GlobalOptions(request_timeout=0.0)),
        (["-v", "show", "--no-color"], GlobalOptions(verbose=True, no_color=True)),
    ],
)
def test_options_are_taken_anywhere(
    invoke: Invoke, args: list[str], options: GlobalOptions
) -> None:
    seen.clear()
    assert invoke(*args, root=toy).code == 0
    assert seen == [options]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("0", 0.0),
        ("30", 30.0),
        ("30s", 30.0),
        ("1m30s", 90.0),
        ("500ms", 0.5),
        ("1.5h", 5400.0),
        ("2d", 172800.0),
    ],
)
def test_duration(written: str, seconds: float) -> None:
    assert duration(written) == seconds


@pytest.mark.parametrize("written", ["", "s", "3x", "-1s", "1m 30s", "1e3", "m30"])
def test_bad_durations_are_named(invoke: Invoke, written: str) -> None:
    outcome = invoke(f"--request-timeout={written}", "show", root=toy)
    assert outcome.code == 2
    assert f"{written!r} is not a duration; write 30s, 1m30s or 500ms" in outcome.err
