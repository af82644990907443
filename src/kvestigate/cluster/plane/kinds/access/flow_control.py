"""FlowSchemas and PriorityLevelConfigurations: judged as kube-apiserver does, so that what is
tried on a plane works elsewhere; a plane itself queues no requests. Pure."""

from __future__ import annotations

import math

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

EXEMPT = "exempt"
_PRECEDENCE_MAX = 10000
_METHODS = ("ByNamespace", "ByUser")
_SUBJECTS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
_VERBS = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
)
_RESPONSES = ("Queue", "Reject")
_QUEUES_MAX = 10_000_000
_HASH_BITS = 60


class FlowSchemaKind(Kind):
    counts_generations = True

    def default(self, obj: Object) -> None:
        if not obj["spec"].get("matchingPrecedence"):
            obj["spec"]["matchingPrecedence"] = 1000

    def validate(self, obj: Object, scene: Scene) -> Causes:
        name, spec = obj["metadata"].get("name", ""), obj["spec"]
        precedence, path = spec["matchingPrecedence"], "spec.matchingPrecedence"
        if precedence <= 0:
            yield causes.invalid(path, precedence, "must be a positive value")
        if precedence > _PRECEDENCE_MAX:
            yield causes.invalid(path, precedence, f"must not be greater than {_PRECEDENCE_MAX}")
        if precedence == 1 and name != EXEMPT:
            why = f"only the schema named '{EXEMPT}' may have matchingPrecedence 1"
            yield causes.invalid(path, precedence, why)
        method = spec.get("distinguisherMethod")
        if method is not None and method.get("type") not in _METHODS:
            shown = method.get("type", "")
            yield causes.unsupported("spec.distinguisherMethod.type", shown, _METHODS)
        level, path = spec["priorityLevelConfiguration"], "spec.priorityLevelConfiguration.name"
        if level.get("name"):
            yield from checks.subdomain(path, level["name"])
        else:
            yield causes.required(path, "must reference a priority level")
        for index, rule in enumerate(spec.get("rules") or ()):
            yield from _rule(f"spec.rules[{index}]", rule)


class PriorityLevelKind(Kind):
    counts_generations = True

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        if "exempt" in spec:
            spec["exempt"].setdefault("nominalConcurrencyShares", 0)
            spec["exempt"].setdefault("lendablePercent", 0)
        if "limited" in spec:
            limited = spec["limited"]
            limited.setdefault("nominalConcurrencyShares", 30)
            limited.setdefault("lendablePercent", 0)
            queuing = limited["limitResponse"].get("queuing")
            if queuing is not None:
                defaults = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
                queuing |= {
                    name: queuing.get(name) or default for name, default in defaults.items()
                }

    def validate(self, obj: Object, scene: Scene) -> Causes:
        name, spec = obj["metadata"].get("name", ""), obj["spec"]
        kind, limited, exempt = spec.get("type", ""), spec.get("limited"), spec.get("exempt")
        if (name == EXEMPT) != (kind == "Exempt"):
            why = f"must be 'Exempt' if and only if `name` is '{EXEMPT}'"
            yield causes.invalid("spec.type", kind, why)
        if kind == "Exempt":
            if limited is not None:
                yield causes.forbidden("spec.limited", "must be nil if the type is not Limited")
        elif kind == "Limited":
            if exempt is not None:
                yield causes.forbidden("spec.exempt", "must be nil if the type is Limited")
            if limited is None:
                yield causes.required("spec.limited", "must not be empty when type is Limited")
            else:
                yield from _limited("spec.limited", limited)
        else:
            yield from checks.one_of("spec.type", kind, ("Exempt", "Limited"))


def _rule(path: str, rule: Object) -> Causes:
    subjects = rule.get("subjects") or []
    for index, subject in enumerate(subjects):
        yield from _subject(f"{path}.subjects[{index}]", subject)
    if not subjects:
        yield causes.required(f"{path}.subjects", "subjects must contain at least one value")
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        why = "at least one of resourceRules and nonResourceRules has to be non-empty"
        yield causes.required(path, why)
    for index, each in enumerate(rule.get("resourceRules") or ()):
        yield from _resource_rule(f"{path}.resourceRules[{index}]", each)
    for index, each in enumerate(rule.get("nonResourceRules") or ()):
        yield from _path_rule(f"{path}.nonResourceRules[{index}]", each)


def _subject(path: str, subject: Object) -> Causes:
    kind = subject.get("kind", "")
    field = _SUBJECTS.get(kind)
    if field is None:
        yield causes.unsupported(f"{path}.kind", kind, ["Group", "ServiceAccount", "User"])
        return
    if field not in subject:
        why = f"{field} is required when subject kind is '{kind}'"
        yield causes.required(f"{path}.{field}", why)
    elif not subject[field].get("name"):
        yield causes.required(f"{path}.{field}.name")
    for other, name in _SUBJECTS.items():
        if name != field and name in subject:
            why = f"{name} is forbidden when subject kind is not '{other}'"
            yield causes.forbidden(f"{path}.{name}", why)


