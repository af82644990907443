"""SkyPilot tasks and volumes on any Kubernetes; the cluster's API is the only state.

What has to do with values alone is pure and says so in its first line; `manage` does what a user
asks in this process, `remote` asks the server of `api` to do so. The functions of `sdk` can be
had from here.
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
