"""Which writes a policy or a webhook is about. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from kvestigate.cluster.plane.admission.policies.review import Address, Review
from kvestigate.cluster.plane.admission.rules.namespaces import NAMESPACES
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.kube.selectors import LabelSelector, from_label_selector

Target = tuple[Address, Kind]
"""The resource that a rule names, and the kind at the version at which it wants the object."""

_EXEMPT = frozenset(
    f"{kind}{what}"
    for kind in ("validating", "mutating")
    for what in ("admissionpolicies", "admissionpolicybindings", "webhookconfigurations")
)
_GROUP = "admissionregistration.k8s.io"


def exempt(review: Review) -> bool:
    """Policies and webhooks never apply to themselves, so a wrong one can be removed."""
    return review.address.group == _GROUP and review.address.resource in _EXEMPT


def find(match: Mapping[str, Any], rules: str, review: Review) -> Target | None:
    """The resource and version at which rules match the write; None if none matches.

    `rules` names the field that holds the rules.
    """
    if not selects(match, review):
        return None
    policy = match.get("matchPolicy", "Equivalent")
    excluded = match.get("excludeResourceRules")
    if excluded and _ruled(excluded, policy, review):
        return None
    chosen = match.get(rules)
    if not chosen:
        return review.address, review.write.served
    return _ruled(chosen, policy, review)


def selects(match: Mapping[str, Any], review: Review) -> bool:
    return _namespace(match.get("namespaceSelector"), review) and _object(
        match.get("objectSelector"), review
    )


def _ruled(rules: Iterable[Object], policy: str, review: Review) -> Target | None:
    rules = list(rules)
    own = review.address, review.write.served
    if any(_means(rule, own[0], review) for rule in rules):
        return own
    if policy == "Exact":
        return None
    for address, kind in review.equivalents:
        if any(_means(rule, address, review) for rule in rules):
            return address, kind
    return None


def _means(rule: Object, address: Address, review: Review) -> bool:
    return (
        _listed(review.write.operation, rule.get("operations"))
        and _listed(address.group, rule.get("apiGroups"))
        and _listed(address.version, rule.get("apiVersions"))
        and _scoped(rule.get("scope", "*"), review)
        and any(_resource(each, address) for each in rule.get("resources") or ())
        and (not rule.get("resourceNames") or review.name in rule["resourceNames"])
    )


def _listed(value: str, listed: list[str] | None) -> bool:
    return listed is not None and ("*" in listed or value in listed)


def _resource(pattern: str, address: Address) -> bool:
    resource, _, part = pattern.partition("/")
    return resource in ("*", address.resource) and part in ("*", address.subresource)


def _scoped(scope: str, review: Review) -> bool:
    if scope == "*":
        return True
    within = bool(review.namespace) and review.write.kind.key != NAMESPACES
    return within == (scope == "Namespaced")


def _namespace(selector: Object | None, review: Review) -> bool:
    if not selector:
        return True
    write = review.write
    if write.kind.key == NAMESPACES:
        obj = next(review.objects())
        return _selector(selector).matches(obj["metadata"].get("labels") or {})
    if not review.namespace:
        return True
    item = write.scene.state.get(NAMESPACES, "", review.namespace)
    return item is not None and _selector(selector).matches(item.labels)


def _object(selector: Object | None, review: Review) -> bool:
    if not selector:
        return True
    matches = _selector(selector).matches
    return any(matches(obj["metadata"].get("labels") or {}) for obj in review.objects())


def _selector(selector: Object) -> LabelSelector:
    return _parsed(msgspec.json.encode(selector))


@lru_cache(maxsize=1024)
def _parsed(selector: bytes) -> LabelSelector:
    return from_label_selector(msgspec.json.decode(selector))
