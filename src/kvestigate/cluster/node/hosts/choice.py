"""The best host that a machine allows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from kvestigate.cluster.node.hosts.directory import DirectoryHost
from kvestigate.cluster.node.hosts.interface import Host


async def best_host(
    directory: Path,
    name: str,
    *,
    now: Callable[[], float],
    shared: Sequence[str] = (),
) -> Host:
    """A namespace host where the kernel lets us, else a directory host; open already.

    `directory` is the node's alone, and its parent holds nothing but nodes: the nodes do not
    see it. `shared` are directories of the machine that every node sees.
    """
    if sys.platform == "linux":
        from kvestigate.cluster.node.hosts.namespace import HostUnavailable, NamespaceHost

        host = NamespaceHost(directory, name, now=now, shared=shared)
        try:
            await host.open()
        except HostUnavailable:
            pass  # a container without rights, or a kernel that forbids user namespaces
        else:
            return host
    plain = DirectoryHost(directory, now=now)
    await plain.open()
    return plain
