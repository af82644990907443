"""Admission policies written in CEL, and their bindings. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.cluster.plane.kinds import checks
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
from kvestigate.kube.causes import Causes

ACTIONS = ("Audit", "Deny", "Warn")
_CHANGEABLE = ("*", "CONNECT", "CREATE", "UPDATE")
_NOT_FOUND_ACTIONS = ("Deny", "Allow")


class AdmissionPolicyKind(Kind):
    takes_long = True
    has_plain_finalizers = True
    counts_generations = True
    updates_unconditionally = False

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec.setdefault("failurePolicy", "Fail")
        if "matchConstraints" in spec:
            _default_match(spec["matchConstraints"])

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        yield from checks.choice("spec.failurePolicy", spec["failurePolicy"], FAILURE_POLICIES)
        if "paramKind" in spec:
            yield from _param_kind("spec.paramKind", spec["paramKind"])
        match = spec.get("matchConstraints")
        if match is None:
            yield causes.required("spec.matchConstraints")
            return
        yield from _match("spec.matchConstraints", match)
        if not match.get("resourceRules"):
            yield causes.required("spec.matchConstraints.resourceRules")


class MutatingPolicyKind(AdmissionPolicyKind):
    def validate(self, obj: Object, scene: Scene) -> Causes:
        yield from super().validate(obj, scene)
        spec, compiler = obj["spec"], Compiler(obj["spec"])
        yield from _operations("matchConstraints", spec)
        yield from check_conditions(compiler, "spec", spec.get("matchConditions") or ())
        yield from check_variables(compiler, spec.get("variables") or ())
        yield from check_mutations(compiler, spec.get("mutations") or ())
        policy = spec.get("reinvocationPolicy", "")
        yield from checks.one_of("spec.reinvocationPolicy", policy, REINVOCATION_POLICIES)


class ValidatingPolicyKind(AdmissionPolicyKind):
    def validate(self, obj: Object, scene: Scene) -> Causes:
        yield from super().validate(obj, scene)
        spec, compiler = obj["spec"], Compiler(obj["spec"])
        yield from check_conditions(compiler, "spec", spec.get("matchConditions") or ())
        yield from check_variables(compiler, spec.get("variables") or ())
        if not spec.get("validations") and not spec.get("auditAnnotations"):
            why = "validations or auditAnnotations must contain at least one item"
            yield causes.required("spec.validations", why)
            yield causes.required("spec.auditAnnotations", why)
        yield from check_validations(compiler, spec.get("validations") or ())
        policy = obj["metadata"].get("name", "")
        yield from check_annotations(compiler, policy, spec.get("auditAnnotations") or ())


class PolicyBindingKind(Kind):
    """Bindings of ValidatingAdmissionPolicies."""

    has_plain_finalizers = True
    counts_generations = True
    updates_unconditionally = False

    def default(self, obj: Object) -> None:
        if "matchResources" in obj["spec"]:
            _default_match(obj["spec"]["matchResources"])

    def validate(self, obj: Object, scene: Scene) -> Causes:
        yield from _binding(obj["spec"])
        yield from _actions(obj["spec"].get("validationActions") or [])


class MutatingPolicyBindingKind(PolicyBindingKind):
    def validate(self, obj: Object, scene: Scene) -> Causes:
        yield from _binding(obj["spec"])
        yield from _operations("matchResources", obj["spec"])


def _default_match(match: Object) -> None:
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for name in ("resourceRules", "excludeResourceRules"):
        for rule in match.get(name) or ():
            rule.setdefault("scope", "*")


def _operations(field: str, spec: Object) -> Causes:
    """Refuse mutating policies for DELETE, which has no object to change."""
    for rule in (spec.get(field) or {}).get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            path = f"spec.{field}.resourceRules.operations"
            yield from checks.choice(path, operation, _CHANGEABLE)


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


def _group_version(path: str, text: str) -> Causes:
    group, _, version = text.rpartition("/")
    if group and (problems := names.subdomain_problems(group)):
        yield causes.invalid(path, group, ",".join(problems))
    if not version:
        yield causes.invalid(path, text, "version must be specified")
    elif problems := names.label_1035_problems(version):
        yield causes.invalid(path, version, ",".join(problems))


def _match(path: str, match: Object) -> Causes:
    yield from checks.choice(f"{path}.matchPolicy", match["matchPolicy"], MATCH_POLICIES)
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
    yield from checks.needed(
        "spec.policyName", spec.get("policyName", ""), names.subdomain_problems
    )
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
    action = reference.get("parameterNotFoundAction", "")
    yield from checks.one_of(f"{path}.parameterNotFoundAction", action, _NOT_FOUND_ACTIONS)


def _actions(actions: list[str]) -> Causes:
    path = "spec.validationActions"
    if not actions:
        yield causes.required(path, "at least one validation action is required")
    for index, action in enumerate(actions):
        yield from checks.choice(f"{path}[{index}]", action, ACTIONS)
        if action in actions[:index]:
            yield causes.duplicate(f"{path}[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure "
            "information in the API response and headers serves no purpose)"
        )
        yield causes.invalid(path, actions, why)
