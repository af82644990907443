"""From global options to the cluster they mean."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from kvestigate.cli.options import GlobalOptions
from kvestigate.errors import NoCluster
from kvestigate.files import home

if TYPE_CHECKING:
    from kvestigate.client.access import Access, AccessOptions


def access_of(options: GlobalOptions) -> Access:
    """The access that flags, environment and kubeconfig files mean together.

    With none of them, it is the cluster that runs on this machine.
    """
    return resolved(options.access())


def resolved(wanted: AccessOptions) -> Access:
    """The same for a command that adds options of its own to the global ones."""
    from kvestigate.client.access import resolve

    try:
        return resolve(wanted, os.environ, home())
    except NoCluster as error:
        # Its subclasses mean that something was said and is wrong: then we do not guess.
        if type(error) is not NoCluster:
            raise
        local = _local_kubeconfig()
        if local is None:
            raise NoCluster(error.message, hint=_HINT) from None
        from msgspec.structs import replace

        return resolve(replace(wanted, kubeconfig=str(local)), os.environ, home())


_HINT = "give --kubeconfig FILE or set KUBECONFIG, or start a cluster here: kvestigate up"


def _local_kubeconfig() -> Path | None:
    """Of the one that runs here, or of the default one where several do."""
    from kvestigate.cluster.assembly.directory import clusters_directory, known

    running = [cluster for cluster in known(clusters_directory(os.environ)) if cluster.is_running()]
    meant = (
        running
        if len(running) == 1
        else [cluster for cluster in running if cluster.name == "default"]
    )
    return meant[0].kubeconfig if meant else None
