"""As whom a container's command runs."""

from __future__ import annotations

from kvestigate.node.hosts.interface import Launch


def become(launch: Launch) -> list[str]:
    """The words before a command that make its user the container's; none if that is root."""
    groups = ",".join(map(str, launch.groups))
    if launch.user is None and launch.group is None:
        return ["setpriv", f"--groups={groups}", "--"] if groups else []
    user, group = launch.user or 0, launch.group or 0
    others = f"--groups={groups}" if groups else "--clear-groups"
    return ["setpriv", f"--reuid={user}", f"--regid={group}", others, "--"]


def asked(launch: Launch) -> list[str]:
    """The fields of a spec by which the command would be somebody else."""
    fields = {
        "runAsUser": bool(launch.user),
        "runAsGroup": bool(launch.group),
        "supplementalGroups and fsGroup": bool(launch.groups),
    }
    return [name for name, given in fields.items() if given]
