"""Columns of what says who may do what, and when: RBAC, certificates, admission, priority and
fairness. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cells,
    Column,
    Columns,
    age,
    condition,
    strings,
    wide,
)
from kvestigate.render import human


def _binding(obj: Object, now: float) -> Cells:
    role, subjects = obj["roleRef"], obj.get("subjects") or ()
    named = {
        kind: ", ".join(it["name"] for it in subjects if it.get("kind") == kind)
        for kind in ("User", "Group")
    }
    accounts = [
        f"{it.get('namespace', '')}/{it['name']}"
        for it in subjects
        if it.get("kind") == "ServiceAccount"
    ]
    return [
        obj["metadata"]["name"],
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(obj, now),
        named["User"],
        named["Group"],
        ", ".join(accounts),
    ]


def _signing_request(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    seconds = spec.get("expirationSeconds")
    return [
        obj["metadata"]["name"],
        age(obj, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if seconds is None else human.age(seconds),
        _verdict(obj),
    ]


def _verdict(obj: Object) -> str:
    types = {it.get("type") for it in obj["status"].get("conditions") or ()}
    verdict = next((name for name in ("Denied", "Approved") if name in types), "Pending")
    failed = ",Failed" if "Failed" in types else ""
    return verdict + failed + (",Issued" if obj["status"].get("certificate") else "")


def _webhooks(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], len(obj.get("webhooks") or ()), age(obj, now)]


def _admission_policy(rules: str) -> Columns:
    def cells(obj: Object, now: float) -> Cells:
        kind = obj["spec"].get("paramKind")
        named = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET
        return [obj["metadata"]["name"], len(obj["spec"].get(rules) or ()), named, age(obj, now)]

    return Columns((NAME, Column(rules.title(), "integer"), *strings("ParamKind", "Age")), cells)


def _policy_binding(obj: Object, now: float) -> Cells:
    spec, reference = obj["spec"], obj["spec"].get("paramRef") or {}
    named = UNSET
    if reference.get("name"):
        named = f"{reference.get('namespace') or '*'}/{reference['name']}"
    return [obj["metadata"]["name"], spec.get("policyName", ""), named, age(obj, now)]


def _flow_schema(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    return [
        obj["metadata"]["name"],
        spec["priorityLevelConfiguration"].get("name", ""),
        spec.get("matchingPrecedence", 0),
        (spec.get("distinguisherMethod") or {}).get("type", NONE),
        age(obj, now),
        condition(obj, "Dangling") or "?",
    ]


def _priority_level(obj: Object, now: float) -> Cells:
    limited = obj["spec"].get("limited") or {}
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    return [
        obj["metadata"]["name"],
        obj["spec"].get("type", ""),
        limited.get("nominalConcurrencyShares", NONE),
        *(queuing.get(name, NONE) for name in ("queues", "handSize", "queueLengthLimit")),
        age(obj, now),
    ]


BINDINGS = Columns(
    (NAME, *strings("Role", "Age"), *wide("Users", "Groups", "ServiceAccounts")), _binding
)
SIGNING_REQUESTS = Columns(
    (NAME, *strings("Age", "SignerName", "Requestor", "RequestedDuration", "Condition")),
    _signing_request,
)
WEBHOOKS = Columns((NAME, Column("Webhooks", "integer"), AGE), _webhooks)
VALIDATING_POLICIES = _admission_policy("validations")
MUTATING_POLICIES = _admission_policy("mutations")
POLICY_BINDINGS = Columns((NAME, *strings("PolicyName", "ParamRef", "Age")), _policy_binding)
FLOW_SCHEMAS = Columns(
    (
        NAME,
        *strings("PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"),
    ),
    _flow_schema,
)
PRIORITY_LEVELS = Columns(
    (
        NAME,
        *strings(
            "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"
        ),
    ),
    _priority_level,
)
