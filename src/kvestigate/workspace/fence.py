"""The fence around what agents do on a host: their files and their runs. Pure.

A workspace of an agent has a user of its own. Whatever is done in it on the agent's word runs as
that user, without privileges, and in a world that holds nothing but the system, read-only, and the
workspace: so a link leads nowhere else, and no other process is there to be seen. All of it is
made with what util-linux brings.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from kvestigate.workspace.spec import LAYOUT

FIRST_USER = 1_900_000_000
"""Of the user IDs that workspaces get: above those of containers, below those that are signed."""
LAST_USER = FIRST_USER + 99_999

HOME, TEMPORARY = ".home", ".tmp"
KEPT_FOR_RUNS = ("logs", "pids")
"""Directories that the user of a workspace may read, and only we write to."""
OF_USER = (*(name for name in LAYOUT if name not in KEPT_FOR_RUNS), HOME, TEMPORARY)
"""Directories that belong to the user of a workspace."""


SHARED = "/etc/kvestigate/shared-with-agents"
"""A file of the host that names, a line each, more directories that agents may read: a store of
models, say."""


class Fencing(enum.StrEnum):
    """How far a workspace is fenced in."""

    NONE = "none"
    """Everything in it is done as root, with the host's own view."""
    USER = "user"
    """Everything is done as a user of its own, who sees what any user of the host sees."""
    FULL = "full"
    """That user sees the system, read-only, and the workspace, and only its own processes."""


# What of /etc programs need to run, to find names and to check certificates.
_ETC = (
    "alternatives ca-certificates fonts gai.conf group host.conf hostname hosts ld.so.cache "
    "ld.so.conf ld.so.conf.d localtime magic mime.types nsswitch.conf nvidia OpenCL passwd pki "
    "protocols python3 services ssl terminfo timezone vulkan"
)
_INSTANCES = "/proc/driver/nvidia-caps/mig-minors"
"""Which device of `/dev/nvidia-caps` is for which MIG instance of which GPU: `gpu0/gi1/access 12`.
Those of its own GPUs are for a run. `config` and `monitor`, which are for all GPUs, are not."""
_SYSTEM = "usr bin sbin lib lib32 lib64 libx32 opt nix"

# Begins as root in namespaces of its own: the world is put together on /run, where nothing of ours
# has to be seen any more, and becomes the root.
_WORLD = f"""\
root=$1 path=$2 uid=$3 gpus=$4 infiniband=$5 processes=$6
shift 6
world=/run
resolver=$(readlink -f /etc/resolv.conf || :)
servers=$(cat /etc/resolv.conf 2>/dev/null || :)
mount -t tmpfs -o mode=755,size=16m,nosuid,nodev fence "$world"
cd "$world"
mkdir -p etc proc sys dev tmp var old
ln -s /tmp var/tmp
for part in {_SYSTEM}; do
  if [ -L "/$part" ]; then
    ln -s "$(readlink "/$part")" "$part"
  elif [ -d "/$part" ]; then
    mkdir "$part"
    mount --rbind "/$part" "$part"
  fi
done
for part in {_ETC}; do
  if [ -d "/etc/$part" ]; then
    mkdir "etc/$part"
    mount --rbind "/etc/$part" "etc/$part"
  elif [ -f "/etc/$part" ]; then
    cp -L "/etc/$part" "etc/$part"
  fi
done
printf 'workspace:x:%s:%s::%s:/bin/sh\\n' "$uid" "$uid" "$path/{HOME}" >>etc/passwd
printf 'workspace:x:%s:\\n' "$uid" >>etc/group
printf '%s\\n' "$servers" >etc/resolv.conf
sealed() {{
  while read -r _ at _; do
    case $at in
      "$1" | "$1"/*) mount -o "remount,bind,$2" "$at" || umount -l "$at" ;;
    esac
  done </proc/self/mounts
}}
for part in {_SYSTEM} etc; do sealed "$world/$part" ro,nosuid,nodev; done
if [ -f {SHARED} ]; then
  sort {SHARED} | while read -r part; do
    [ -d "$part" ] && [ ! -e ".$part" ] || continue
    mkdir -p ".$part"
    mount --rbind "$part" ".$part"
    sealed "$world$part" ro,nosuid,nodev
  done
fi
mkdir -p ".$root"
mount -t tmpfs -o mode=755,size=64k,nosuid,nodev hidden ".$root"
mkdir ".$path"
mount --rbind "$path" ".$path"
sealed "$world$path" nosuid,nodev
mount --bind "$path/{TEMPORARY}" tmp
mount -o remount,bind,nosuid,nodev tmp
mount -t proc -o nosuid,nodev,noexec proc proc
mount --bind /sys sys
mount -o remount,bind,ro,nosuid,nodev,noexec sys
mount -t tmpfs -o mode=755,size=64k,nosuid,noexec devices dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,nosuid,noexec terminals dev/pts
mount -t tmpfs -o mode=1777,size=1g,nosuid,nodev shared dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
device() {{
  [ -e "/dev/$1" ] || return 0
  case $1 in
    */*) mkdir -p "dev/${{1%/*}}" ;;
  esac
  : >"dev/$1"
  mount --bind "/dev/$1" "dev/$1"
}}
for name in null zero full random urandom tty; do device "$name"; done
if [ -n "$gpus" ]; then
  for name in nvidiactl nvidia-uvm nvidia-uvm-tools; do device "$name"; done
fi
instances() {{
  [ -f {_INSTANCES} ] || return 0
  while read -r name number; do
    case $name in
      "gpu$1"/*) device "nvidia-caps/nvidia-cap$number" ;;
    esac
  done <{_INSTANCES}
}}
for told in /proc/driver/nvidia/gpus/*/information; do
  [ -f "$told" ] || continue
  uuid=$(sed -n 's/^GPU UUID:[[:space:]]*//p' "$told")
  case ,$gpus, in
    *,"$uuid",*)
      minor=$(sed -n 's/^Device Minor:[[:space:]]*//p' "$told")
      device "nvidia$minor"
      instances "$minor"
      ;;
  esac
done
if [ "$infiniband" = yes ]; then
  for each in /dev/infiniband/uverbs[0-9]* /dev/infiniband/rdma_cm; do
    device "${{each#/dev/}}"
  done
  ulimit -l unlimited 2>/dev/null || :
fi
mount -o remount,bind,ro dev
mount -o remount,ro .
if pivot_root . old 2>/dev/null; then
  cd /
  umount -l /old
  within=
else
  within="chroot ."
fi
ulimit -u "$processes" 2>/dev/null || ulimit -p "$processes"
exec $within setpriv --reuid "$uid" --regid "$uid" --clear-groups --no-new-privs \\
  --bounding-set=-all --inh-caps=-all -- "$@"
"""

