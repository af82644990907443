"""Which server of planes a command means: `--data DIR`, or the kubeconfig of the global options."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.options import GlobalOptions
from kvestigate.errors import NoCluster

if TYPE_CHECKING:
    from kvestigate.client.access import Access

KUBECONFIG = "admin.kubeconfig"


data_option = click.option(
    "--data",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory with the planes and keys of the server; "
    "~/.local/state/kvestigate/plane by default.",
)


def data_directory() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "kvestigate" / "plane"


def server_access(options: GlobalOptions, data: Path | None) -> Access:
    """The server of --kubeconfig or --context; without them, the one with that data directory."""
    if not options.kubeconfig and not options.context:
        options = replace(options, kubeconfig=str(server_kubeconfig(data)))
    return access_of(options)


def server_kubeconfig(data: Path | None) -> Path:
    directory = data or data_directory()
    path = directory / KUBECONFIG
    if not path.exists():
        raise NoCluster(
            f"no server of planes has used the data directory {directory}: {KUBECONFIG} is missing",
            hint="`kvestigate plane serve` starts a server; --kubeconfig names that of another",
        )
    return path
