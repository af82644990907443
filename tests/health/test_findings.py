"""Each kind of fault is found by its rule, and what is well is left alone."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kvestigate.health.audit import examine
from kvestigate.health.registry import RULES, findings, skipped
from kvestigate.health.rendering import aimed, finding_blocks
from kvestigate.render.plain import to_text
from kvestigate.render.severity import Severity, at_least, tally
from kvestigate.snapshot import listings
from kvestigate.snapshot.condensing import PodCondenser
from kvestigate.snapshot.exporters import GpuReading, readings
from kvestigate.snapshot.prometheus import Sample
from tests.health.snapshots import NOW, Object, named, snapshot
from tests.health.test_rules import EXAMPLES
from tests.snapshot.objects import container, node, pod

ASKS = container(cpu="1")


def status(state: Object, last: Object | None = None, **rest: Any) -> Object:
    one = {"name": "main", "restartCount": 4, "state": state, "lastState": last or {}}
    return {**pod("p", ASKS, on="n"), "status": {"phase": "Running", "containerStatuses": [one]}}


def sick_node(type: str, value: str) -> Object:
    body = node("n", cpu="4")
    conditions = [] if type == "Ready" else body["status"]["conditions"]
    body["status"]["conditions"] = [*conditions, {"type": type, "status": value, "message": "m"}]
    return body


def secret(days: int) -> Object:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "shop")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - timedelta(days=900))
        .not_valid_after(NOW + timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    return named("tls", data={"tls.crt": base64.b64encode(pem).decode(), "tls.key": "c2VjcmV0"})


FAILED = {"terminated": {"exitCode": 1, "reason": "Error", "message": "no config\n"}}
NO_IMAGE = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
LEFT = {
    "metadata": {"name": "pv"},
    "spec": {"claimRef": {"namespace": "shop", "name": "old"}, "capacity": {"storage": "1Gi"}},
    "status": {"phase": "Released"},
}

LIMITED = container(cpu="1")
LIMITED["resources"]["limits"] = {"memory": "100Mi", "cpu": "500m"}


def using(memory: str, cpu: str = "1m") -> Any:
    usage = {"name": "main", "usage": {"memory": memory, "cpu": cpu}}
    return {
        listings.PODS: [pod("p", LIMITED, on="n")],
        listings.POD_METRICS: [named("p", "default", containers=[usage])],
    }


def computing(cpu: str, busy: Sequence[float] = ()) -> Mapping[Any, Sequence[Any]]:
    """A pod with two GPUs; what the exporter says of them, if there is one."""
    usage = [{"name": "main", "usage": {"cpu": cpu}}] if cpu else []
    return {
        listings.NODES: [node("n", cpu="8", gpu="8")],
        listings.PODS: [pod("p", container(cpu="1", gpu="2"), on="n")],
        listings.POD_METRICS: [named("p", "default", containers=usage)],
        listings.GPU_READINGS: [
            GpuReading(f"GPU-{index}", "n", str(index), percent, "default", "p", "main")
            for index, percent in enumerate(busy)
        ],
    }


def written(version: str) -> Object:
    made = named("old", status={"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}})
    made["metadata"]["managedFields"] = [
        {"manager": "helm", "apiVersion": version, "time": "2024-05-01T10:00:00Z"}
    ]
    return made


def applied(configuration: str) -> Object:
    made = named("old", spec={"schedule": "@daily"})
    made["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": configuration
    }
    return made


def job(condition: str, reason: str) -> Object:
    told = {"type": condition, "status": "True", "reason": reason, "message": "m"}
    return named("migrate", status={"conditions": [told]})


def unready(since: str) -> Object:
    made = status({"running": {}})
    made["status"]["conditions"] = [
        {"type": "Ready", "status": "False", "lastTransitionTime": since}
    ]
    return made


BROKEN = b"""DCGM_FI_DEV_GPU_UTIL{gpu="3",UUID="GPU-a",namespace="ml",pod="train"} 40
DCGM_FI_DEV_XID_ERRORS{gpu="3",UUID="GPU-a",namespace="ml",pod="train"} 79
"""
OLD_REQUEST = {
    "group": "flowcontrol.apiserver.k8s.io",
    "version": "v1beta3",
    "resource": "flowschemas",
    "subresource": "",
    "removed_release": "1.32",
}

Given = Mapping[Any, Sequence[Any]]


def haunted(
    *, memory: float = 0, utilization: float = 0, taken: str = "1", users: int = 1
) -> Given:
    """A node of whose 8 GPUs one, which the exporter gives to no pod, shows this."""
    used = GpuReading("GPU-0", "n", "0", 90, "default", "p", "main", 4096)
    ghost = GpuReading("GPU-1", "n", "1", utilization, "", "", "", memory)
    return {
        listings.NODES: [
            node("n", labels={"nvidia.com/gpu.replicas": str(users)}, cpu="4", gpu="8")
        ],
        listings.PODS: [pod("p", container(cpu="1", gpu=taken), on="n")],
        listings.GPU_READINGS: [used, ghost],
    }


FAULTS: list[tuple[str, str, str, Given]] = [
    ("node-not-ready", "critical", "Not ready: m", {listings.NODES: [sick_node("Ready", "False")]}),
    ("node-pressure", "critical", "DiskPressure: m",
     {listings.NODES: [sick_node("DiskPressure", "True")]}),
    ("gpu-not-offered", "critical", "requests 2 nvidia.com/gpu, but no node has",
     {listings.PODS: [pod("p", container(cpu="1", gpu="2"))]}),
    ("certificate-expiry", "warning", "in 10 days", {listings.TLS_SECRETS: [secret(10)]}),
    ("certificate-expiry", "critical", "expired on 2026-02-27",
     {listings.TLS_SECRETS: [secret(-2)]}),
    ("memory-near-limit", "warning", "uses 95.0 MiB of its 100.0 MiB memory limit (95 %)",
     using("95Mi")),
    ("cpu-limit", "warning", "uses 0.49 of its 0.5 CPU limit (98 %)", using("1Mi", "490m")),
    ("gpu-idle-hint", "info", "1 pod holds 2 GPUs at less than 10m CPU per pod",
     computing(cpu="3m")),
    ("gpu-idle", "warning", "1 pod holds 2 GPUs at 0 % utilization",
     computing(cpu="3m", busy=(0, 0))),
    ("gpu-sick", "critical", "GPU 3 (GPU-a, held by ml/train): Xid 79",
     {listings.NODES: [node("n", gpu="8")],
      listings.GPU_READINGS: list(readings(BROKEN, "n"))}),
    ("gpu-held-by-nobody", "warning",
     "GPU 1 (GPU-1) on n has 2.0 GiB in use but is not allocated to any pod",
     haunted(memory=2048)),
    ("gpu-held-by-nobody", "warning",
     "GPU 1 (GPU-1) on n is at 40 % utilization but is not allocated",
     haunted(utilization=40)),
    ("deprecated-manifest", "warning", "Written as extensions/v1beta1 by helm (on 2024-05-01). "
     "Kubernetes 1.22 and later do not serve extensions/v1beta1; use networking.k8s.io/v1.",
     {listings.INGRESSES: [written("extensions/v1beta1")]}),
    ("deprecated-manifest", "warning", "Written as autoscaling/v2beta2 by kubectl apply",
     {listings.AUTOSCALERS: [applied('{"apiVersion": "autoscaling/v2beta2", "kind": "X"}')]}),
    ("deprecated-requests", "warning", "requested flowschemas in flowcontrol.apiserver.k8s.io/v1b",
     {listings.DEPRECATED_REQUESTS: [Sample(OLD_REQUEST, 1)]}),
]  # fmt: skip

WELL: list[Given] = [
    {},
    haunted(memory=4),
    haunted(memory=2048, taken="8"),  # the exporter does not tell whose it is
    haunted(memory=2048, users=4),
    using("89Mi"),
    {listings.NODES: [node("n", cpu="4", gpu="8")],
     listings.PODS: [pod("p", container(cpu="1", gpu="2"), on="n")]},
    {listings.PODS: [status({"running": {}}, FAILED)]},
    {listings.PODS: [pod("done", on="n", phase="Succeeded")]},
    using("1Mi", "470m"),
    {listings.JOBS: [job("Complete", "")]},
    {listings.PODS: [unready("2026-03-01T11:58:00Z")]},
    computing(cpu="10m"),
    computing(cpu="3m", busy=(0, 40)),
    computing(cpu=""),
    {listings.INGRESSES: [written("networking.k8s.io/v1")]},
    {listings.CRON_JOBS: [applied('{"apiVersion": "batch/v1"}'), applied("not JSON"),
                          applied('["apiVersion"]'), applied('{"apiVersion": 1}')]},
    {listings.DEPRECATED_REQUESTS: [Sample({"resource": "endpoints", "version": "v1"}, 1),
                                    Sample(OLD_REQUEST, 0)]},
    {listings.TLS_SECRETS: [secret(31), named("odd", data={"tls.crt": "bm90IGEgY2VydA=="})]},
]  # fmt: skip


@pytest.mark.parametrize(("rule", "severity", "evidence", "given"), FAULTS)
def test_a_fault_is_found(rule: str, severity: str, evidence: str, given: Given) -> None:
    (found,) = findings(snapshot(given))
    assert (found.rule, found.severity.value) == (rule, severity)
    assert evidence in found.evidence
    assert found.why
    assert found.command.split()[0] in ("kvestigate", "kubectl")


@pytest.mark.parametrize("given", WELL)
def test_what_is_well_is_left_alone(given: Given) -> None:
    assert findings(snapshot(given)) == ()


@pytest.mark.parametrize("given", [*WELL, *(given for *_, given in FAULTS)])
def test_condensed_pods_tell_the_same(given: Given) -> None:
    whole = snapshot(given)
    condensed = snapshot(given)
    condensed.listed[listings.PODS] = tuple(map(PodCondenser(), whole.of(listings.PODS)))
    assert examine(condensed, "https://x.test") == examine(whole, "https://x.test")


def test_every_rule_is_tried() -> None:
    tried = {rule for rule, *_ in FAULTS} | {path.stem for path in EXAMPLES.glob("*.yaml")}
    assert {rule.name for rule in RULES} == tried
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_the_worst_comes_first_and_limits_count() -> None:
    given: Given = {
        listings.PODS: [pod("p", on="n"), status(NO_IMAGE)],
        listings.VOLUMES: [LEFT],
    }
    found = findings(snapshot(given))
    assert [it.severity for it in found] == [Severity.CRITICAL, Severity.WARNING, Severity.INFO]
    severities = [it.severity for it in found]
    assert at_least(severities, "critical")
    assert at_least(severities[1:], "warning")
    assert not at_least(severities[1:], "critical")
    assert not at_least(severities[2:], "warning")
    assert tally(severities) == "1 critical, 1 warning, 1 info"


def test_what_cannot_be_seen_is_not_called_missing() -> None:
    closed = snapshot(
        {listings.SERVICES: [named("web", spec={"selector": {"app": "web"}})]},
        denied=[listings.ENDPOINT_SLICES],
    )
    assert findings(closed) == ()
    assert "service-without-endpoints" in skipped(closed)
    assert "crash-loop" not in skipped(closed)


def test_a_secret_never_shows_its_key() -> None:
    (found,) = findings(snapshot({listings.TLS_SECRETS: [secret(1)]}))
    assert "c2VjcmV0" not in repr(found)
    assert "c2VjcmV0" not in repr(snapshot({listings.TLS_SECRETS: [secret(1)]}))


@pytest.mark.parametrize(("count", "shown"), [(11, 11), (12, 10)])
def test_what_is_wrong_often_is_shown_a_few_times(count: int, shown: int) -> None:
    pods = [{**pod(f"p-{it:02}", container(), on="n"), "kind": "Pod"} for it in range(count)]
    text = to_text(finding_blocks(examine(snapshot({listings.PODS: pods}), "https://x.test")))
    assert text.count("INFO Pod ") == shown
    assert f"{count} info" in text
    assert ("2 more no-requests findings" in text) is (shown < count)


@pytest.mark.parametrize(
    ("owner", "command"),
    [
        (None, "kvestigate describe pod p -n default"),
        ("Job", "kvestigate describe job web -n default"),
        ("StatefulSet", "kubectl -n default set resources statefulset/web --requests="),
    ],
)
def test_only_what_takes_other_requests_is_told_to_have_them(
    owner: str | None, command: str
) -> None:
    body = pod("p", on="n")
    if owner is not None:
        reference = {"kind": owner, "name": "web", "uid": "u", "controller": True}
        body["metadata"]["ownerReferences"] = [reference]
    (found,) = findings(snapshot({listings.PODS: [body]}))
    assert found.command.startswith(command)


def test_commands_go_to_the_cluster_that_was_looked_at() -> None:
    audit = examine(snapshot({listings.PODS: [pod("p", on="n")]}), "https://x.test")
    assert aimed(audit, ()) is audit
    (found,) = aimed(audit, ("--context", "my lab")).findings
    assert found.command == "kvestigate --context 'my lab' describe pod p -n default"
