"""Starting a process whose network calls a pod's network answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kvestigate.cluster.node.hosts.interface import Network
from kvestigate.cluster.node.net.seccomp import KEPT, Gate

__all__ = ["KEPT", "gated"]


@contextmanager
def gated(
    network: Network | None, *, keep: bool, own_files: bool
) -> Iterator[Callable[[], None] | None]:
    """What the new process has to run first, if anything; its calls are answered afterwards."""
    if network is None:
        yield None
        return
    with Gate(keep=keep) as gate:
        yield gate.close_in
        network.guard(gate.listener(), own_files=own_files)
