"""Where a pod may run: affinity, tolerations, spreading, gates. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.cluster.plane.kinds.checks import (
    NO_OPERATOR,
    POSITIVE,
    VALUES_BARRED,
    VALUES_NEEDED,
    each,
    label_key,
    label_selector,
)
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

Object = dict[str, Any]

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = "must be in the range 1-100"


def validate_affinity(path: str, affinity: Object) -> Causes:
    if "nodeAffinity" in affinity:
        yield from _node_affinity(f"{path}.nodeAffinity", affinity["nodeAffinity"])
    for name in ("podAffinity", "podAntiAffinity"):
        if name in affinity:
            yield from _pod_affinity(f"{path}.{name}", affinity[name])


def _node_affinity(path: str, affinity: Object) -> Causes:
    if _REQUIRED in affinity:
        yield from validate_node_selector(f"{path}.{_REQUIRED}", affinity[_REQUIRED])
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{index}]"
        if not 0 < term["weight"] <= 100:
            yield causes.invalid(f"{at}.weight", term["weight"], _WEIGHT)
        yield from _node_term(f"{at}.preference", term["preference"], check_values=False)


def validate_node_selector(path: str, selector: Object) -> Causes:
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        why = "must have at least one node selector term"
        yield causes.required(f"{path}.nodeSelectorTerms", why)
    for index, term in enumerate(terms):
        yield from _node_term(f"{path}.nodeSelectorTerms[{index}]", term, check_values=True)


def _node_term(path: str, term: Object, *, check_values: bool) -> Causes:
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        yield from _node_label(f"{path}.matchExpressions[{index}]", requirement, check_values)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        yield from _node_field(f"{path}.matchFields[{index}]", requirement)


def _node_label(path: str, requirement: Object, check_values: bool) -> Causes:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield causes.required(f"{path}.values", VALUES_NEEDED)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield causes.forbidden(f"{path}.values", VALUES_BARRED)
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield causes.required(f"{path}.values", why)
    else:
        yield causes.invalid(f"{path}.operator", operator, NO_OPERATOR)
    yield from label_key(f"{path}.key", requirement.get("key", ""))
    for index, value in enumerate(values if check_values else ()):
        yield from each(f"{path}.values[{index}]", value, names.label_value_problems(value))


def _node_field(path: str, requirement: Object) -> Causes:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator not in ("In", "NotIn"):
        yield causes.invalid(f"{path}.operator", operator, NO_OPERATOR)
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield causes.required(f"{path}.values", why)
    key = requirement.get("key", "")
    if key != "metadata.name":
        yield causes.invalid(f"{path}.key", key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        yield from each(f"{path}.values[{index}]", value, names.subdomain_problems(value))


def _pod_affinity(path: str, affinity: Object) -> Causes:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        yield from _pod_term(f"{path}.{_REQUIRED}[{index}]", term)
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{index}]"
        if not 0 < weighted["weight"] <= 100:
            yield causes.invalid(f"{at}.weight", weighted["weight"], _WEIGHT)
        yield from _pod_term(f"{at}.podAffinityTerm", weighted["podAffinityTerm"])


def _pod_term(path: str, term: Object) -> Causes:
    yield from label_selector(f"{path}.labelSelector", term.get("labelSelector"))
    yield from label_selector(f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for namespace in term.get("namespaces") or ():
        yield from each(f"{path}.namespace", namespace, names.label_problems(namespace))
    match, mismatch = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    yield from _label_keys(path, match, mismatch, term.get("labelSelector"))
    if not term["topologyKey"]:
        yield causes.required(f"{path}.topologyKey", "can not be empty")
    yield from label_key(f"{path}.topologyKey", term["topologyKey"])


def _label_keys(
    path: str, match: list[str], mismatch: list[str], selector: Object | None
) -> Causes:
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            why = "must not be specified when labelSelector is not set"
            yield causes.forbidden(f"{path}.{name}", why)
        elif keys:
            for index, key in enumerate(keys):
                yield from label_key(f"{path}.{name}[{index}]", key)
    for index, key in enumerate(match):
        if key in mismatch:
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield causes.invalid(f"{path}.matchLabelKeys[{index}]", key, why)


def validate_tolerations(path: str, tolerations: list[Object]) -> Causes:
    for index, toleration in enumerate(tolerations):
        operator, effect = toleration.get("operator", ""), toleration.get("effect", "")
        at = f"{path}[{index}]"
        if key := toleration.get("key"):
            if problems := names.qualified_name_problems(key):
                yield from each(f"{at}.key", key, problems)
        elif operator != "Exists":
            why = (
                'operator must be Exists when `key` is empty, which means "match all values and '
                'all keys"'
            )
            yield causes.invalid(f"{at}.operator", operator, why)
        if effect != "NoExecute" and "tolerationSeconds" in toleration:
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield causes.invalid(f"{at}.effect", effect, why)
        if operator != "Exists" or "value" in toleration:
            yield from _toleration_value(at, operator, toleration.get("value", ""))
        if effect and effect not in EFFECTS:
            yield causes.unsupported(f"{at}.effect", effect, EFFECTS)


def _toleration_value(path: str, operator: str, value: str) -> Causes:
    if operator in ("Equal", ""):
        problems = names.label_value_problems(value)
        if problems:
            yield causes.invalid(f"{path}.operator", value, ";".join(problems))
    elif operator == "Exists":
        why = "value must be empty when `operator` is 'Exists'"
        yield causes.invalid(f"{path}.operator", value, why)
    elif operator in ("Lt", "Gt"):
        yield causes.unsupported(f"{path}.operator", operator, ("Equal", "Exists", "Lt", "Gt"))
    else:
        yield causes.unsupported(f"{path}.operator", operator, ("Equal", "Exists"))


def validate_spreading(path: str, constraints: list[Object]) -> Causes:
    for index, constraint in enumerate(constraints):
        at = f"{path}[{index}]"
        key, action = constraint["topologyKey"], constraint["whenUnsatisfiable"]
        if constraint["maxSkew"] <= 0:
            yield causes.invalid(f"{at}.maxSkew", constraint["maxSkew"], POSITIVE)
        if not key:
            yield causes.required(f"{at}.topologyKey", "can not be empty")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            allowed = ["DoNotSchedule", "ScheduleAnyway"]
            yield causes.unsupported(f"{at}.whenUnsatisfiable", action, allowed)
        rest = (
            (other["topologyKey"], other["whenUnsatisfiable"]) for other in constraints[index + 1 :]
        )
        if (key, action) in rest:
            place = f"{at}.{{topologyKey, whenUnsatisfiable}}"
            yield causes.duplicate(place, f"{{{key}, {action}}}")
        yield from _domains(f"{at}.minDomains", constraint.get("minDomains"), action)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(policy, "Honor") not in ("Honor", "Ignore"):
                value = constraint[policy]
                yield causes.unsupported(f"{at}.{policy}", value, ["Honor", "Ignore"])
        selector = constraint.get("labelSelector")
        yield from _label_keys(at, constraint.get("matchLabelKeys") or [], [], selector)
        yield from label_selector(f"{at}.labelSelector", selector)


def _domains(path: str, value: int | None, action: str) -> Causes:
    if value is None:
        return
    if value <= 0:
        yield causes.invalid(path, value, POSITIVE)
    if action != "DoNotSchedule":
        why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield causes.invalid(path, value, why)


def validate_gates(path: str, gates: list[Object]) -> Causes:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        yield from label_key(f"{path}[{index}]", name)
        if name in seen:
            yield causes.duplicate(f"{path}[{index}]", name)
        seen.add(name)
