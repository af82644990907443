"""Access to the cluster that a test runs on."""

from __future__ import annotations

import pytest

from kvestigate.client.access import Access, AccessOptions, resolve
from tests.conftest import Cluster


@pytest.fixture
def access(cluster: Cluster, namespace: str) -> Access:
    """As the administrator, in the test's own namespace."""
    options = AccessOptions(kubeconfig=str(cluster.admin_kubeconfig()), namespace=namespace)
    return resolve(options, {}, None)
