"""Options of commands that reach the hosts of nodes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from kvestigate.node_access.model import NodeAccess

_USUAL = NodeAccess()


def through_daemon_set(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the node-access DaemonSet; the command gets them as `via`."""

    @click.option(
        "--node-ds-namespace",
        default=_USUAL.namespace,
        show_default=True,
        metavar="NAME",
        help="Namespace of the node-access DaemonSet.",
    )
    @click.option(
        "--node-ds-name",
        default=_USUAL.name,
        show_default=True,
        metavar="NAME",
        help="Name of the node-access DaemonSet.",
    )
    @functools.wraps(function)
    def call(*args: Any, node_ds_namespace: str, node_ds_name: str, **kwargs: Any) -> Any:
        return function(*args, via=NodeAccess(node_ds_namespace, node_ds_name), **kwargs)

    return call
