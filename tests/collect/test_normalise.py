"""From an object as the server has it to the record of the stream."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.collect import ContainerSpec, InferenceRequest
from kvestigate.collect.kinds import BUILT_IN, chosen, kind_of, parse_kind_path
from kvestigate.collect.model import schema
from kvestigate.collect.normalise import normalise
from kvestigate.collect.reading import read
from kvestigate.collect.record import ContainerRecord, DeviceRecord, Record, line
from kvestigate.collect.sidecars import Sidecars, with_more
from kvestigate.errors import InputError, UsageError

Json = dict[str, Any]


def container(name: str = "main", image: str = "web:1", **more: Any) -> Json:
    return {"name": name, "image": image, **more}


def needs(requests: Json | None = None, limits: Json | None = None) -> Json:
    return {"resources": {"requests": requests or {}, "limits": limits or {}}}


def record_of(spec: Json, kind: str = "Pod", **meta: Any) -> Record:
    data = {"metadata": {"name": "web", "namespace": "shop", **meta}, "spec": spec}
    return normalise(read(BUILT_IN[kind], msgspec.json.encode(data)))


def pod(*containers: Json, **spec: Any) -> Record:
    return record_of({"containers": containers or [container()], **spec})


def test_a_deployment_becomes_what_the_documentation_shows() -> None:
    spec = {
        "containers": [
            container(
                "nginx",
                "nginx:1.27",
                **needs({"cpu": "100m", "memory": "128Mi"}, {"cpu": "500m", "memory": "512Mi"}),
            )
        ],
        "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "b", "configMap": {"name": "m"}},
            {"name": "c", "configMap": {"name": "n"}},
        ],
    }
    made = record_of(
        {"template": {"spec": spec}},
        "Deployment",
        labels={"app": "nginx"},
        uid="u",
        resourceVersion="7",
    )
    assert msgspec.json.decode(line(made)) == {
        "namespace": "shop",
        "workload_kind": "Deployment",
        "workload_name": "web",
        "labels": {"app": "nginx"},
        "annotations": {},
        "containers": [
            {
                "name": "nginx",
                "image": "nginx:1.27",
                "command": None,
                "args": None,
                "req_cpu_mcpu": 100,
                "req_mem_mib": 128,
                "lim_cpu_mcpu": 500,
                "lim_mem_mib": 512,
            }
        ],
        "init_container_count": 0,
        "sidecar_count": 0,
        "volume_types": ["configMap", "persistentVolumeClaim"],
        "node_type": None,
        "runtime_class": None,
        "gpu_count": 0,
        "parallelism": None,
        "completions": None,
        "id": "u@7",
        "event": None,
        "effective_cpu_mcpu": 100,
        "effective_mem_mib": 128,
        "gpu_resources": {},
        "gpu_fraction": None,
        "devices": [],
    }


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Pod", lambda it: it),
        *((kind, lambda it: {"template": {"spec": it}}) for kind in ("Deployment", "StatefulSet")),
        *((kind, lambda it: {"template": {"spec": it}}) for kind in ("DaemonSet", "ReplicaSet")),
        ("Job", lambda it: {"template": {"spec": it}, "parallelism": 3, "completions": 9}),
        (
            "CronJob",
            lambda it: {
                "jobTemplate": {
                    "spec": {"template": {"spec": it}, "parallelism": 3, "completions": 9}
                }
            },
        ),
    ],
)
def test_every_kind_has_its_template_found(kind: str, spec: Any) -> None:
    made = record_of(spec({"containers": [container()], "runtimeClassName": "gvisor"}), kind)
    assert (made.workload_kind, made.runtime_class) == (kind, "gvisor")
    assert [it.name for it in made.containers] == ["main"]
    counts = (3, 9) if kind in ("Job", "CronJob") else (None, None)
    assert (made.parallelism, made.completions) == counts


@pytest.mark.parametrize(
    ("cpu", "memory", "millis", "mib"),
    [
        ("500m", "64Mi", 500, 64),
        ("2", "1Gi", 2000, 1024),
        ("0.1", "134217728", 100, 128),
        ("1500u", "1500k", 2, 2),
        ("1e3m", "1e9", None, None),
        ("1e1", "1G", 10000, 954),
        (".5", "1.5Gi", 500, 1536),
        ("1", "2Ti", 1000, 2 * 1024 * 1024),
        ("1", "100Ki", 1000, 1),
    ],
)
def test_quantities_are_exact(cpu: str, memory: str, millis: int | None, mib: int | None) -> None:
    if millis is None:
        with pytest.raises(InputError, match="quantity '1e3m'"):
            pod(container(**needs({"cpu": cpu})))
        return
    made = pod(container(**needs({"cpu": cpu, "memory": memory}))).containers[0]
    assert (made.req_cpu_mcpu, made.req_mem_mib) == (millis, mib)
    assert (made.lim_cpu_mcpu, made.lim_mem_mib) == (None, None)


def test_effective_requests_are_what_the_scheduler_counts() -> None:
    made = pod(
        container(**needs({"cpu": "1", "memory": "100Mi"})),
        initContainers=[
            container("proxy", restartPolicy="Always", **needs({"cpu": "500m"})),
            container("setup", **needs(limits={"cpu": "3", "memory": "50Mi"})),
        ],
        overhead={"cpu": "250m", "memory": "20Mi"},
    )
    assert made.effective_cpu_mcpu == 3000 + 500 + 250
    assert made.effective_mem_mib == 120
    assert (made.init_container_count, made.sidecar_count) == (1, 1)


@pytest.mark.parametrize(
    ("containers", "known", "count"),
    [
        ([container(), container("istio-proxy")], Sidecars(), 1),
        ([container(), container("x", "docker.io/istio/proxyv2:1.22")], Sidecars(), 1),
        ([container(), container("x", "fluent/fluent-bit@sha256:0")], Sidecars(), 1),
        ([container(), container("x", "mycloud/influent/fluent-bits")], Sidecars(), 0),
        ([container("envoy")], Sidecars(), 0),
        ([container(), container("tail"), container("y", "r.io/ops/agent:2")], Sidecars(), 0),
        (
            [container(), container("tail"), container("y", "r.io/ops/agent:2")],
            with_more(["tail", "ops/agent"]),
            2,
        ),
    ],
)
def test_sidecars_are_known_by_name_and_image(
    containers: list[Json], known: Sidecars, count: int
) -> None:
    data = {"metadata": {"name": "web"}, "spec": {"containers": containers}}
    workload = read(BUILT_IN["Pod"], msgspec.json.encode(data))
    assert normalise(workload, known=known).sidecar_count == count


@pytest.mark.parametrize(
    ("requests", "limits", "count", "resources"),
    [
        ({}, {"nvidia.com/gpu": "2"}, 2, {"nvidia.com/gpu": 2}),
        ({"amd.com/gpu": "1"}, {"amd.com/gpu": "1"}, 1, {"amd.com/gpu": 1}),
        ({"gpu.intel.com/i915": "1"}, {}, 1, {"gpu.intel.com/i915": 1}),
        ({}, {"nvidia.com/mig-1g.10gb": "3"}, 3, {"nvidia.com/mig-1g.10gb": 3}),
        ({}, {"nvidia.com/gpu.shared": "1"}, 1, {"nvidia.com/gpu.shared": 1}),
        (
            {},
            {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"},
            1,
            {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 30, "nvidia.com/gpumem": 3000},
        ),
        ({}, {"aliyun.com/gpu-mem": "8"}, 1, {"aliyun.com/gpu-mem": 8}),
        ({}, {"nvidia.com/gpu": "0"}, 0, {}),
        ({"cpu": "1"}, {}, 0, {}),
    ],
)
def test_gpus(requests: Json, limits: Json, count: int, resources: dict[str, int]) -> None:
    made = pod(container(**needs(requests, limits)))
    assert (made.gpu_count, made.gpu_resources) == (count, resources)


def test_devices_by_kind_and_claims() -> None:
    limits = {
        "nvidia.com/gpu": "2",
        "nvidia.com/gpu.shared": "1",
        "nvidia.com/gpumem": "3000",
        "nvidia.com/mig-1g.10gb": "3",
    }
    claims = [
        {"name": "a", "resourceClaimTemplateName": "big-gpu"},
        {"name": "b", "resourceClaimName": "shared-gpu"},
    ]
    made = record_of({"containers": [container(**needs({}, limits))], "resourceClaims": claims})
    assert made.devices == (
        DeviceRecord("gpu", "nvidia.com/gpu", 2),
        DeviceRecord("share", "nvidia.com/gpu.shared", 1),
        DeviceRecord("share", "nvidia.com/gpumem", 3000),
        DeviceRecord("partition", "nvidia.com/mig-1g.10gb", 3),
        DeviceRecord("claim", "big-gpu"),
        DeviceRecord("claim", "shared-gpu"),
    )


@pytest.mark.parametrize(
    ("written", "fraction", "count"),
    [("0.5", 0.5, 1), ("2", None, 0), ("-1", None, 0), ("nan", None, 0), ("half", None, 0)],
)
def test_a_fraction_of_a_gpu(written: str, fraction: float | None, count: int) -> None:
    made = record_of({"containers": [container()]}, annotations={"gpu-fraction": written})
    assert (made.gpu_fraction, made.gpu_count) == (fraction, count)


def _affinity(kind: str, *terms: Any) -> Json:
    wanted: Any = {"nodeSelectorTerms": terms} if kind.startswith("required") else terms
    return {"affinity": {"nodeAffinity": {f"{kind}DuringSchedulingIgnoredDuringExecution": wanted}}}


def _term(key: str, *values: str, operator: str = "In") -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, None),
        ({"nodeSelector": {"disk": "ssd"}}, None),
        ({"nodeSelector": {"node.kubernetes.io/instance-type": "m5.large"}}, "m5.large"),
        ({"nodeSelector": {"agentpool": "a", "nvidia.com/gpu.product": "H100"}}, "H100"),
        ({"nodeSelector": {"node-role.kubernetes.io/gpu": ""}}, "gpu"),
        (_affinity("required", _term("node-type", "big", "huge")), "big,huge"),
        (_affinity("required", _term("node-type", "big", operator="NotIn")), None),
        (
            _affinity("required", _term("node-role.kubernetes.io/infra", operator="Exists")),
            "infra",
        ),
        (
            _affinity(
                "preferred",
                {"weight": 1, "preference": _term("agentpool", "a")},
                {"weight": 9, "preference": _term("agentpool", "b")},
            ),
            "b",
        ),
    ],
)
def test_the_type_of_node(spec: Json, expected: str | None) -> None:
    assert pod(container(), **spec).node_type == expected


def test_kubectls_copy_of_the_manifest_stays_behind() -> None:
    copied = "kubectl.kubernetes.io/last-applied-configuration"
    made = record_of({"containers": []}, annotations={copied: "{}", "team": "a"})
    assert made.annotations == {"team": "a"}


def test_a_custom_kind_by_its_path() -> None:
    kind = parse_kind_path("kubeflow.org/v1/PyTorchJob:.spec.pytorchReplicaSpecs.*.template")
    gpu = needs(limits={"nvidia.com/gpu": 1})  # custom types may keep numbers
    replicas = {
        role: {"replicas": 2, "template": {"spec": {"containers": [container(role, **gpu)]}}}
        for role in ("Master", "Worker")
    }
    data = {"metadata": {"name": "train"}, "spec": {"pytorchReplicaSpecs": replicas}}
    made = normalise(read(kind, msgspec.json.encode(data)))
    assert (made.workload_kind, made.gpu_count) == ("PyTorchJob", 2)
    assert [it.name for it in made.containers] == ["Master", "Worker"]
    with pytest.raises(InputError, match=r"no pod template at \.spec\.pytorchReplicaSpecs"):
        read(kind, b'{"metadata":{"name":"train"},"spec":{"pytorchReplicaSpecs":7}}')


@pytest.mark.parametrize(
    "text", ["", "PyTorchJob", "a/b/c/D:.x", "v1/Foo", "v1/Foo:", "v1/Foo:.a..b"]
)
def test_a_kind_path_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="is not GROUP/VERSION/KIND:PATH"):
        parse_kind_path(text)


def test_kinds_are_chosen_by_name_in_any_case() -> None:
    assert [it.name for it in chosen(["job", "Pod", "JOB"])] == ["Job", "Pod"]
    with pytest.raises(UsageError, match="'Service' is not a known kind"):
        chosen(["Service"])


def test_a_manifest_of_an_old_version_is_of_the_same_kind() -> None:
    assert kind_of("extensions/v1beta1", "Deployment") is BUILT_IN["Deployment"]
    assert kind_of("batch/v1beta1", "CronJob") is BUILT_IN["CronJob"]
    assert kind_of("example.com/v1", "Deployment") is None


TEXT = st.text(max_size=12)
TEXTS = st.none() | st.lists(TEXT, max_size=3).map(tuple)
AMOUNT = st.none() | st.integers(0, 2**62)
CONTAINERS = st.builds(ContainerRecord, TEXT, TEXT, TEXTS, TEXTS, AMOUNT, AMOUNT, AMOUNT, AMOUNT)
RECORDS = st.builds(
    Record,
    namespace=TEXT,
    workload_kind=TEXT,
    workload_name=TEXT,
    labels=st.dictionaries(TEXT, TEXT, max_size=3),
    annotations=st.dictionaries(TEXT, TEXT, max_size=3),
    containers=st.lists(CONTAINERS, max_size=3).map(tuple),
    volume_types=st.lists(TEXT, max_size=3).map(tuple),
    node_type=st.none() | TEXT,
    gpu_count=st.integers(0, 100),
    parallelism=AMOUNT,
    id=st.none() | TEXT,
    event=st.sampled_from([None, "ADDED", "MODIFIED", "DELETED"]),
    gpu_resources=st.dictionaries(TEXT, st.integers(0, 2**40), max_size=3),
    gpu_fraction=st.none() | st.integers(1, 999).map(lambda it: it / 1000),
    devices=st.lists(
        st.builds(
            DeviceRecord, st.sampled_from(["gpu", "partition", "share", "claim"]), TEXT, AMOUNT
        ),
        max_size=3,
    ).map(tuple),
)


@given(RECORDS)
def test_the_stream_is_to_the_byte_what_the_models_write(record: Record) -> None:
    written = line(record)
    assert InferenceRequest.model_validate_json(written).model_dump_json().encode() == written


def test_the_models_and_the_records_have_the_same_fields() -> None:
    assert tuple(InferenceRequest.model_fields) == Record.__struct_fields__
    assert tuple(ContainerSpec.model_fields) == ContainerRecord.__struct_fields__
    properties = schema()["properties"]
    assert isinstance(properties, dict)
    assert tuple(properties) == Record.__struct_fields__
