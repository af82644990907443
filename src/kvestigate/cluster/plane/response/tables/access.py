"""Columns of RBAC, certificates, admission, and API priority and fairness. Pure."""

from __future__ import annotations

from collections.abc import Callable

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    Columns,
    column,
    condition,
    condition_types,
    filled,
    integer,
    reference,
    size,
)
from kvestigate.render import human


def _subjects(kind: str) -> Callable[[Object], str]:
    def read(obj: Object) -> str:
        subjects = [each for each in obj.get("subjects") or () if each.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{each.get('namespace', '')}/{each['name']}" for each in subjects)
        return ", ".join(each["name"] for each in subjects)

    return read


BINDINGS = Columns(
    NAME,
    column("Role", reference("roleRef", "kind", "name", default="/")),
    AGE,
    column("Users", _subjects("User"), wide=True),
    column("Groups", _subjects("Group"), wide=True),
    column("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)


def _duration(obj: Object) -> str:
    seconds = obj["spec"].get("expirationSeconds")
    return NONE if seconds is None else human.age(seconds)


def _verdict(obj: Object) -> str:
    types = condition_types(obj)
    verdict = next((name for name in ("Denied", "Approved") if name in types), "Pending")
    failed = ",Failed" if "Failed" in types else ""
    return verdict + failed + (",Issued" if obj["status"].get("certificate") else "")


SIGNING_REQUESTS = Columns(
    NAME,
    AGE,
    column("SignerName", filled("spec.signerName", NONE)),
    column("Requestor", "spec.username"),
    column("RequestedDuration", _duration),
    column("Condition", _verdict),
)
WEBHOOKS = Columns(NAME, integer("Webhooks", size("webhooks")), AGE)
_PARAM_KIND = column("ParamKind", reference("spec.paramKind", "apiVersion", "kind", default=UNSET))
VALIDATING_POLICIES = Columns(
    NAME, integer("Validations", size("spec.validations")), _PARAM_KIND, AGE
)
MUTATING_POLICIES = Columns(NAME, integer("Mutations", size("spec.mutations")), _PARAM_KIND, AGE)


def _parameters(obj: Object) -> str:
    parameters = obj["spec"].get("paramRef") or {}
    if not parameters.get("name"):
        return UNSET
    return f"{parameters.get('namespace') or '*'}/{parameters['name']}"


POLICY_BINDINGS = Columns(
    NAME, column("PolicyName", "spec.policyName"), column("ParamRef", _parameters), AGE
)
FLOW_SCHEMAS = Columns(
    NAME,
    column("PriorityLevel", "spec.priorityLevelConfiguration.name"),
    column("MatchingPrecedence", "spec.matchingPrecedence", 0),
    column("DistinguisherMethod", "spec.distinguisherMethod.type", NONE),
    AGE,
    column("MissingPL", lambda obj: condition(obj, "Dangling") or "?"),
)


def _queuing(name: str, field: str) -> Column:
    return column(name, f"spec.limited.limitResponse.queuing.{field}", NONE)


PRIORITY_LEVELS = Columns(
    NAME,
    column("Type", "spec.type"),
    column("NominalConcurrencyShares", "spec.limited.nominalConcurrencyShares", NONE),
    _queuing("Queues", "queues"),
    _queuing("HandSize", "handSize"),
    _queuing("QueueLengthLimit", "queueLengthLimit"),
    AGE,
)
