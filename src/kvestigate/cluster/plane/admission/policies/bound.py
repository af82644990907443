"""Policies together with their bindings, and which of them a write concerns.

A policy says what is to be done, a binding where and with which parameters. Policies are compiled
once for each distinct set of them: states share their collections. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from kvestigate.cluster.plane.admission.policies import matching, parameters
from kvestigate.cluster.plane.admission.policies.parameters import Misconfigured
from kvestigate.cluster.plane.admission.policies.review import Review
from kvestigate.cluster.plane.kinds.policies.compilation import Compiled
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.store.state import Collection

_POLICY_SETS = 64


@dataclass(frozen=True, slots=True)
class Policy:
    name: str
    spec: Object
    bindings: tuple[Object, ...]
    compiled: Compiled

    @property
    def lenient(self) -> bool:
        """Whether the write goes on if the policy cannot be evaluated (`failurePolicy: Ignore`)."""
        return bool(self.spec["failurePolicy"] == "Ignore")


@dataclass(frozen=True, slots=True)
class Invocation:
    """A policy to be put to a write, as one of its bindings wants it."""

    policy: Policy
    binding: Object
    target: matching.Target
    param: Object | None = None
    problem: str = ""
    """Why that cannot be done."""

    @property
    def binding_name(self) -> str:
        name: str = self.binding["metadata"]["name"]
        return name

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the invocation."""
        meta = (self.param or {}).get("metadata") or {}
        param = meta.get("namespace", ""), meta.get("name", "")
        return self.policy.name, self.binding_name, *param


@lru_cache(maxsize=_POLICY_SETS)
def policies(
    known: Collection, bindings: Collection, compile_: Callable[[Object], Compiled]
) -> tuple[Policy, ...]:
    """The policies that have bindings, by name."""
    bound: dict[str, list[Object]] = {}
    for item in bindings.items():
        binding = objects.read(item)
        bound.setdefault(binding["spec"]["policyName"], []).append(binding)
    made = []
    for item in known.items():
        if item.name in bound:
            spec = objects.read(item)["spec"]
            made.append(Policy(item.name, spec, tuple(bound[item.name]), compile_(spec)))
    return tuple(made)


def invocations(policy: Policy, review: Review) -> Iterator[Invocation]:
    """One invocation for each binding that matches the write and each of its parameters."""
    target = matching.find(policy.spec["matchConstraints"], "resourceRules", review)
    if target is None:
        return
    for binding in policy.bindings:
        scope = binding["spec"].get("matchResources")
        if scope is not None and matching.find(scope, "resourceRules", review) is None:
            continue
        try:
            params = parameters.collect(policy.spec, binding["spec"], review)
        except Misconfigured as why:
            problem = f"failed to configure binding: {why}"
            yield Invocation(policy, binding, target, problem=problem)
            continue
        for param in params:
            yield Invocation(policy, binding, target, param)
