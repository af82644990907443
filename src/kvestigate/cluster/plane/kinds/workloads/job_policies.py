"""What a job makes of pods that fail, and when it has succeeded early. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.errors import InputError
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause, Causes

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_RULES_MAX, _EXIT_CODES_MAX, _PATTERNS_MAX = 20, 255, 20
_INDEXES_MAX = 64 * 1024


def default_failure_policy(spec: Object) -> None:
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"


def validate(path: str, spec: Object) -> Causes:
    if "podFailurePolicy" in spec:
        yield from _failure_policy(f"{path}.podFailurePolicy", spec)
    if "successPolicy" in spec:
        yield from _success_policy(f"{path}.successPolicy", spec)
    yield from _replacement(f"{path}.podReplacementPolicy", spec)


def _replacement(path: str, spec: Object) -> Causes:
    policy = spec.get("podReplacementPolicy")
    allowed = ["Failed"] if "podFailurePolicy" in spec else ["Failed", "TerminatingOrFailed"]
    if policy is not None and policy not in allowed:
        yield causes.unsupported(path, policy, allowed)


def _quoted(values: tuple[str, ...]) -> str:
    return "valid values: [" + " ".join(f'"{value}"' for value in values) + "]"


def _choice(path: str, value: str, allowed: tuple[str, ...]) -> Causes:
    if not value:
        yield causes.required(path, _quoted(allowed))
    elif value not in allowed:
        yield causes.unsupported(path, value, allowed)


def _failure_policy(path: str, spec: Object) -> Causes:
    rules = spec["podFailurePolicy"].get("rules") or []
    if len(rules) > _RULES_MAX:
        yield causes.too_many(f"{path}.rules", len(rules), _RULES_MAX)
    pod = spec["template"]["spec"]
    containers = [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]
    known = {container.get("name", "") for container in containers}
    for index, rule in enumerate(rules):
        at = f"{path}.rules[{index}]"
        if rule.get("action") == "FailIndex":
            if "backoffLimitPerIndex" not in spec:
                why = "requires the backoffLimitPerIndex to be set"
                yield causes.invalid(f"{at}.action", "FailIndex", why)
        else:
            yield from _choice(f"{at}.action", rule.get("action", ""), _ACTIONS)
        yield from _rule(at, rule, known)


def _rule(path: str, rule: Object, containers: set[str]) -> Causes:
    codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if codes is not None:
        yield from _exit_codes(f"{path}.onExitCodes", codes, containers)
    if len(patterns) > _PATTERNS_MAX:
        yield causes.too_many(f"{path}.onPodConditions", len(patterns), _PATTERNS_MAX)
    for index, pattern in enumerate(patterns):
        at = f"{path}.onPodConditions[{index}]"
        yield from checks.label_key(f"{at}.type", pattern.get("type", ""))
        yield from _choice(f"{at}.status", pattern.get("status", ""), _STATUSES)
    why = ""
    if codes is not None and patterns:
        why = "specifying both OnExitCodes and OnPodConditions is not supported"
    elif codes is None and not patterns:
        why = "specifying one of OnExitCodes and OnPodConditions is required"
    if why:
        yield Cause("FieldValueInvalid", path, f"Invalid value: {why}")


def _exit_codes(path: str, requirement: Object, containers: set[str]) -> Causes:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    yield from _choice(f"{path}.operator", operator, _OPERATORS)
    name = requirement.get("containerName")
    if name is not None and name not in containers:
        why = "must be one of the container or initContainer names in the pod template"
        yield causes.invalid(f"{path}.containerName", name, why)
    if not values:
        yield causes.invalid(f"{path}.values", values, "at least one value is required")
    elif len(values) > _EXIT_CODES_MAX:
        yield causes.too_many(f"{path}.values", len(values), _EXIT_CODES_MAX)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            why = "must not be 0 for the In operator"
            yield causes.invalid(f"{path}.values[{index}]", value, why)
        if value in seen:
            yield causes.duplicate(f"{path}.values[{index}]", value)
        seen.add(value)
    if values != sorted(values):
        yield causes.invalid(f"{path}.values", values, "must be ordered")


def _success_policy(path: str, spec: Object) -> Causes:
    if spec.get("completionMode", "NonIndexed") != "Indexed":
        why = "requires indexed completion mode"
        yield causes.invalid(path, spec["successPolicy"], why)
        return
    rules = spec["successPolicy"].get("rules") or []
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        yield causes.required(f"{path}.rules", why)
    if len(rules) > _RULES_MAX:
        yield causes.too_many(f"{path}.rules", len(rules), _RULES_MAX)
    for index, rule in enumerate(rules):
        yield from _success_rule(f"{path}.rules[{index}]", rule, spec.get("completions", 0))


def _success_rule(path: str, rule: Object, completions: int) -> Causes:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        why = "at least one of succeededCount or succeededIndexes must be specified"
        yield causes.required(path, why)
    total = 0
    if indexes is not None:
        if len(indexes) > _INDEXES_MAX:
            yield causes.too_long(f"{path}.succeededIndexes", _INDEXES_MAX)
        try:
            total = count_indexes(indexes, completions)
        except InputError as error:
            why = f"error parsing succeededIndexes: {error.message}"
            yield causes.invalid(f"{path}.succeededIndexes", indexes, why)
    if count is not None:
        yield from _success_count(f"{path}.succeededCount", count, completions, indexes, total)


def _success_count(
    path: str, count: int, completions: int, indexes: str | None, total: int
) -> Causes:
    yield from checks.not_negative(path, count)
    if count > completions:
        why = f"must be less than or equal to {completions} (the number of specified completions)"
        yield causes.invalid(path, count, why)
    if indexes is not None and count > total:
        why = (
            f"must be less than or equal to {total} (the number of indexes in the specified "
            "succeededIndexes field)"
        )
        yield causes.invalid(path, count, why)


def count_indexes(text: str, completions: int) -> int:
    """How many indexes `1,3-5` names; InputError if it is not increasing or beyond the last."""
    total, last = 0, -1
    for interval in text.split(",") if text else ():
        first, end = _interval(interval, completions)
        if last >= first and last >= 0:
            raise InputError(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def _interval(text: str, completions: int) -> tuple[int, int]:
    ends = text.split("-")
    if len(ends) > 2:
        raise InputError(
            f'the fragment "{text}" violates the requirement that an index interval can have at '
            "most two parts separated by '-'"
        )
    numbers = []
    for end in ends:
        if not end.isascii() or not end.isdecimal():
            raise InputError(f'cannot convert string to integer for index: "{end}"')
        if len(end) > 10 or int(end) >= completions:
            raise InputError(f'too large index: "{end}"')
        numbers.append(int(end))
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        raise InputError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]
