"""Apps to test with, and a place of their own for what is recorded of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from kvestigate.app.check import LONGEST_NAME
from kvestigate.app.load import parse_app
from kvestigate.app.spec import (
    AppSpec,
    ConfigFile,
    Distributed,
    ExposeMode,
    K8sPart,
    Lifecycle,
    Metadata,
    Port,
    Resources,
    RestartPolicy,
    Storage,
    Target,
    Toleration,
    WorkloadKind,
    WorkspacePart,
)
from kvestigate.render.encode import to_yaml
from kvestigate.workspace.spec import SourceSpec, StorageMode

EXAMPLES = Path(__file__).parents[2] / "examples" / "apps"


def app(**fields: Any) -> AppSpec:
    """The App with these fields, as if they stood in a file; it has a name and an image."""
    document = {"metadata": {"name": "web"}, "k8s": {}, **fields}
    document["k8s"] = {"image": "web:1", **document["k8s"]}
    return parse_app(to_yaml({"app": document}))


NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True).filter(
    lambda name: len(name) <= LONGEST_NAME
)
WORDS = st.text(st.characters(exclude_characters="\0", codec="utf-8"))
PATHS = st.from_regex(r"(/[a-z0-9]{1,8}){1,3}", fullmatch=True)
LABELS = st.dictionaries(NAMES, NAMES, max_size=3)
VARIABLES = st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,9}", fullmatch=True), WORDS)
FILES = st.lists(NAMES, unique=True, max_size=3).flatmap(
    lambda names: st.tuples(*(st.builds(ConfigFile, st.just(""), st.just(n), WORDS) for n in names))
)
SIZES = st.sampled_from(["", "4", "500m", "1.5", "64Gi", "1e3"])
PORTS = st.lists(st.integers(1, 65_535), unique=True, max_size=3).flatmap(
    lambda numbers: st.tuples(
        *(
            st.builds(
                Port,
                st.just(number),
                st.just(""),
                st.integers(0, 65_535),
                st.sampled_from(["TCP", "UDP"]),
            )
            for number in numbers
        )
    )
)
SPECS = st.builds(
    AppSpec,
    metadata=st.builds(Metadata, NAMES, NAMES, LABELS, st.dictionaries(NAMES, WORDS)),
    target=st.sampled_from(Target),
    command=st.lists(WORDS.filter(bool), max_size=4).map(tuple),
    env=VARIABLES,
    lifecycle=st.sampled_from(Lifecycle),
    restart=st.none() | st.sampled_from(RestartPolicy),
    resources=st.builds(Resources, st.integers(0, 1024), SIZES, SIZES),
    workspace=st.builds(
        WorkspacePart,
        node=st.just("") | NAMES,
        root=st.just("") | PATHS.filter(lambda it: it.split("/")[1] not in ("proc", "sys", "dev")),
        storage=st.builds(
            Storage,
            st.none() | st.sampled_from(StorageMode),
            st.sampled_from(["", "64G", "500Gi"]),
            st.sampled_from(["", "datasets"]),
        ),
        cordon_node=st.booleans(),
        sources=st.lists(
            st.builds(SourceSpec, WORDS.filter(bool), st.just("code"), st.just(("*.pyc",)))
        ).map(tuple),
    ),
    k8s=st.builds(
        K8sPart,
        image=st.sampled_from(["web:1", "registry.example.org/web@sha256:abc"]),
        kind=st.none() | st.sampled_from(WorkloadKind),
        ports=PORTS,
        expose=st.sampled_from(ExposeMode),
        node_selector=LABELS,
        tolerations=st.lists(st.builds(Toleration, NAMES, st.just("Exists"))).map(tuple),
        service_account=st.just("") | NAMES,
        env_from_secrets=st.lists(NAMES, max_size=2).map(tuple),
        volumes=st.dictionaries(PATHS, NAMES, max_size=2),
    ),
    shared_config_files=FILES,
    distributed=st.none() | st.builds(Distributed, st.integers(1, 9), st.just(())),
)


FEW = settings(max_examples=25)
"""An App has many fields; drawing them takes longer than what is tested."""


@pytest.fixture(autouse=True)
def status_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "recorded"
    monkeypatch.setattr("kvestigate.app.status.APP_STATUS_DIR", directory)
    return directory
