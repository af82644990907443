"""What a cyberspace allows, said in the JSON schemas of its operations. Pure.

The policy decides (`policy.py`). Here a model reads beforehand what would be refused: which
nodes there are, how workspaces are called, which modes and how much of everything it may ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvestigate.cybernet.parameters import Rules
from kvestigate.cybernet.spec import Cyberspace, HostConstraintsSpec, WorkspaceConstraintsSpec
from kvestigate.operation import RunRules
from kvestigate.render.human import size
from kvestigate.workspace.limits import Limits
from kvestigate.workspace.options import GpusOptions, StatusOptions
from kvestigate.workspace.spec import GpuSpec, StorageSpec, WorkspaceSpec

MOST_NAMED = 64
"""Nodes that are listed in a schema; of more, only their number is said."""
_ANY_NAME = "^[a-z0-9][a-z0-9._-]{0,62}$"


def rules_of(space: Cyberspace) -> Rules:
    """What the fields of each input may be here."""
    nodes = _nodes(space.hosts)
    return {
        WorkspaceSpec: {"name": _name(space.workspace), "node": nodes},
        StatusOptions: {"nodes": {"items": {"type": "string", **nodes}}},
        GpusOptions: {"nodes": {"items": {"type": "string", **nodes}}},
        StorageSpec: _storage(space.workspace),
        GpuSpec: _gpus(space.workspace),
        Limits: _limits(space.runs),
    }


def _nodes(hosts: HostConstraintsSpec) -> Mapping[str, Any]:
    names = hosts.allow_names
    if names is None:
        return {}
    if len(names) <= MOST_NAMED:
        return {"enum": list(names)}
    return {"note": f"{len(names)} nodes are allowed; cyberspace.info names those that are free."}


def _name(rules: WorkspaceConstraintsSpec) -> Mapping[str, Any]:
    return {"pattern": rules.name_pattern or _ANY_NAME}


def _storage(rules: WorkspaceConstraintsSpec) -> Mapping[str, Mapping[str, Any]]:
    most = rules.max_tmpfs_size
    return {
        "mode": {"enum": list(rules.allowed_modes)},
        "tmpfs_size": {} if most is None else {"note": f"At most {size(most)}."},
    }


def _gpus(rules: WorkspaceConstraintsSpec) -> Mapping[str, Mapping[str, Any]]:
    most = rules.max_gpu
    reserve = {"minimum": 0} if most is None else {"minimum": 0, "maximum": most}
    return {
        "reserve": reserve,
        "indices": {} if most is None else {"maxItems": most},
        "cordon_node": {"const": False} if rules.cordon_node_forbidden else {},
    }


def _limits(runs: RunRules) -> Mapping[str, Mapping[str, Any]]:
    return {
        name: {"note": f"At most {most}, which is also the default."} if most else {}
        for name, most in (("cpu", runs.cpu), ("memory", runs.memory))
    }
