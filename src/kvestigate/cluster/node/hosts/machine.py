"""Facts about the machine that hosts run on."""

from __future__ import annotations

import os
import platform
import shutil
import uuid
from pathlib import Path

from kvestigate.cluster.node.hosts.interface import Facts

_SYS_ADMIN = 21
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def facts(runtime: str, directory: Path, limits: tuple[str, ...]) -> Facts:
    system = os.uname()
    return Facts(
        os_image=_os_image(),
        kernel=system.release,
        architecture=_ARCHITECTURES.get(system.machine, system.machine),
        operating_system=system.sysname.lower(),
        runtime=runtime,
        boot_id=_first_line("/proc/sys/kernel/random/boot_id") or str(uuid.uuid4()),
        machine_id=_first_line("/etc/machine-id"),
        cpu=os.cpu_count() or 1,
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        disk=shutil.disk_usage(directory).total,
        limits=limits,
    )


def can_mount() -> bool:
    """Whether this process may mount: root may have been stripped of it."""
    return may(_SYS_ADMIN)


def may(capability: int) -> bool:
    """Whether this process has a capability."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return False
    (line,) = [line for line in status.splitlines() if line.startswith("CapEff:")]
    return bool(int(line.split()[1], 16) >> capability & 1)


def _os_image() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return f"{platform.system()} {platform.release()}"


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
