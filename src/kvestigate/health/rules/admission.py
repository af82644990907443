"""Policies of the API server that name what does not exist, or do not work. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.health.cluster import Cluster, condition
from kvestigate.health.model import Fault, Subject
from kvestigate.health.pods import quoted
from kvestigate.health.rule import rule
from kvestigate.render.human import since_when
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings


@rule(
    "policy-binding",
    "A ValidatingAdmissionPolicyBinding names a policy that does not exist.",
    listings.POLICY_BINDINGS,
    listings.ADMISSION_POLICIES,
)
def bindings_without_policy(cluster: Cluster) -> Iterator[Fault]:
    for binding in cluster.of(listings.POLICY_BINDINGS):
        wanted, name = binding.spec.policy_name, binding.metadata.name
        if cluster.lacks(listings.ADMISSION_POLICIES, wanted):
            yield Fault(
                severity=Severity.WARNING,
                subject=Subject("ValidatingAdmissionPolicyBinding", name),
                evidence=f"ValidatingAdmissionPolicy {wanted} (spec.policyName) does not exist.",
                why="The binding enforces nothing: what the policy should refuse is admitted.",
                command="kubectl get validatingadmissionpolicies",
                since=binding.metadata.creation_timestamp,
            )


@rule(
    "policy-expression",
    "An expression of a ValidatingAdmissionPolicy does not fit the objects that it is for.",
    listings.ADMISSION_POLICIES,
)
def doubtful_expressions(cluster: Cluster) -> Iterator[Fault]:
    for policy in cluster.of(listings.ADMISSION_POLICIES):
        for one in policy.status.type_checking.expression_warnings[:1]:
            name = policy.metadata.name
            yield Fault(
                severity=Severity.WARNING,
                subject=Subject("ValidatingAdmissionPolicy", name),
                evidence=f"{one.field_ref}: {quoted(one.warning)}",
                why="The expression fails when it is evaluated; failurePolicy Fail then refuses "
                "the request.",
                command=f"kubectl describe validatingadmissionpolicy {name}",
            )


@rule(
    "flow-schema",
    "A FlowSchema names a PriorityLevelConfiguration that does not exist.",
    listings.FLOW_SCHEMAS,
)
def dangling_schemas(cluster: Cluster) -> Iterator[Fault]:
    for schema in cluster.of(listings.FLOW_SCHEMAS):
        dangling = condition(schema.status.conditions, "Dangling")
        if dangling is not None and dangling.status == "True":
            name = schema.metadata.name
            yield Fault(
                severity=Severity.WARNING,
                subject=Subject("FlowSchema", name),
                evidence=f"Dangling{since_when(dangling.last_transition_time)}: "
                f"{dangling.reason}: {quoted(dangling.message)}",
                why="The FlowSchema has no effect: its requests are treated like all others.",
                command=f"kubectl describe flowschema {name}",
                since=dangling.last_transition_time,
            )


RULES = (bindings_without_policy, doubtful_expressions, dangling_schemas)