def _resource_rule(path: str, rule: Object) -> Causes:
    yield from _verbs(f"{path}.verbs", rule.get("verbs") or [])
    for field, what in (("apiGroups", "api group"), ("resources", "resource")):
        values = rule.get(field) or []
        if not values:
            why = f"resource rules must supply at least one {what}"
            yield causes.required(f"{path}.{field}", why)
        yield from _alone(f"{path}.{field}", values, f"{what}s")
    spaces = rule.get("namespaces") or []
    if not spaces and not rule.get("clusterScope"):
        why = "resource rules that are not cluster scoped must supply at least one namespace"
        yield causes.required(f"{path}.namespaces", why)
    yield from _alone(f"{path}.namespaces", spaces, "namespaces")
    for index, name in enumerate(() if "*" in spaces else spaces):
        for problem in names.label_problems(name):
            why = f"each member of this list must be '*' or a DNS-1123 label; {problem}"
            yield causes.invalid(f"{path}.namespaces[{index}]", name, why)


def _path_rule(path: str, rule: Object) -> Causes:
    yield from _verbs(f"{path}.verbs", rule.get("verbs") or [])
    urls, at = rule.get("nonResourceURLs") or [], f"{path}.nonResourceURLs"
    if not urls:
        yield causes.required(at, "nonResourceURLs must contain at least one value")
    yield from _alone(at, urls, "non-resource URLs")
    for index, url in enumerate(() if "*" in urls else urls):
        if why := _url_problem(url):
            yield causes.invalid(f"{at}[{index}]", url, why)


def _url_problem(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    if "*" in url.removesuffix("/*"):
        return "wildcard can only do suffix matching"
    return ""


def _verbs(path: str, verbs: list[str]) -> Causes:
    if not verbs:
        yield causes.required(path, "verbs must contain at least one value")
    yield from _alone(path, verbs, "verbs")
    if "*" not in verbs and not set(verbs) <= set(_VERBS):
        yield causes.unsupported(path, verbs, _VERBS)


def _alone(path: str, values: list[str], what: str) -> Causes:
    if len(values) > 1 and "*" in values:
        yield causes.invalid(path, values, f"if '*' is present, must not specify other {what}")


def _limited(path: str, limited: Object) -> Causes:
    shares, lent = limited["nominalConcurrencyShares"], limited["lendablePercent"]
    if shares < 0:
        why = "must be a non-negative integer"
        yield causes.invalid(f"{path}.nominalConcurrencyShares", shares, why)
    yield from _response(f"{path}.limitResponse", limited["limitResponse"])
    if not 0 <= lent <= 100:
        yield causes.invalid(f"{path}.lendablePercent", lent, checks.between(0, 100))
    borrowed = limited.get("borrowingLimitPercent", 0)
    if borrowed < 0:
        why = "if specified, must be a non-negative integer"
        yield causes.invalid(f"{path}.borrowingLimitPercent", borrowed, why)


def _response(path: str, response: Object) -> Causes:
    kind, queuing = response.get("type", ""), response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            why = "must be nil if limited.limitResponse.type is not Limited"
            yield causes.forbidden(f"{path}.queuing", why)
    elif kind == "Queue":
        if queuing is None:
            why = "must not be empty if limited.limitResponse.type is Limited"
            yield causes.required(f"{path}.queuing", why)
        else:
            yield from _queuing(f"{path}.queuing", queuing)
    else:
        yield from checks.one_of(f"{path}.type", kind, _RESPONSES)


def _queuing(path: str, queuing: Object) -> Causes:
    """How requests are dealt to queues, of which each flow draws a hand."""
    queues, hand = queuing["queues"], queuing["handSize"]
    if queuing["queueLengthLimit"] <= 0:
        limit = queuing["queueLengthLimit"]
        yield causes.invalid(f"{path}.queueLengthLimit", limit, "must be positive")
    if queues <= 0:
        yield causes.invalid(f"{path}.queues", queues, "must be positive")
    elif queues > _QUEUES_MAX:
        yield causes.invalid(f"{path}.queues", queues, f"must not be greater than {_QUEUES_MAX}")
    if hand <= 0:
        yield causes.invalid(f"{path}.handSize", hand, "must be positive")
    elif hand > queues:
        why = f"should not be greater than queues ({queues})"
        yield causes.invalid(f"{path}.handSize", hand, why)
    elif _entropy(queues, hand) > _HASH_BITS:
        why = (
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be "
            f"greater than {_HASH_BITS}"
        )
        yield causes.invalid(f"{path}.handSize", hand, why)


def _entropy(deck: int, hand: int) -> int:
    """The bits that choosing a hand of cards from a deck takes."""
    return math.ceil(math.log2(deck) * hand)
