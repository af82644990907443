"""SkyPilot tasks and volumes on any Kubernetes; the cluster's API is the only state.

`sdk` and `operations` run the launcher for programs, `server` and `remote` run it on another
machine. `in_process` is the launcher itself: it parses and compiles a task (`tasks`, pure), checks
the user's quota (`accounts`), uploads local files (`files`), mounts `volumes`, and starts and
follows the task (`running`). The functions of `sdk` are names of this package, too.
"""

from __future__ import annotations

from typing import Any

SDK = frozenset(
    (
        "launcher",
        "submit",
        "list",
        "queue",
        "history",
        "status",
        "why",
        "endpoint",
        "stop",
        "cancel",
        "stop_all",
        "logs",
        "exec",
        "create_volume",
        "list_volumes",
        "volume_status",
        "resize_volume",
        "delete_volume",
    )
)


def __getattr__(name: str) -> Any:
    # Commands that need one module of this package should not load them all.
    if name in SDK:
        from kvestigate.jobs import sdk

        return getattr(sdk, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
