"""Pods that violate the Pod Security level of their namespace are refused, noted or warned of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.admission.pod_security.levels import (
    PREFIX,
    Level,
    Policy,
    Standard,
    policy_of,
)
from kvestigate.cluster.plane.admission.pod_security.parts import Violation
from kvestigate.cluster.plane.admission.pod_security.registry import violations
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.store.model import Item
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause

NAMESPACES, PODS = ("", "namespaces"), ("", "pods")
_JUDGED = ("", "ephemeralcontainers", "resize")
"""The subresources of pods that can change what a pod may do."""
_MOST_PODS = 3000
"""More pods of a namespace are not checked when the level of the namespace changes."""


class _Verdict(NamedTuple):
    policy: Policy
    problems: list[Cause]


def secure_pod(write: Write) -> None:
    """Refuse pods that violate the enforced level."""
    if write.operation not in ("CREATE", "UPDATE") or write.info.subresource not in _JUDGED:
        return
    verdict = _of_namespace(write)
    if verdict is None:
        return
    if write.old is not None and not _changes_images(write.new["spec"], write.old["spec"]):
        return
    _note_problems(write, verdict)
    standard = verdict.policy.enforce
    write.notes[f"{PREFIX}enforce-policy"] = str(standard)
    violated = violations(write.new, standard)
    _audit(write, write.new, verdict.policy)
    if violated:
        raise write.forbidden(f'violates PodSecurity "{standard}": {_listed(violated)}')
    _warn(write, write.new, verdict.policy)


def secure_template(write: Write) -> None:
    """Warn of pod templates whose pods would be refused. They are admitted."""
    if write.operation not in ("CREATE", "UPDATE") or write.info.subresource:
        return
    verdict = _of_namespace(write)
    template = _template(write.new)
    if verdict is None or template is None:
        return
    _note_problems(write, verdict)
    _audit(write, template, verdict.policy)
    _warn(write, template, verdict.policy)


def secure_namespace(write: Write) -> None:
    """Refuse unreadable labels; warn of pods that violate a level that is newly enforced."""
    if write.operation not in ("CREATE", "UPDATE") or write.info.subresource:
        return
    meta = write.new["metadata"]
    policy, problems = policy_of(meta.get("labels") or {})
    old_policy, old_problems = Policy(), list[Cause]()
    if write.old is not None:
        old_policy, old_problems = policy_of(write.old["metadata"].get("labels") or {})
    if problems and problems != old_problems:
        raise causes.reject("Namespace", "", meta.get("name", ""), problems)
    if write.old is None or policy.enforce == old_policy.enforce:
        return
    relaxed = policy.enforce.level <= old_policy.enforce.level
    same_version = policy.enforce.minor == old_policy.enforce.minor
    if policy.enforce.level is not Level.privileged and not (same_version and relaxed):
        pods = write.scene.state.collection(PODS).items(meta["name"])
        write.warnings.extend(_pods_that_violate(pods, meta["name"], policy.enforce))


def _of_namespace(write: Write) -> _Verdict | None:
    """What the labels of the namespace ask for; None if they ask for nothing."""
    item = write.scene.state.get(NAMESPACES, "", write.info.namespace)
    if item is None or not any(label.startswith(PREFIX) for label in item.labels):
        return None
    verdict = _Verdict(*policy_of(item.labels))
    return None if verdict.policy.privileged and not verdict.problems else verdict


def _changes_images(new: Object, old: Object) -> bool:
    """Whether an update of a pod adds containers or gives one another image."""

    def images(spec: Object, field: str) -> list[str]:
        return [container.get("image", "") for container in spec.get(field) or ()]

    if any(images(new, field) != images(old, field) for field in ("containers", "initContainers")):
        return True
    before = {each["name"]: each.get("image") for each in old.get("ephemeralContainers") or ()}
    return any(
        each["name"] not in before or before[each["name"]] != each.get("image")
        for each in new.get("ephemeralContainers") or ()
    )


def _template(obj: Object) -> Object | None:
    """The pod template of a workload."""
    holder = obj if "template" in obj else obj.get("spec") or {}  # a PodTemplate has no spec
    if "jobTemplate" in holder:
        holder = holder["jobTemplate"].get("spec") or {}
    template: Object | None = holder.get("template")
    return template


def _note_problems(write: Write, verdict: _Verdict) -> None:
    if verdict.problems:
        problems = list(map(str, verdict.problems))
        text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        write.notes[f"{PREFIX}error"] = f"Failed to parse policy: {text}"


def _audit(write: Write, pod: Object, policy: Policy) -> None:
    if violated := violations(pod, policy.audit):
        text = f'would violate PodSecurity "{policy.audit}": {_listed(violated)}'
        write.notes[f"{PREFIX}audit-violations"] = text


def _warn(write: Write, pod: Object, policy: Policy) -> None:
    if violated := violations(pod, policy.warn):
        write.warnings.append(f'would violate PodSecurity "{policy.warn}": {_listed(violated)}')


def _listed(violated: list[Violation]) -> str:
    return ", ".join(map(str, violated))


def _pods_that_violate(pods: Iterable[Item], namespace: str, standard: Standard) -> list[str]:
    """One line for the pods that violate a level in the same ways."""
    every = list(pods)
    names: dict[str, list[str]] = {}
    for item in every[:_MOST_PODS]:
        if violated := violations(objects.read(item), standard):
            reasons = ", ".join(violation.reason for violation in violated)
            names.setdefault(reasons, []).append(item.name)
    warnings = []
    if len(every) > _MOST_PODS:
        checked = f"the first {_MOST_PODS} of {len(every)} existing pods"
        warnings.append(f"new PodSecurity enforce level only checked against {checked}")
    if names:
        level = f'violate the new PodSecurity enforce level "{standard}"'
        warnings.append(f'existing pods in namespace "{namespace}" {level}')
    return [*warnings, *sorted(f"{_led(pods)}: {reasons}" for reasons, pods in names.items())]


def _led(names: list[str]) -> str:
    """`a (and 2 other pods)`"""
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{min(names)} (and {others} other pod{'s' if others > 1 else ''})"
