"""The controllers of a cluster, by the names that events and field managers show."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvestigate.controllers.daemonset import DaemonSetController
from kvestigate.controllers.deployment import DeploymentController
from kvestigate.controllers.endpoints import EndpointsController
from kvestigate.controllers.endpointslice import EndpointSliceController
from kvestigate.controllers.garbage import GarbageCollector
from kvestigate.controllers.job import JobController
from kvestigate.controllers.namespace import NamespaceController
from kvestigate.controllers.replicaset import ReplicaSetController
from kvestigate.controllers.runtime import Factory
from kvestigate.controllers.serviceaccount import ServiceAccountController
from kvestigate.controllers.statefulset import StatefulSetController
from kvestigate.controllers.ttl import TtlController

CONTROLLERS: Mapping[str, Factory] = MappingProxyType(
    {
        "replicaset-controller": ReplicaSetController,
        "deployment-controller": DeploymentController,
        "job-controller": JobController,
        "garbage-collector-controller": GarbageCollector,
        "namespace-controller": NamespaceController,
        "serviceaccount-controller": ServiceAccountController,
        "endpoint-controller": EndpointsController,
        "endpointslice-controller": EndpointSliceController,
        "statefulset-controller": StatefulSetController,
        "daemonset-controller": DaemonSetController,
        "ttl-after-finished-controller": TtlController,
    }
)
