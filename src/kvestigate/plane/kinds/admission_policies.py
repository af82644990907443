"""Admission policies written in CEL, and their bindings. They are kept, not evaluated; of
expressions only their presence is judged. Pure."""

from __future__ import annotations

from kvestigate.kube import causes, names
from kvestigate.kube.causes import Cause
from kvestigate.plane.kinds import checks
from kvestigate.plane.kinds.checks import Causes
from kvestigate.plane.kinds.kind import Kind, Object, Scene
from kvestigate.plane.kinds.webhooks import FAILURE_POLICIES, validate_rule

ACTIONS = ("Audit", "Deny", "Warn")


class AdmissionPolicyKind(Kind):
    counts_generations = True
    updates_unconditionally = False
    status_carries_metadata = True

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec.setdefault("failurePolicy", "Fail")
        if "matchConstraints" in spec:
            _default_match(spec["matchConstraints"])

    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        return list(_policy(obj["spec"]))


class ValidatingPolicyKind(AdmissionPolicyKind):
    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        names = ("validations", "auditAnnotations")
        found = super().validate(obj, scene)
        if any(obj["spec"].get(name) for name in names):
            return found
        why = "validations or auditAnnotations must contain at least one item"
        return found + [causes.required(f"spec.{name}", why) for name in names]


class PolicyBindingKind(Kind):
    """Of policies that validate."""

    counts_generations = True
    updates_unconditionally = False

    def default(self, obj: Object) -> None:
        if "matchResources" in obj["spec"]:
            _default_match(obj["spec"]["matchResources"])

    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        return [*_policy_name(obj["spec"]), *_actions(obj["spec"].get("validationActions") or [])]


class MutatingPolicyBindingKind(PolicyBindingKind):
    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        return list(_policy_name(obj["spec"]))


def _default_match(match: Object) -> None:
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for name in ("resourceRules", "excludeResourceRules"):
        for rule in match.get(name) or ():
            rule.setdefault("scope", "*")


def _policy(spec: Object) -> Causes:
    policy = spec["failurePolicy"]
    if policy not in FAILURE_POLICIES:
        yield causes.unsupported("spec.failurePolicy", policy, FAILURE_POLICIES)
    match = spec.get("matchConstraints")
    if match is None:
        yield causes.required("spec.matchConstraints")
        return
    rules = match.get("resourceRules") or []
    if not rules:
        yield causes.required("spec.matchConstraints.resourceRules")
    for index, rule in enumerate(rules):
        yield from validate_rule(f"spec.matchConstraints.resourceRules[{index}]", rule)


def _policy_name(spec: Object) -> Causes:
    name = spec.get("policyName", "")
    if name:
        yield from checks.each("spec.policyName", name, names.subdomain_problems(name))
    else:
        yield causes.required("spec.policyName")


def _actions(actions: list[str]) -> Causes:
    path = "spec.validationActions"
    if not actions:
        yield causes.required(path, "at least one validation action is required")
    for index, action in enumerate(actions):
        if action not in ACTIONS:
            yield causes.unsupported(f"{path}[{index}]", action, ACTIONS)
        if action in actions[:index]:
            why = "must not contain repeated values"
            yield causes.invalid(f"{path}[{index}]", action, why)
    if "Deny" in actions and "Warn" in actions:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure "
            "information in the API response and headers serves no purpose)"
        )
        yield causes.invalid(path, actions, why)
