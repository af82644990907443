"""Which cluster is meant, with the TLS settings that a collector takes on top."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from kvestigate.client.access import Access, AccessOptions, resolve
from kvestigate.errors import NoCluster

_NOT_LOADED = "Kubernetes configuration could not be loaded"
CA_VARIABLE = "K8S_CA_FILE"


def access_for(
    kubeconfig: str | None = None, ca_file: str | None = None, verify_ssl: bool | None = None
) -> Access:
    """`kubeconfig`, else KUBECONFIG, else the default file, else the pod we are in."""
    try:
        home: Path | None = Path.home()
    except RuntimeError:
        home = None
    options = AccessOptions(kubeconfig=kubeconfig or "", ca_file=authority(ca_file))
    with configured():
        return verifying(resolve(options, os.environ, home), verify_ssl)


@contextmanager
def configured() -> Iterator[None]:
    """Name what is wrong as the documentation of k8s-collect names it."""
    try:
        yield
    except NoCluster as error:
        raise NoCluster(f"{_NOT_LOADED}: {error.message}", hint=error.hint) from None


def authority(ca_file: str | None) -> str:
    return ca_file or os.environ.get(CA_VARIABLE, "")


def verifying(access: Access, verify_ssl: bool | None) -> Access:
    """With verification of the server forced on or off; None leaves it as configured."""
    if verify_ssl is None:
        return access
    return replace(access, tls=replace(access.tls, insecure=not verify_ssl))
