"""Admission policies written in CEL, and their bindings. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.checks import Causes
from kvestigate.cluster.plane.kinds.policies.compilation import Compiler
from kvestigate.cluster.plane.kinds.policies.expressions import (
    check_annotations,
    check_conditions,
    check_mutations,
    check_validations,
    check_variables,
)
from kvestigate.cluster.plane.kinds.policies.webhooks import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    validate_rule,
)
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Cause

ACTIONS = ("Audit", "Deny", "Warn")
_CHANGEABLE = ("*", "CONNECT", "CREATE", "UPDATE")
_NOT_FOUND_ACTIONS = ("Deny", "Allow")


class AdmissionPolicyKind(Kind):
    judges_step = False
    has_plain_finalizers = True
    counts_generations = True
    updates_unconditionally = False

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec.setdefault("failurePolicy", "Fail")
        if "matchConstraints" in spec:
            _default_match(spec["matchConstraints"])

    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        return list(_policy(obj["spec"]))


class MutatingPolicyKind(AdmissionPolicyKind):
    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        spec, found = obj["spec"], super().validate(obj, scene)
        compiler = Compiler(spec)
        path = "spec.matchConstraints.resourceRules.operations"
        rules = (spec.get("matchConstraints") or {}).get("resourceRules") or ()
        found += _operations(path, rules)
        found += check_conditions(compiler, "spec", spec.get("matchConditions") or ())
        found += check_variables(compiler, spec.get("variables") or ())
        found += check_mutations(compiler, spec.get("mutations") or ())
        return [*found, *_reinvocation(spec.get("reinvocationPolicy", ""))]


class ValidatingPolicyKind(AdmissionPolicyKind):
    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        names = ("validations", "auditAnnotations")
        spec, found = obj["spec"], super().validate(obj, scene)
        compiler = Compiler(spec)
        found += check_conditions(compiler, "spec", spec.get("matchConditions") or ())
        found += check_variables(compiler, spec.get("variables") or ())
        if not any(spec.get(name) for name in names):
            why = "validations or auditAnnotations must contain at least one item"
            return found + [causes.required(f"spec.{name}", why) for name in names]
        found += check_validations(compiler, spec.get("validations") or ())
        policy = obj["metadata"].get("name", "")
        return [*found, *check_annotations(compiler, policy, spec.get("auditAnnotations") or ())]


class PolicyBindingKind(Kind):
    """Bindings of ValidatingAdmissionPolicies."""

    judges_step = False
    has_plain_finalizers = True
    counts_generations = True
    updates_unconditionally = False

    def default(self, obj: Object) -> None:
        if "matchResources" in obj["spec"]:
            _default_match(obj["spec"]["matchResources"])

    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        return [*_binding(obj["spec"]), *_actions(obj["spec"].get("validationActions") or [])]


class MutatingPolicyBindingKind(PolicyBindingKind):
    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        spec = obj["spec"]
        path = "spec.matchResources.resourceRules.operations"
        rules = (spec.get("matchResources") or {}).get("resourceRules") or ()
        return [*_binding(spec), *_operations(path, rules)]


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
    if kind := spec.get("paramKind"):
        yield from _param_kind("spec.paramKind", kind)
    elif kind is not None:
        yield causes.required("spec.paramKind.apiVersion")
        yield causes.required("spec.paramKind.kind")
    match = spec.get("matchConstraints")
    if match is None:
        yield causes.required("spec.matchConstraints")
        return
    yield from _match("spec.matchConstraints", match)
    if not match.get("resourceRules"):
        yield causes.required("spec.matchConstraints.resourceRules")


def _operations(path: str, rules: Sequence[Object]) -> Causes:
    """Refuse mutating policies for DELETE, which has no object to change."""
    for rule in rules:
        for operation in rule.get("operations") or ():
            if operation not in _CHANGEABLE:
                yield causes.unsupported(path, operation, _CHANGEABLE)


def _reinvocation(policy: str) -> Causes:
    path = "spec.reinvocationPolicy"
    if not policy:
        yield causes.required(path)
    elif policy not in REINVOCATION_POLICIES:
        yield causes.unsupported(path, policy, REINVOCATION_POLICIES)


def _param_kind(path: str, kind: Object) -> Causes:
    version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    if not version:
        yield causes.required(f"{path}.apiVersion")
    elif version.count("/") > 1:
        why = f"unexpected GroupVersion string: {version}"
        yield causes.invalid(f"{path}.apiVersion", version, why)
    else:
        yield from _group_version(f"{path}.apiVersion", version)
    if not name:
        yield causes.required(f"{path}.kind")
    elif problems := names.label_1035_problems(name.lower()):
        why = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        yield causes.invalid(f"{path}.kind", name, why)


def _group_version(path: str, told: str) -> Causes:
    group, _, version = told.rpartition("/")
    if group and (problems := names.subdomain_problems(group)):
        yield causes.invalid(path, group, ",".join(problems))
    if not version:
        yield causes.invalid(path, told, "version must be specified")
    elif problems := names.label_1035_problems(version):
        yield causes.invalid(path, version, ",".join(problems))


def _match(path: str, match: Object) -> Causes:
    if match["matchPolicy"] not in MATCH_POLICIES:
        yield causes.unsupported(f"{path}.matchPolicy", match["matchPolicy"], MATCH_POLICIES)
    for name in ("namespaceSelector", "objectSelector"):
        yield from checks.label_selector(f"{path}.{name}", match[name])
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(name) or ()):
            at = f"{path}.{name}[{index}]"
            yield from _names(f"{at}.resourceNames", rule.get("resourceNames") or ())
            yield from validate_rule(at, rule)


def _names(path: str, names_: Sequence[str]) -> Causes:
    for index, name in enumerate(names_):
        yield from checks.each(f"{path}[{index}]", name, names.path_segment_problems(name))
        if name in names_[:index]:
            yield causes.duplicate(f"{path}[{index}]", name)


def _binding(spec: Object) -> Causes:
    yield from _policy_name(spec)
    if (reference := spec.get("paramRef")) is not None:
        yield from _reference("spec.paramRef", reference)
    if (match := spec.get("matchResources")) is not None:
        yield from _match("spec.matchResources", match)


def _reference(path: str, reference: Object) -> Causes:
    name, selector = reference.get("name"), reference.get("selector")
    both = "name and selector are mutually exclusive" if name and selector is not None else ""
    if name:
        yield from checks.each(f"{path}.name", name, names.path_segment_problems(name))
    if both:
        yield causes.forbidden(f"{path}.name", both)
    yield from checks.label_selector(f"{path}.selector", selector)
    if both:
        yield causes.forbidden(f"{path}.selector", both)
    if not name and selector is None:
        yield causes.required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction")
    if not action:
        yield causes.required(f"{path}.parameterNotFoundAction")
    elif action not in _NOT_FOUND_ACTIONS:
        at = f"{path}.parameterNotFoundAction"
        yield causes.unsupported(at, action, _NOT_FOUND_ACTIONS)


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
            yield causes.duplicate(f"{path}[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure "
            "information in the API response and headers serves no purpose)"
        )
        yield causes.invalid(path, actions, why)
