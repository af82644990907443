"""What an App compiles to, as text that other programs take. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.app.compile import compile_to_k8s
from kvestigate.app.launch import CompiledWorkspace, compile_to_hosts
from kvestigate.app.spec import AppSpec, Target
from kvestigate.app.target import pick_target
from kvestigate.kube.documents import written
from kvestigate.render.encode import to_json, to_yaml


def as_yaml(spec: AppSpec) -> str:
    """A document an object, or a workspace."""
    return "---\n".join(map(to_yaml, documents(spec)))


def as_json(spec: AppSpec) -> str:
    """One value: a Kubernetes list, or a list of workspaces."""
    found = documents(spec)
    if pick_target(spec).target is Target.K8S:
        return to_json({"apiVersion": "v1", "kind": "List", "items": found}).decode()
    return to_json(found).decode()


def documents(spec: AppSpec) -> list[dict[str, Any]]:
    if pick_target(spec).target is Target.K8S:
        return compile_to_k8s(spec)
    return [_host_document(shard) for shard in compile_to_hosts(spec).shards]


def _host_document(compiled: CompiledWorkspace) -> dict[str, Any]:
    workspace = compiled.workspace
    always = {"name": workspace.name, "node": workspace.node, "root": workspace.root}
    return {"workspace": always | written(workspace), "launch": written(compiled.launch)}
