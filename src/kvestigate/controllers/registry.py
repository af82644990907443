"""The controllers of a cluster, by the names that events and field managers show."""

from __future__ import annotations

from types import MappingProxyType

from kvestigate.controllers.deployment import DeploymentController
from kvestigate.controllers.replicaset import ReplicaSetController

CONTROLLERS = MappingProxyType(
    {
        "replicaset-controller": ReplicaSetController,
        "deployment-controller": DeploymentController,
    }
)
