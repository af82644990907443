"""What a well-formed App can still have wrong, field by field. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from kvestigate.app.spec import API_VERSION, AppSpec, ConfigFile, K8sPart, Port
from kvestigate.errors import InputError
from kvestigate.kube import quantities
from kvestigate.kube.documents import Problem, shown, suggestion
from kvestigate.kube.names import (
    config_key_problems,
    env_name_problems,
    label_1035_problems,
    label_problems,
    label_value_problems,
    port_name_problems,
    qualified_name_problems,
    subdomain_problems,
)
from kvestigate.workspace.names import check_root, check_subdir
from kvestigate.workspace.sizes import parse_size

LONGEST_NAME = 48
"""A label's 63, less what the names of Jobs and their pods end with."""
RESERVED_PREFIX = "kvestigate.dev/"
_MOST = 10_000
"""Replicas and shards: more is a slip of the finger."""
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_OPERATORS = ("Equal", "Exists")
_EFFECTS = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")


def problems(spec: AppSpec) -> list[Problem]:
    """All that can be told without knowing the target."""
    return [
        *_metadata(spec),
        *_program(spec),
        *_resources(spec),
        *_workspace(spec),
        *_k8s(spec.k8s),
        *_files(spec.shared_config_files),
        *_distributed(spec),
    ]


def _named(
    path: str, value: str, check: Callable[[str], list[str]], hint: str = ""
) -> Iterator[Problem]:
    for problem in check(value)[:1]:
        yield Problem(path, f"{shown(value)}: {problem}", hint)


def _within(path: str, value: int, least: int, most: int) -> Iterator[Problem]:
    if not least <= value <= most:
        yield Problem(path, f"{value} is not from {least} to {most}")


def _one_of(path: str, value: str, known: tuple[str, ...]) -> Iterator[Problem]:
    if value not in known:
        words = [word for word in known if word]
        near = {word.lower(): word for word in words}.get(value.lower())
        hint = f"did you mean {near}?" if near else suggestion(value, words)
        yield Problem(path, f"{shown(value)} is none of {', '.join(words)}", hint)


def _unique(path: str, values: Iterable[object], what: str) -> Iterator[Problem]:
    for value, count in Counter(values).items():
        if count > 1:
            yield Problem(path, f"{what} {value} is given {count} times", "leave one")


def _metadata(spec: AppSpec) -> Iterator[Problem]:
    if spec.api_version != API_VERSION:
        message = f"{shown(spec.api_version)} is not known"
        yield Problem("api_version", message, f"write {API_VERSION}, or leave it out")
    metadata = spec.metadata
    named = list(_named("metadata.name", metadata.name, label_1035_problems))
    if not named and len(metadata.name) > LONGEST_NAME:
        message = f"{shown(metadata.name)} has {len(metadata.name)} characters"
        named = [Problem("metadata.name", message, f"{LONGEST_NAME} is the most")]
    yield from named
    yield from _named("metadata.namespace", metadata.namespace, label_problems)
    for key, value in metadata.labels.items():
        yield from _named(f"metadata.labels.{key}", key, qualified_name_problems)
        yield from _named(f"metadata.labels.{key}", value, label_value_problems)
    for key in metadata.annotations:
        yield from _named(f"metadata.annotations.{key}", key, qualified_name_problems)
    for part, given in (("labels", metadata.labels), ("annotations", metadata.annotations)):
        for key in given:
            if key.startswith((RESERVED_PREFIX, "app.kubernetes.io/")):
                yield Problem(f"metadata.{part}.{key}", "kvestigate sets this one itself")


def _program(spec: AppSpec) -> Iterator[Problem]:
    for index, word in enumerate(spec.command):
        if "\0" in word:
            yield Problem(f"command[{index}]", "holds a NUL character")
    if spec.command and not spec.command[0]:
        yield Problem("command[0]", "the program's name is empty")
    for name, value in spec.env.items():
        yield from _named(f"env.{name}", name, env_name_problems)
        if "\0" in value:
            yield Problem(f"env.{name}", "holds a NUL character")


def _passed(path: str, check: Callable[[], object]) -> Iterator[Problem]:
    """What a check that raises has to say."""
    try:
        check()
    except InputError as error:
        message = error.message.removeprefix(f"{error.where}: ")
        yield Problem(path, message, error.hint or "")


def _quantity(path: str, text: str) -> Iterator[Problem]:
    if not text:
        return
    wrong = list(_passed(path, lambda: quantities.parse(text)))
    if not wrong and quantities.parse(text).nanos <= 0:
        wrong = [Problem(path, f"{shown(text)} is not more than 0", "leave it out for none")]
    yield from wrong


def _resources(spec: AppSpec) -> Iterator[Problem]:
    yield from _within("resources.gpu", spec.resources.gpu, 0, 1024)
    yield from _quantity("resources.cpu", spec.resources.cpu)
    yield from _quantity("resources.memory", spec.resources.memory)


