"""Apps: one description of a program that becomes a workspace on a host, or pods.

`spec`, `check`, `target`, `launch`, `compile`, `digest` and `present` are pure; `load`, `status`
and `diff` read and write files of this machine; `pods`, `shards`, `hosts` and `manage` change
clusters. The names in `__all__` can be had from here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvestigate.app.compile import compile_to_k8s
    from kvestigate.app.diff import AppDiff, DriftStatus, diff_app
    from kvestigate.app.digest import spec_hash
    from kvestigate.app.launch import (
        DistributedPlan,
        LaunchPlan,
        compile_to_distributed,
        compile_to_workspace,
    )
    from kvestigate.app.load import (
        AppLoadError,
        dump_app,
        load_app,
        load_app_friendly,
        resolve_shared_config_files,
    )
    from kvestigate.app.present import format_apply_results, format_manifest_summary
    from kvestigate.app.spec import (
        AppPhase,
        AppSpec,
        ExposeMode,
        Lifecycle,
        RestartPolicy,
        Target,
        WorkloadKind,
    )
    from kvestigate.app.status import (
        APP_STATUS_DIR,
        RecordedStatus,
        read_status,
        status_path_for,
        write_status,
    )
    from kvestigate.app.target import ResolvedTarget, pick_target

__all__ = [
    "APP_STATUS_DIR",
    "AppDiff",
    "AppLoadError",
    "AppPhase",
    "AppSpec",
    "DistributedPlan",
    "DriftStatus",
    "ExposeMode",
    "LaunchPlan",
    "Lifecycle",
    "RecordedStatus",
    "ResolvedTarget",
    "RestartPolicy",
    "Target",
    "WorkloadKind",
    "compile_to_distributed",
    "compile_to_k8s",
    "compile_to_workspace",
    "diff_app",
    "dump_app",
    "format_apply_results",
    "format_manifest_summary",
    "load_app",
    "load_app_friendly",
    "pick_target",
    "read_status",
    "resolve_shared_config_files",
    "spec_hash",
    "status_path_for",
    "write_status",
]

_HOME = {
    "compile": ("compile_to_k8s",),
    "diff": ("AppDiff", "DriftStatus", "diff_app"),
    "digest": ("spec_hash",),
    "launch": ("DistributedPlan", "LaunchPlan", "compile_to_distributed", "compile_to_workspace"),
    "load": (
        "AppLoadError",
        "dump_app",
        "load_app",
        "load_app_friendly",
        "resolve_shared_config_files",
    ),
    "present": ("format_apply_results", "format_manifest_summary"),
    "spec": (
        "AppPhase",
        "AppSpec",
        "ExposeMode",
        "Lifecycle",
        "RestartPolicy",
        "Target",
        "WorkloadKind",
    ),
    "status": (
        "APP_STATUS_DIR",
        "RecordedStatus",
        "read_status",
        "status_path_for",
        "write_status",
    ),
    "target": ("ResolvedTarget", "pick_target"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    # Commands that need one module of this package should not load them all.
    if name in _MODULE:
        return getattr(importlib.import_module(f"{__name__}.{_MODULE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
