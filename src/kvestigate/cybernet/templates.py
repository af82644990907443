"""Cyberspaces to start from: what `cybernet init` writes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvestigate.cybernet.spec import API_VERSION, KIND

_LOOK = ("report.run",)
_WATCH = ("report.list", "report.run", "namespaces", "pods", "plan")
_WORKSPACES = (
    "workspace.status",
    "workspace.gpus",
    "workspace.diff",
    "workspace.create",
    "workspace.sync",
    "workspace.put_text",
    "workspace.get_text",
    "workspace.list_files",
    "workspace.edit",
    "workspace.run",
    "workspace.ps",
    "workspace.logs",
    "workspace.fetch",
    "workspace.kill",
    "workspace.destroy",
)


@dataclass(frozen=True, slots=True)
class Template:
    name: str
    summary: str
    allow: tuple[str, ...]
    constraints: dict[str, Any]
    quotas: dict[str, Any]


TEMPLATES: tuple[Template, ...] = (
    Template(
        "distributed-cpu",
        "Jobs of many shards on many nodes, in memory and without GPUs.",
        (*_LOOK, *_WORKSPACES),
        {
            "hosts": {"require": {"min_free_cpu_cores": 1, "min_free_memory": "1Gi"}},
            "workspace": {
                "name_pattern": "^job-[a-z0-9][a-z0-9-]{0,40}$",
                "storage": {"allowed_modes": ["all-tmpfs"], "max_tmpfs_size": "1Ti"},
                "gpu": {"max_per_workspace": 0, "cordon_node_forbidden": True},
            },
        },
        {
            "max_active_workspaces_per_identity": 16,
            "max_total_active_workspaces": 32,
            "max_total_active_gpu": 0,
            "max_total_active_memory": "16Ti",
        },
    ),
    Template(
        "research-agents",
        "A few workspaces with GPUs for each agent.",
        (*_LOOK, *_WORKSPACES),
        {
            "hosts": {"require": {"min_free_gpu": 1}},
            "workspace": {
                "name_pattern": "^agent-[a-z0-9][a-z0-9-]{0,30}$",
                "storage": {"allowed_modes": ["all-tmpfs", "hybrid"], "max_tmpfs_size": "500Gi"},
                "gpu": {"max_per_workspace": 8, "cordon_node_forbidden": True},
            },
        },
        {
            "max_active_workspaces_per_identity": 3,
            "max_total_active_workspaces": 10,
            "max_total_active_gpu": 32,
            "max_total_active_memory": "5Ti",
        },
    ),
    Template(
        "observability",
        "Look at the cluster and change nothing.",
        _WATCH,
        {},
        {},
    ),
    Template("blank", "Nothing is allowed until you list it.", (), {}, {}),
)


def cyberspace(
    template: Template, name: str, address: str, identity: str, digest: str, audit: str
) -> dict[str, Any]:
    """The document of a new cyberspace."""
    found: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "description": template.summary},
        "listen": {"http": {"address": address}, "mcp": {"stdio": True}},
        "auth": {"tokens": [{"identity": identity, "sha256": digest}]},
        "operations": {"allow": list(template.allow)},
    }
    if template.constraints:
        found["constraints"] = template.constraints
    if template.quotas:
        found["quotas"] = template.quotas
    if any(name.startswith("workspace.") for name in template.allow):
        found["runs"] = {"isolation": "required", "processes": 4096}
        found["leases"] = {"ttl": "24h"}
    found["audit"] = {"path": audit, "include_denials": True}
    return found