def _workspace(spec: AppSpec) -> Iterator[Problem]:
    part = spec.workspace
    if part.node:
        yield from _named("workspace.node", part.node, subdomain_problems)
    if part.root:
        yield from _passed("workspace.root", lambda: check_root(part.root))
    size, directory = part.storage.tmpfs_size, part.storage.hybrid_tmpfs_path
    if size:
        yield from _passed("workspace.storage.tmpfs_size", lambda: parse_size(size))
    if directory:
        path = "workspace.storage.hybrid_tmpfs_path"
        yield from _passed(path, lambda: check_subdir(directory))
    for index, number in enumerate(part.gpu_indices):
        yield from _within(f"workspace.gpu_indices[{index}]", number, 0, 1023)
    yield from _unique("workspace.gpu_indices", part.gpu_indices, "GPU")
    if part.gpu_indices and spec.resources.gpu not in (0, len(part.gpu_indices)):
        message = f"{len(part.gpu_indices)} GPUs, and resources.gpu says {spec.resources.gpu}"
        yield Problem("workspace.gpu_indices", message, "make them agree, or leave one out")


def _k8s(part: K8sPart) -> Iterator[Problem]:
    if any(map(str.isspace, part.image)):
        yield Problem("k8s.image", f"{shown(part.image)} is no image", "write python:3.13-slim")
    yield from _within("k8s.replicas", part.replicas, 0, _MOST)
    for index, port in enumerate(part.ports):
        yield from _port(f"k8s.ports[{index}]", port)
    numbers = ((port.port, port.protocol) for port in part.ports)
    yield from _unique("k8s.ports", (f"{port}/{protocol}" for port, protocol in numbers), "port")
    yield from _unique("k8s.ports", (port.name for port in part.ports if port.name), "name")
    if part.health_path:
        if not part.health_path.startswith("/"):
            yield Problem("k8s.health_path", f"{shown(part.health_path)} does not begin with /")
        if not part.ports:
            yield Problem("k8s.health_path", "there is no port to ask", "add k8s.ports")
    yield from _placement(part)
    for index, secret in enumerate(part.env_from_secrets):
        yield from _named(f"k8s.env_from_secrets[{index}]", secret, subdomain_problems)
    yield from _volumes(part.volumes)


def _port(path: str, port: Port) -> Iterator[Problem]:
    yield from _within(f"{path}.port", port.port, 1, 65_535)
    yield from _within(f"{path}.target_port", port.target_port, 0, 65_535)
    yield from _one_of(f"{path}.protocol", port.protocol, _PROTOCOLS)
    if port.name:
        yield from _named(f"{path}.name", port.name, port_name_problems)


def _placement(part: K8sPart) -> Iterator[Problem]:
    for key, value in part.node_selector.items():
        yield from _named(f"k8s.node_selector.{key}", key, qualified_name_problems)
        yield from _named(f"k8s.node_selector.{key}", value, label_value_problems)
    for index, toleration in enumerate(part.tolerations):
        path = f"k8s.tolerations[{index}]"
        yield from _one_of(f"{path}.operator", toleration.operator, _OPERATORS)
        yield from _one_of(f"{path}.effect", toleration.effect, _EFFECTS)
        if toleration.key:
            yield from _named(f"{path}.key", toleration.key, qualified_name_problems)
        elif toleration.operator == "Equal":
            yield Problem(f"{path}.key", "is missing", "write operator: Exists to tolerate all")
        if toleration.operator == "Exists" and toleration.value:
            yield Problem(f"{path}.value", "Exists takes no value", "write operator: Equal")
    if part.service_account:
        yield from _named("k8s.service_account", part.service_account, subdomain_problems)


def _volumes(volumes: Mapping[str, str]) -> Iterator[Problem]:
    for path, claim in volumes.items():
        if not path.startswith("/") or ":" in path:
            yield Problem(f"k8s.volumes.{path}", "the path is not absolute, or has a colon")
        yield from _named(f"k8s.volumes.{path}", claim, subdomain_problems)


def file_name(file: ConfigFile) -> str:
    """What the program finds it as."""
    return file.name or file.local.replace("\\", "/").rpartition("/")[2]


def _files(files: tuple[ConfigFile, ...]) -> Iterator[Problem]:
    for index, file in enumerate(files):
        path = f"shared_config_files[{index}]"
        if bool(file.local) == (file.content is not None):
            yield Problem(path, "one of local and content is needed", "give a path, or the text")
        elif not file_name(file):
            yield Problem(f"{path}.name", "is needed", "name: settings.toml")
        else:
            yield from _named(f"{path}.name", file_name(file), config_key_problems)
    yield from _unique("shared_config_files", map(file_name, files), "file")


def _distributed(spec: AppSpec) -> Iterator[Problem]:
    if spec.distributed is None:
        return
    yield from _within("distributed.shards", spec.distributed.shards, 1, _MOST)
    for index, node in enumerate(spec.distributed.nodes):
        yield from _named(f"distributed.nodes[{index}]", node, subdomain_problems)
    yield from _unique("distributed.nodes", spec.distributed.nodes, "node")
    if spec.k8s.replicas != 1:
        message = f"{spec.k8s.replicas}, and the shards are the replicas"
        yield Problem("k8s.replicas", message, "leave it out")
