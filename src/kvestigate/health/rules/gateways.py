"""Objects of the Gateway API, by the conditions that their controllers write. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from kvestigate.health.cluster import Cluster, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.kube.views.meta import Condition, View
from kvestigate.render.human import since
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.administration import Conditions, CustomObject

T = TypeVar("T")

_GROUP = "gateway.networking.k8s.io"
_WANTED = ("Accepted", "Programmed", "ResolvedRefs", "Ready")
_CONFLICT = "Conflicted"


class _Listener(Conditions, frozen=True):
    name: str = ""


class _ParentReference(View, frozen=True):
    name: str = ""
    namespace: str = ""


class _Parent(Conditions, frozen=True):
    """What a Gateway says of a route."""

    parent_ref: _ParentReference = _ParentReference()


def _listeners(each: CustomObject) -> tuple[_Listener, ...]:
    return _as_read(each.status.listeners, tuple[_Listener, ...])


def _parents(each: CustomObject) -> tuple[_Parent, ...]:
    return _as_read(each.status.parents, tuple[_Parent, ...])


def _as_read(value: Any, type: type[tuple[T, ...]]) -> tuple[T, ...]:
    """Nothing if the object has another shape than its kind promises."""
    try:
        return msgspec.convert(value or (), type)
    except msgspec.ValidationError:
        return ()


@rule(
    "gateway-condition",
    "An object of the Gateway API is not accepted or not programmed.",
    listings.CUSTOM_OBJECTS,
)
def conditions(cluster: Cluster) -> Iterator[Fault]:
    for each in cluster.of(listings.CUSTOM_OBJECTS):
        if each.api_version.partition("/")[0] != _GROUP or each.metadata.deletion_timestamp:
            continue
        for where, told in _told(each):
            broken = told.type in _WANTED and told.status == "False"
            if broken or (told.type == _CONFLICT and told.status == "True"):
                yield _fault(cluster, each, where, told)


def _told(each: CustomObject) -> Iterator[tuple[str, Condition]]:
    """The conditions of the object, of its listeners and of its parents."""
    for told in each.status.conditions:
        yield "", told
    for listener in _listeners(each):
        for told in listener.conditions:
            yield f"Listener {listener.name}: ", told
    for parent in _parents(each):
        for told in parent.conditions:
            yield f"Parent {parent.parent_ref.name}: ", told


def _fault(cluster: Cluster, each: CustomObject, where: str, told: Condition) -> Fault:
    meta = each.metadata
    space = f"-n {meta.namespace} " if meta.namespace else ""
    return Fault(
        severity=Severity.CRITICAL,
        subject=subject_of(each.kind, meta),
        evidence=f"{where}{told.type} is {told.status}{since(told.last_transition_time)}: "
        f"{told.reason}: {told.message}",
        why="The gateway does not serve what this object describes.",
        command=f"kubectl {space}describe {each.kind.lower()}.{_GROUP} {meta.name}",
        since=told.last_transition_time,
        causes=() if told.type == "ResolvedRefs" else _gateways(each),
        only_as_effect=told.reason == "Pending" and not cluster.settled(told.last_transition_time),
    )


def _gateways(each: CustomObject) -> tuple[Subject, ...]:
    """The Gateways that a route is for."""
    references = [parent.parent_ref for parent in _parents(each)]
    own = each.metadata.namespace
    return tuple(Subject("Gateway", one.name, one.namespace or own) for one in references)


RULES = (conditions,)
