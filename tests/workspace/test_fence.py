"""Which devices of a host are in the world of a run. Files stand in for the devices."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kvestigate.workspace.fence import FIRST_USER, TEMPORARY, Fencing, within

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")

INSTANCES = {
    "config": 1,
    "monitor": 2,
    "gpu0/gi1/access": 3,
    "gpu0/gi1/ci0/access": 4,
    "gpu1/gi2/access": 12,
    "gpu1/gi2/ci0/access": 13,
    "gpu10/gi1/access": 120,
}
GPUS = {"GPU-a": 0, "GPU-b": 1, "GPU-c": 10, "GPU-d": 3}
ALWAYS = {"fd", "full", "null", "ptmx", "pts", "random", "shm", "tty", "urandom", "zero"}
COMMON = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"}
FILES = [
    *COMMON,
    "nvidia-modeset",
    *(f"nvidia{minor}" for minor in GPUS.values()),
    *(f"nvidia-caps/nvidia-cap{number}" for number in INSTANCES.values()),
    "nvidia-caps-imex-channels/channel0",
    "nvidia-nvswitch0",
    "infiniband/rdma_cm",
    "infiniband/uverbs0",
    "infiniband/uverbs1",
    "infiniband/umad0",
    "infiniband/issm0",
    "mem",
    "kmsg",
    "sda",
    "kvm",
]


def host(home: Path) -> str:
    """A script that makes a host with these devices, seen by nobody else."""
    told = home / "told"
    for uuid, minor in GPUS.items():
        place = told / "nvidia" / "gpus" / f"0000:{minor:02x}:00.0"
        place.mkdir(parents=True)
        lines = f"Model: \t\t H100\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n"
        (place / "information").write_text(lines)
    (told / "nvidia-caps").mkdir()
    listed = "".join(f"{name} {number}\n" for name, number in INSTANCES.items())
    (told / "nvidia-caps" / "mig-minors").write_text(listed)
    made = "".join(f"mkdir -p $(dirname /dev/{it})\n: >/dev/{it}\n" for it in FILES)
    basic = "null zero full random urandom tty"
    return f"""
mount --bind {told} /proc/driver
mkdir {home}/dev
mount -t tmpfs devices {home}/dev
for each in {basic}; do
  : >{home}/dev/$each
  mount --bind /dev/$each {home}/dev/$each
done
mount --rbind {home}/dev /dev
{made}
exec "$@"
"""


def seen(home: Path, *gpus: str, infiniband: bool = False) -> set[str]:
    """The devices that a run with these GPUs finds."""
    root, path = home / "root", home / "root" / "w"
    for directory in (path / TEMPORARY, path / "code"):
        directory.mkdir(parents=True)
    fenced = within(Fencing.FULL, str(root), str(path), FIRST_USER, gpus, infiniband=infiniband)
    look = "cd /dev; find . ! -type d -o -name pts -o -name shm | sed 's|^\\./||'"
    alone = ("unshare", "--mount", "--propagation", "private", "--", "sh", "-euc", host(home))
    done = subprocess.run(
        [*alone, "host", *fenced, "sh", "-c", look], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return {name for name in done.stdout.split() if not name.startswith(("pts/", "shm/"))}


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ((), set[str]()),
        (("GPU-a",), {*COMMON, "nvidia0", "nvidia-caps/nvidia-cap3", "nvidia-caps/nvidia-cap4"}),
        (("GPU-b",), {*COMMON, "nvidia1", "nvidia-caps/nvidia-cap12", "nvidia-caps/nvidia-cap13"}),
        (("GPU-c", "GPU-d"), {*COMMON, "nvidia10", "nvidia3", "nvidia-caps/nvidia-cap120"}),
        (("GPU",), COMMON),
    ],
    ids=["none", "one", "another", "two", "no such GPU"],
)
def test_a_run_sees_its_own_gpus_and_their_instances(
    tmp_path: Path, gpus: tuple[str, ...], expected: set[str]
) -> None:
    assert seen(tmp_path, *gpus) == ALWAYS | expected


def test_a_run_sees_infiniband_only_if_the_policy_says_so(tmp_path: Path) -> None:
    devices = seen(tmp_path, infiniband=True)
    assert devices == {*ALWAYS, "infiniband/rdma_cm", "infiniband/uverbs0", "infiniband/uverbs1"}
