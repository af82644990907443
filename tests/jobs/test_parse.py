"""Task files: the forms that SkyPilot documents are read, everything else is named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.jobs.tasks.model import Accelerator, Amount, Recovery, Task
from kvestigate.jobs.tasks.parse import parse_task, with_variables
from kvestigate.kube.documents import Mistakes, one_document
from kvestigate.kube.yaml_documents import load


def parsed(text: str) -> Task:
    return parse_task(one_document(text.encode(), "task.yaml", "task").value)


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("cpus: 4", Amount("4")),
        ("cpus: 4+", Amount("4", at_least=True)),
        ("cpus: '0.5'", Amount("500m")),
        ("cpus: 500m", Amount("500m")),
        ("memory: 16", Amount("16Gi")),
        ("memory: 16+", Amount("16Gi", at_least=True)),
        ("memory: 64GB", Amount("64Gi")),
        ("memory: 1024mb", Amount("1Gi")),
        ("memory: 512m", Amount("512Mi")),
        ("memory: 8Gi", Amount("8Gi")),
        ("memory: 8G", Amount("8G")),
        ("disk_size: 256", "256Gi"),
        ("disk_size: 1TB", "1Ti"),
        ("ports: 8081", (8081,)),
        ("ports: [8080, 10022-10024]", (8080, 10022, 10023, 10024)),
        ("ports: ['8080', 8080]", (8080,)),
        ("image_id: docker:ubuntu:latest", "ubuntu:latest"),
        ("image_id: python:3.11", "python:3.11"),
        ("accelerators: 2", Accelerator(2)),
        ("accelerators: '1'", Accelerator(1)),
        ("accelerators: V100", Accelerator(1, "V100")),
        ("accelerators: A100-80GB:8", Accelerator(8, "A100-80GB")),
        ("accelerators: {H100: 4}", Accelerator(4, "H100")),
        ("accelerators: {H100:4}", Accelerator(4, "H100")),
        ("gpus: L4:2", Accelerator(2, "L4")),
        ("use_spot: true", True),
        ("instance_type: p3.8xlarge", "p3.8xlarge"),
        ("labels: {team: a}", {"team": "a"}),
    ],
)
def test_a_resource_is_read(yaml: str, expected: object) -> None:
    (resources,) = parsed(f"run: x\nresources:\n  {yaml}").choices
    names = {"disk_size": "disk", "image_id": "image", "accelerators": "accelerator"}
    key = yaml.partition(":")[0].replace("gpus", "accelerators")
    assert getattr(resources, names.get(key, key)) == expected


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("accelerators: [L4:1, H100:2]", [("L4", 1), ("H100", 2)]),
        ("accelerators: {A100:1, V100:2}", [("A100", 1), ("V100", 2)]),
        ("any_of: [{accelerators: H100}, {accelerators: A100:2}]", [("H100", 1), ("A100", 2)]),
        (
            "ordered: [{infra: aws, gpus: T4}, {gpus: [L4, A10G]}]",
            [("T4", 1), ("L4", 1), ("A10G", 1)],
        ),
    ],
)
def test_choices_keep_their_order_and_what_they_share(
    yaml: str, expected: list[tuple[str, int]]
) -> None:
    choices = parsed(f"run: x\nresources:\n  cpus: 8+\n  {yaml}").choices
    found = [
        (each.accelerator.name, each.accelerator.count) for each in choices if each.accelerator
    ]
    assert found == expected
    assert {each.cpus for each in choices} == {Amount("8", at_least=True)}


def test_what_is_not_said_has_its_default() -> None:
    task = parsed("run: echo hi")
    (resources,) = task.choices
    assert (task.name, task.num_nodes, resources.image) == ("", 1, "python:3.13-slim")


def test_variables_are_text_and_the_command_line_wins() -> None:
    yaml = "run: x\nenvs: {A: 1, B: 1.5, C: yes, D: null, E: ''}\nsecrets: {T: null}"
    (document,) = load(yaml)
    given = {"A": "2", "D": "d", "F": "f"}
    task = parse_task(with_variables(document.value, envs=given, secrets={"T": "s"}))
    assert task.envs == {"A": "2", "B": "1.5", "C": "True", "D": "d", "E": "", "F": "f"}
    assert task.secrets == {"T": "s"}
    assert "'s'" not in repr(task)


def test_a_task_file_is_read_as_skypilot_reads_it() -> None:
    yaml = """
        run: x
        envs: {N: 3, Y: why, VERSION: 1.10, QUOTED: "1.10", LONG: 123456789012345678901234567890,
               DAY: 2026-01-05, EXPONENT: 1e3, WORD: no}
    """
    assert parsed(yaml).envs == {
        "N": "3",
        "Y": "why",
        "VERSION": "1.1",
        "QUOTED": "1.10",
        "LONG": "123456789012345678901234567890",
        "DAY": "2026-01-05",
        "EXPONENT": "1e3",
        "WORD": "False",
    }
    with pytest.raises(InputError, match='the key "A" is given twice'):
        parsed("run: x\nenvs:\n  A: 1\n  A: 2\n")


def test_local_files_are_uploaded_and_absolute_directories_are_the_containers() -> None:
    task = parsed("run: x\nworkdir: ../code\nfile_mounts: {~/a: ./b, /c: ~/d}")
    assert task.workdir == "~/sky_workdir"
    assert [(each.source, each.target) for each in task.uploads] == [
        ("../code", "~/sky_workdir"),
        ("./b", "~/a"),
        ("~/d", "/c"),
    ]
    task = parsed("run: x\nworkdir: /app")
    assert (task.workdir, task.uploads) == ("/app", ())


def test_known_fields_without_meaning_here_are_listed() -> None:
    yaml = "run: x\nconfig: {kubernetes: {pod_config: {}}, docker: {}}\nexperimental: {}\n"
    yaml += "resources: {infra: aws/us-east-1, disk_tier: best}"
    assert parsed(yaml).ignored == (
        "experimental",
        "resources.infra",
        "resources.disk_tier",
        "config.docker",
        "config.kubernetes.pod_config",
    )


@pytest.mark.parametrize(
    "resources",
    [
        "{cloud: kubernetes}",
        "{cloud: Kubernetes, region: null, zone: ~}",
        "{infra: k8s}",
        "{any_of: [{infra: kubernetes}, {infra: '*'}]}",
    ],
)
def test_what_is_granted_or_left_empty_is_not_ignored(resources: str) -> None:
    task = parsed(f"run: x\nservice: null\nconfig: {{docker: null}}\nresources: {resources}")
    assert task.ignored == ()


def test_a_certain_cluster_is_not_to_be_had_by_name() -> None:
    assert parsed("run: x\nresources: {infra: k8s/other}").ignored == ("resources.infra",)


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ("- a", "a task is a mapping"),
        ("setup: x", "run: the field is required"),
        ("run: ' '", "run: the field is required"),
        ("run: [a]", "run: ['a'] is not text"),
        ("run: x\nnum_node: 2", "num_node: no such field"),
        ("run: x\nresources: {cpu: 2}", "resources.cpu: no such field"),
        ("run: x\nresources: {any_of: [{gpuz: 1}]}", "resources.any_of[0].gpuz: no such field"),
        ("run: x\nresources: {any_of: [{any_of: []}]}", "resources.any_of[0].any_of"),
        ("run: x\nresources: {any_of: 3}", "resources.any_of: 3 is not a list"),
        ("run: x\nresources: 3", "resources: 3 is not a mapping"),
        ("run: x\nresources: {cpus: many}", "resources.cpus: "),
        ("run: x\nresources: {cpus: -1}", "resources.cpus: "),
        ("run: x\nresources: {cpus: 0}", "resources.cpus: 0 is not more than 0"),
        ("run: x\nresources: {memory: [1]}", "resources.memory: [1] is not an amount of memory"),
        ("run: x\nresources: {accelerators: 'A100:'}", "resources.accelerators: 'A100:' is not an"),
        ("run: x\nresources: {accelerators: [A100, 0]}", "resources.accelerators[1]: 0 is not an"),
        ("run: x\nresources: {accelerators: []}", "resources.accelerators: is empty"),
        ("run: x\nresources: {ports: [80, 70000]}", "resources.ports[1]: 70000 is not a port"),
        ("run: x\nresources: {ports: 1-2000}", "resources.ports: '1-2000' is more than 100 ports"),
        (
            "run: x\nresources: {use_spot: maybe}",
            "resources.use_spot: 'maybe' is not true or false",
        ),
        ("run: x\nresources: {labels: {'a b': c}}", "resources.labels.a b: "),
        ("run: x\nresources: {labels: {a: 'b,username=c'}}", "resources.labels.a: "),
        ("run: x\nresources: {image_id: {us-east-1: ami}}", "resources.image_id: "),
        ("run: x\nnum_nodes: 0", "num_nodes: 0 is not a whole number"),
        ("run: x\nnum_nodes: two", "num_nodes: 'two' is not a whole number"),
        ("run: x\nenvs: {TOKEN: null}", "envs.TOKEN: has no value"),
        ("run: x\nenvs: {'A=B': c}", "envs.A=B: "),
        ("run: x\nenvs: {A: [b]}", "envs.A: ['b'] is not text"),
        ("run: x\nworkdir: {url: https://x}", "workdir: a repository cannot be cloned"),
        ("run: x\nfile_mounts: {/d: 's3://b'}", "file_mounts./d: only local files"),
        ("run: x\nfile_mounts: {/d: {source: 's3://b'}}", "file_mounts./d: only local files"),
        ("run: x\nfile_mounts: {d: x}", "file_mounts.d: the target is not absolute"),
        ("run: x\nvolumes: {data: v}", "volumes.data: the path is not absolute"),
        ("run: x\nvolumes: {/data: 3}", "volumes./data: 3 is not the name of a volume"),
    ],
)
def test_a_mistake_is_named_with_its_path(yaml: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parsed(yaml)
    assert caught.value.message.startswith(message)


def test_a_mistyped_field_is_answered_with_the_right_one() -> None:
    with pytest.raises(InputError) as caught:
        parsed("run: x\nresources: {acelerators: 1}")
    assert caught.value.hint == "did you mean resources.accelerators?"


def test_all_mistakes_are_told_at_once() -> None:
    yaml = (
        "name: [x]\nnum_node: 2\nresources: {cpus: many, ports: 0}\nconfig: {kubernetes: 3}\nrun: x"
    )
    with pytest.raises(Mistakes) as caught:
        parsed(yaml)
    assert [problem.path for problem in caught.value.problems] == [
        "num_node",
        "name",
        "resources.cpus",
        "resources.ports",
        "config.kubernetes",
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=5,
)
FIELDS = st.sampled_from(["name", "num_nodes", "envs", "secrets", "volumes", "setup", "resources"])
RESOURCES = st.sampled_from(
    ["cpus", "memory", "accelerators", "ports", "image_id", "labels", "any_of", "disk_size"]
)


@given(
    st.dictionaries(FIELDS, VALUES),
    st.none() | st.dictionaries(RESOURCES, VALUES),
)
def test_any_document_is_a_task_or_a_sentence(
    document: dict[str, Any], resources: dict[str, Any] | None
) -> None:
    whole = document | {"run": "x"} | ({} if resources is None else {"resources": resources})
    try:
        task = parse_task(whole)
    except InputError:
        return
    assert task.choices


def test_variables_are_put_where_skypilot_puts_them() -> None:
    task = parsed("""
        run: echo ${SIZE}
        envs: {SIZE: 7, NAME: data, DIR: ./code}
        workdir: $DIR/${NAME}
        file_mounts: {"~/llama-${SIZE}b": "${DIR}/$UNKNOWN/$NAMES"}
        volumes: {"/mnt/$NAME": "vol-${NAME}"}
        service: {readiness_probe: /$NAME}
    """)
    assert task.run == "echo ${SIZE}"
    assert [(each.source, each.target) for each in task.uploads] == [
        ("./code/data", "~/sky_workdir"),
        ("./code/$UNKNOWN/$NAMES", "~/llama-7b"),
    ]
    assert task.volumes == {"/mnt/data": "vol-data"}
    assert task.ignored == ("service",)


def test_what_a_task_recovers_from_is_read() -> None:
    yaml = "run: x\nresources: {job_recovery: {strategy: FAILOVER, max_restarts_on_errors: 3, "
    task = parsed(yaml + "recover_on_exit_codes: [34, 33]}}")
    assert task.choices[0].recovery == Recovery(3, (33, 34))
    assert task.ignored == ("resources.job_recovery.strategy",)
    assert parsed("run: x\nresources: {job_recovery: FAILOVER}").choices[0].recovery == Recovery()
    with pytest.raises(InputError, match="256 is not an exit code from 0 to 255"):
        parsed("run: x\nresources: {job_recovery: {recover_on_exit_codes: 256}}")