_AS_USER = """\
uid=$1 processes=$2
shift 2
ulimit -u "$processes" 2>/dev/null || ulimit -p "$processes"
exec setpriv --reuid "$uid" --regid "$uid" --clear-groups --no-new-privs \
  --bounding-set=-all --inh-caps=-all -- "$@"
"""

_NAMESPACES = ("unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child")
_OWN = (*_NAMESPACES, "--propagation", "private", "--")

PROBE = f"""\
for tool in setpriv unshare pivot_root mount; do
  command -v "$tool" >/dev/null || echo "$tool (of util-linux)"
done
why=$(setpriv --reuid {FIRST_USER} --regid {FIRST_USER} --clear-groups --no-new-privs \\
  --bounding-set=-all --inh-caps=-all -- true 2>&1) || echo "users of its own: $why"
why=$({" ".join(_OWN)} sh -euc 'mount -t tmpfs probe /run
mount -t proc proc /proc' 2>&1) || echo "namespaces of its own: $why"
"""
"""Prints what a host lacks for a fence, a line each; all but `users` is needed for a full one."""


def possible(missing: Iterable[str]) -> Fencing:
    """How far a host that lacks this can fence a workspace in."""
    lacking = tuple(missing)
    if not lacking:
        return Fencing.FULL
    if any(need.startswith(("setpriv", "users")) for need in lacking):
        return Fencing.NONE
    return Fencing.USER


def within(
    fencing: Fencing,
    root: str,
    path: str,
    uid: int,
    gpus: Iterable[str] = (),
    processes: int = 4096,
    *,
    infiniband: bool = False,
) -> tuple[str, ...]:
    """What has to stand before a command, so that it runs inside the fence of a workspace.

    Of the host's devices it has those of these GPUs, and with `infiniband` those for RDMA; never
    those that manage the fabric (`umad`, `issm`).
    """
    match fencing:
        case Fencing.NONE:
            return ()
        case Fencing.USER:
            return ("sh", "-euc", _AS_USER, "fence", str(uid), str(processes))
        case Fencing.FULL:
            rdma = "yes" if infiniband else "no"
            words = (root, path, str(uid), ",".join(gpus), rdma, str(processes))
            return (*_OWN, "sh", "-euc", _WORLD, "fence", *words)
