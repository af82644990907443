"""As whom a container's command runs, and with which variables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kvestigate.cluster.node.hosts.interface import Launch

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def env_words(env: Mapping[str, str]) -> list[str]:
    """The words before a command that give it the variables which shells do not pass on."""
    words = [f"{name}={value}" for name, value in env.items() if not _NAME.fullmatch(name)]
    return ["env", "--", *words] if words else []


def become(launch: Launch) -> list[str]:
    """The words before a command that make its user the container's; none if that is root."""
    groups = ",".join(map(str, launch.groups))
    if launch.user is None and launch.group is None:
        return ["setpriv", f"--groups={groups}", "--"] if groups else []
    user, group = launch.user or 0, launch.group or 0
    others = f"--groups={groups}" if groups else "--clear-groups"
    return ["setpriv", f"--reuid={user}", f"--regid={group}", others, "--"]


def identity_fields(launch: Launch) -> list[str]:
    """The fields of the spec that ask for another user or group."""
    fields = {
        "runAsUser": bool(launch.user),
        "runAsGroup": bool(launch.group),
        "supplementalGroups and fsGroup": bool(launch.groups),
    }
    return [name for name, given in fields.items() if given]
