"""Scripts on a node's host, in the host's own view of its files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from kvestigate.client.streams import Completed
from kvestigate.errors import KvestigateError
from kvestigate.node_access.remote import Remote
from kvestigate.workspace import fence
from kvestigate.workspace.fence import Fencing
from kvestigate.workspace.marker import Marker

T = TypeVar("T")

_TOGETHER = 32

# The pod may have mounted the host's root without its later mounts, and what it mounts itself the
# host may not see: the first process of the host has the view that counts. The pod's variables
# mean nothing there.
_ENTER = """\
set -- env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
HOME=/root USER=root LOGNAME=root LANG=C.UTF-8 "$@"
if [ / -ef /proc/1/root ] && command -v nsenter >/dev/null 2>&1; then
  set -- nsenter --target 1 --mount -- "$@"
fi
exec "$@"
"""

# What stays counts as the pod's otherwise: it would end with the pod, and its files in memory
# would be held against the pod's limit.
_LEAVE_POD = """\
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  { mkdir -p /sys/fs/cgroup/kvestigate-workspaces &&
    echo $$ >/sys/fs/cgroup/kvestigate-workspaces/cgroup.procs; } 2>/dev/null || :
fi
"""

SECONDS = 120.0
"""How long a script may take, unless it says otherwise."""


def looking(host: Remote) -> Remote:
    """The host for whoever only looks."""
    return host.through("sh", "-c", _ENTER, "enter")


def staying(host: Remote) -> Remote:
    """The host for whatever leaves files or processes there."""
    return host.through("sh", "-c", _LEAVE_POD + _ENTER, "enter")


def inside(host: Remote, marker: Marker) -> Remote:
    """The host as the files of a workspace are read and written: within its fence."""
    spec = marker.workspace
    if marker.fencing is Fencing.NONE:
        return staying(host)
    wrapper = fence.within(marker.fencing, spec.root, spec.path, marker.uid)
    return staying(host).through(*wrapper)


async def lacks(host: Remote) -> tuple[str, ...]:
    """What a host lacks for a full fence."""
    said = await perform(looking(host), fence.PROBE)
    return tuple(line.strip() for line in said.splitlines() if line.strip())


async def perform(remote: Remote, script: str, *args: str, timeout: float = SECONDS) -> str:
    """What the script prints. Its last complaint is the error if it fails."""
    done = await attempt(remote, script, *args, timeout=timeout)
    if done.exit_code:
        raise KvestigateError(f"{remote.name}: {complaint(done)}")
    return done.stdout.decode("utf-8", "surrogateescape")


async def attempt(remote: Remote, script: str, *args: str, timeout: float = SECONDS) -> Completed:
    """Run a script that ends at its first failure, whatever becomes of it."""
    text = script.encode("utf-8", "surrogateescape")
    return await remote.run(("sh", "-eu", "-s", "--", *args), stdin=text, timeout=timeout)


def legible(text: str) -> str:
    """Text that can be written anywhere: bytes that are no UTF-8 are replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def complaint(done: Completed) -> str:
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"a script ended with {done.exit_code} and did not say why"


async def ask_each(
    hosts: Mapping[str, Remote], ask: Callable[[Remote], Awaitable[T]]
) -> dict[str, T | KvestigateError]:
    """What each host says, or why it does not; a few at a time."""
    room = asyncio.Semaphore(_TOGETHER)

    async def one(host: Remote) -> T | KvestigateError:
        async with room:
            try:
                return await ask(host)
            except KvestigateError as error:
                return error

    told = await asyncio.gather(*map(one, hosts.values()))
    return dict(zip(hosts, told, strict=True))
