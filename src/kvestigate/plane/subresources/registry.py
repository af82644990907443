"""Which subresources answer which verbs. One list, no import side effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from kvestigate.plane.call import Call
from kvestigate.plane.subresources import scale
from kvestigate.plane.subresources.binding import create_binding, create_legacy_binding
from kvestigate.plane.subresources.eviction import create_eviction
from kvestigate.plane.verbs.update import update
from kvestigate.wire.message import Response, Upgrade

Verb = Callable[[Call], Awaitable[Response | Upgrade]]
Verbs = Mapping[str, Verb]

SUBRESOURCES: dict[tuple[str, str, str], Verbs] = {
    ("", "namespaces", "finalize"): {"update": update},
    ("", "pods", "binding"): {"create": create_binding},
    ("", "pods", "eviction"): {"create": create_eviction},
    ("", "replicationcontrollers", "scale"): scale.verbs(scale.REPLICATION_CONTROLLER),
    ("apps", "deployments", "scale"): scale.verbs(scale.WORKLOAD),
    ("apps", "replicasets", "scale"): scale.verbs(scale.WORKLOAD),
    ("apps", "statefulsets", "scale"): scale.verbs(scale.WORKLOAD),
}
"""(group, plural, subresource) -> verb -> what answers it."""

VIRTUAL: dict[tuple[str, str], Verbs] = {
    ("", "bindings"): {"create": create_legacy_binding},
}
"""(group, plural) of resources that are asked for but never stored."""
