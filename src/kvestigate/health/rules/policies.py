"""NetworkPolicies without effect, and those that cut off what pods and clients need. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kvestigate.health.cluster import Cluster, as_selector, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.health.rules.services import selecting
from kvestigate.kube.views.network import Service, ServicePort
from kvestigate.render.human import counted, listed
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.objects import NetworkPolicy, PolicyPeer, PolicyPort
from kvestigate.snapshot.pods import Pod

_SYSTEM = "kube-system"
_NAME = "kubernetes.io/metadata.name"
_DNS_LABELS = {"k8s-app": "kube-dns"}
_NODE_LOCAL_DNS = "169.254.20.10"
_DNS_PORT = 53
_WIDE = 12
"""An address block with a shorter prefix covers the pods of a cluster."""


def _fault(policy: NetworkPolicy, evidence: str, why: str, **more: Any) -> Fault:
    meta = policy.metadata
    return Fault(
        severity=Severity.WARNING,
        subject=subject_of("NetworkPolicy", meta),
        evidence=evidence,
        why=why,
        **{"command": f"kubectl -n {meta.namespace} describe networkpolicy {meta.name}", **more},
    )


def _types(policy: NetworkPolicy) -> tuple[str, ...]:
    if policy.spec.policy_types:
        return policy.spec.policy_types
    return ("Ingress", "Egress") if policy.spec.egress else ("Ingress",)


@rule(
    "policy-selects-nothing",
    "A NetworkPolicy selects no pods.",
    listings.NETWORK_POLICIES,
    listings.PODS,
    uses=(listings.DEPLOYMENTS, listings.STATEFUL_SETS, listings.DAEMON_SETS, listings.CRON_JOBS),
)
def idle_policies(cluster: Cluster) -> Iterator[Fault]:
    for policy in cluster.of(listings.NETWORK_POLICIES):
        selector, namespace = as_selector(policy.spec.pod_selector), policy.metadata.namespace
        if selector.selects_everything or cluster.selected(selector, namespace):
            continue
        if not cluster.makers(selector, namespace):
            yield _fault(
                policy,
                f"No pod matches the selector {selector}.",
                "The NetworkPolicy has no effect: no pod is protected by it.",
                command=f"kubectl -n {namespace} get pods --show-labels",
            )


def _isolating(
    cluster: Cluster, direction: str
) -> Iterator[tuple[tuple[NetworkPolicy, ...], list[Pod]]]:
    """Pods that policies isolate in one direction, by the policies that do."""
    policies_of: dict[tuple[str, str], list[NetworkPolicy]] = {}
    pods_by_name: dict[tuple[str, str], Pod] = {}
    for policy in cluster.of(listings.NETWORK_POLICIES):
        if direction not in _types(policy) or policy.metadata.deletion_timestamp is not None:
            continue
        selector = as_selector(policy.spec.pod_selector)
        for pod in cluster.selected(selector, policy.metadata.namespace):
            key = (pod.metadata.namespace, pod.metadata.name)
            if not pod.spec.host_network:
                policies_of.setdefault(key, []).append(policy)
                pods_by_name[key] = pod
    groups: dict[tuple[int, ...], tuple[tuple[NetworkPolicy, ...], list[Pod]]] = {}
    for key, policies in policies_of.items():
        groups.setdefault(tuple(map(id, policies)), (tuple(policies), []))[1].append(
            pods_by_name[key]
        )
    yield from groups.values()


@rule(
    "policy-blocks-dns",
    "NetworkPolicies do not let pods reach DNS.",
    listings.NETWORK_POLICIES,
    listings.PODS,
    listings.NAMESPACES,
    uses=(listings.SERVICES,),
)
def without_dns(cluster: Cluster) -> Iterator[Fault]:
    reported: set[Subject] = set()
    for policies, pods in _isolating(cluster, "Egress"):
        namespace = policies[0].metadata.namespace
        if namespace == _SYSTEM or any(
            _allows_dns(cluster, namespace, each.to, each.ports)
            for policy in policies
            for each in policy.spec.egress
        ):
            continue
        policy = max(policies, key=lambda one: len(one.spec.egress))
        subject = subject_of("NetworkPolicy", policy.metadata)
        if subject in reported:
            continue
        reported.add(subject)
        others = [one.metadata.name for one in policies if one is not policy]
        also = f" (with NetworkPolicy {listed(others)})" if others else ""
        names = sorted(pod.metadata.name for pod in pods)
        yield _fault(
            policy,
            f"{counted(len(pods), 'pod')} ({listed(names)}) cannot reach DNS: no egress rule"
            f"{also} allows port 53/UDP to the DNS pods of {_SYSTEM}.",
            "The pods cannot resolve names of Services or of other hosts.",
        )


def _allows_dns(
    cluster: Cluster, namespace: str, peers: Sequence[PolicyPeer], ports: Sequence[PolicyPort]
) -> bool:
    if ports and not any(_is_dns(port) for port in ports):
        return False
    return not peers or any(_reaches_dns(cluster, namespace, peer) for peer in peers)


def _is_dns(port: PolicyPort) -> bool:
    if port.protocol != "UDP":
        return False
    if port.port is None or isinstance(port.port, str):
        return True  # every port, or one that the DNS pods name
    return port.port <= _DNS_PORT <= (port.end_port or port.port)


def _reaches_dns(cluster: Cluster, namespace: str, peer: PolicyPeer) -> bool:
    if peer.ip_block is not None:
        return _block_has_dns(cluster, peer.ip_block.cidr)
    if peer.namespace_selector is None and namespace != _SYSTEM:
        return False
    serving = [
        one.metadata.labels | {_NAME: one.metadata.name}
        for one in cluster.of(listings.NAMESPACES)
        if one.metadata.name == _SYSTEM or "dns" in one.metadata.name
    ]
    selector = as_selector(peer.namespace_selector)
    if peer.namespace_selector is not None and not any(map(selector.matches, serving)):
        return False
    pods = as_selector(peer.pod_selector)
    return peer.pod_selector is None or any(map(pods.matches, _dns_labels(cluster)))


def _dns_labels(cluster: Cluster) -> list[dict[str, str]]:
    own = [
        pod.metadata.labels
        for pod in cluster.pods_in(_SYSTEM)
        if "dns" in pod.metadata.name or pod.metadata.labels.get("k8s-app") == "kube-dns"
    ]
    return [_DNS_LABELS, *own]


def _block_has_dns(cluster: Cluster, cidr: str) -> bool:
    try:
        network = ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return True
    service = cluster.find(listings.SERVICES, "kube-dns", _SYSTEM)
    addresses = [_NODE_LOCAL_DNS, *(service.spec.cluster_ips if service is not None else ())]
    return network.prefixlen <= _WIDE or any(
        ipaddress.ip_address(address) in network for address in addresses if address != "None"
    )


@rule(
    "policy-isolates-service",
    "NetworkPolicies let no client reach a Service.",
    listings.NETWORK_POLICIES,
    listings.PODS,
    listings.SERVICES,
    uses=(listings.INGRESSES,),
)
def isolated_services(cluster: Cluster) -> Iterator[Fault]:
    policies_of = {
        (pod.metadata.namespace, pod.metadata.name): policies
        for policies, pods in _isolating(cluster, "Ingress")
        for pod in pods
    }
    routed = _routed(cluster) if policies_of else {}
    for service, pods in selecting(cluster) if policies_of else ():
        meta = service.metadata
        isolated = [policies_of.get((meta.namespace, pod.metadata.name)) for pod in pods]
        policies = isolated[0] if isolated and all(isolated) else None
        if not policies:
            continue
        peers = _allowed(service, pods[0], policies)
        if peers is None:
            yield _unreachable(service, policies)
        elif (meta.namespace, meta.name) in routed and _only_neighbours(peers):
            ingress = routed[meta.namespace, meta.name]
            yield _fault(
                policies[0],
                f"Ingress {meta.namespace}/{ingress} routes to Service {meta.namespace}/"
                f"{meta.name}, but only pods of the namespace {meta.namespace} may connect to it.",
                "An ingress controller in another namespace cannot reach the Service.",
            )


def _routed(cluster: Cluster) -> dict[tuple[str, str], str]:
    """(namespace, Service) -> an Ingress that routes to it."""
    return {
        (ingress.metadata.namespace, path.backend.service.name): ingress.metadata.name
        for ingress in cluster.of(listings.INGRESSES)
        for each in ingress.spec.rules
        for path in each.http.paths
        if path.backend.service is not None
    }


def _only_neighbours(peers: Sequence[PolicyPeer]) -> bool:
    return bool(peers) and all(
        peer.namespace_selector is None and peer.ip_block is None for peer in peers
    )


def _allowed(
    service: Service, pod: Pod, policies: Sequence[NetworkPolicy]
) -> list[PolicyPeer] | None:
    """Who may connect to one of the ports; empty: everybody; None: nobody."""
    peers: list[PolicyPeer] = []
    reached = False
    for each in (each for policy in policies for each in policy.spec.ingress):
        if each.ports and not any(
            _opens(opened, port, pod) for opened in each.ports for port in service.spec.ports
        ):
            continue
        if not each.from_:
            return []
        reached = True
        peers += each.from_
    return peers if reached else None


def _opens(opened: PolicyPort, port: ServicePort, pod: Pod) -> bool:
    if opened.protocol != port.protocol:
        return False
    if opened.port is None:
        return True
    target = _number(port.target_port or port.port, pod)
    first = _number(opened.port, pod)
    return first is None or target is None or first <= target <= (opened.end_port or first)


def _number(port: int | str, pod: Pod) -> int | None:
    """The number of a port that a container names."""
    if isinstance(port, int):
        return port
    named = {one.name: one.container_port for each in pod.spec.containers for one in each.ports}
    return named.get(port)


def _unreachable(service: Service, policies: Sequence[NetworkPolicy]) -> Fault:
    policy = max(policies, key=lambda one: len(one.spec.ingress))
    ports = [
        f"{opened.port}/{opened.protocol}"
        for one in policies
        for each in one.spec.ingress
        for opened in each.ports
    ]
    targets = [f"{port.target_port or port.port}/{port.protocol}" for port in service.spec.ports]
    cause = (
        f"ingress is allowed on port {listed(sorted(set(ports)))} only, and the Service uses "
        f"{listed(targets)}"
        if ports
        else "no ingress rule allows any connection to its pods"
    )
    return _fault(
        policy,
        f"No client can reach Service {service.metadata.namespace}/{service.metadata.name}: "
        f"{cause}.",
        "Connections to the Service are dropped.",
    )


@rule(
    "policy-peer-missing",
    "A NetworkPolicy allows traffic only with what does not exist.",
    listings.NETWORK_POLICIES,
    listings.PODS,
    listings.NAMESPACES,
)
def missing_peers(cluster: Cluster) -> Iterator[Fault]:
    for policy in cluster.of(listings.NETWORK_POLICIES):
        if not cluster.selected(as_selector(policy.spec.pod_selector), policy.metadata.namespace):
            continue
        rules = [("from", each.from_) for each in policy.spec.ingress]
        rules += [("to", each.to) for each in policy.spec.egress]
        for word, peers in rules:
            problems = [_peer_problem(cluster, policy, peer) for peer in peers]
            if problems and all(problems):
                yield _fault(
                    policy,
                    f"A rule allows traffic {word} nobody: {'; '.join(problems)}.",
                    "The rule has no effect: what it was meant to allow is blocked.",
                    command="kubectl get namespaces --show-labels",
                )


def _peer_problem(cluster: Cluster, policy: NetworkPolicy, peer: PolicyPeer) -> str:
    if peer.ip_block is not None:
        return ""
    spaces = _namespaces(cluster, policy, peer)
    if not spaces:
        return f"no namespace matches {as_selector(peer.namespace_selector)}"
    pods = as_selector(peer.pod_selector)
    only = cluster.snapshot.namespace
    if peer.pod_selector is None or pods.selects_everything or (only and set(spaces) - {only}):
        return ""
    if any(cluster.selected(pods, name) or cluster.makers(pods, name) for name in spaces):
        return ""
    where = f" in namespace {listed(sorted(spaces))}" if len(spaces) <= 3 else ""
    return f"no pod{where} matches {pods}"


def _namespaces(cluster: Cluster, policy: NetworkPolicy, peer: PolicyPeer) -> list[str]:
    if peer.namespace_selector is None:
        return [policy.metadata.namespace]
    selector = as_selector(peer.namespace_selector)
    return [
        one.metadata.name
        for one in cluster.of(listings.NAMESPACES)
        if selector.matches(_labels(one.metadata.labels, one.metadata.name))
    ]


def _labels(labels: Mapping[str, str], name: str) -> dict[str, str]:
    return {_NAME: name, **labels}


RULES = (idle_policies, without_dns, isolated_services, missing_peers)
