"""The objects that a binding gives to a policy as its parameters. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.admission.policies.review import Review
from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.kube.selectors import from_label_selector


class Misconfigured(Exception):
    """A policy cannot be evaluated, because its parameters are missing or wrong."""


def collect(policy: Object, binding: Object, review: Review) -> list[Object | None]:
    """The parameter objects of a binding, or a single None if the policy takes none.

    The policy is evaluated once with each.
    """
    wanted, reference = policy.get("paramKind"), binding.get("paramRef")
    if not wanted or not reference:
        return [None]
    state = review.write.scene.state
    kind = _kind(state, wanted)
    if kind is None:
        named = f"{wanted['apiVersion']}, Kind={wanted['kind']}"
        raise Misconfigured(f"failed to find resource referenced by paramKind: '{named}'")
    namespace = _namespace(kind, reference, review)
    parameters: list[Object | None] = [
        _shown(kind, obj) for obj in _selected(state, kind, namespace, reference)
    ]
    if not parameters and reference.get("parameterNotFoundAction") == "Deny":
        raise Misconfigured(
            "no params found for policy binding with `Deny` parameterNotFoundAction"
        )
    return parameters


def _kind(state: PlaneState, wanted: Object) -> Kind | None:
    for kind in types.of(state):
        resource = kind.resource
        if (resource.api_version, resource.kind) == (wanted["apiVersion"], wanted["kind"]):
            return kind
    return None


def _namespace(kind: Kind, reference: Object, review: Review) -> str:
    namespace = reference.get("namespace") or ""
    if not kind.resource.namespaced:
        if namespace:
            raise Misconfigured(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
            )
        return ""
    if not namespace and not review.namespace:
        raise Misconfigured(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    return namespace or review.namespace


def _selected(state: PlaneState, kind: Kind, namespace: str, reference: Object) -> list[Object]:
    if name := reference.get("name"):
        item = state.get(kind.key, namespace, name)
        return [] if item is None else [objects.read(item)]
    matches = from_label_selector(reference.get("selector") or {}).matches
    items = state.collection(kind.key).items(namespace or None)
    return [objects.read(item) for item in items if matches(item.labels)]


def _shown(kind: Kind, obj: Object) -> Object:
    resource = kind.resource
    if kind.conversion is not None and obj["apiVersion"] != resource.api_version:
        raise Misconfigured(f"paramKind is stored as {obj['apiVersion']}, which a webhook converts")
    head = {"kind": resource.kind, "apiVersion": resource.api_version}
    return {**kind.from_stored(obj), **head}
