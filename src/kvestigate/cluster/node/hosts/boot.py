"""Making a node out of namespaces: the shell programs that build its tree and enter it. Pure.

A node is an overlay of the machine's root in its own mount, pid, uts and ipc namespaces. As
root one overlay over `/` is enough; without, the kernel refuses that one, so each directory of
the root gets its own inside a user namespace (or is bound as it is, where even that fails).

What is written on a node lies in `upper`, the node's disk. It is kept when the node ends, so all
that is made there may be there already. Memory (`/run`, `/dev/shm`) is not.

Inside a node, `/var/lib/kvestigate/volumes` holds the pods' volumes, and
`/var/lib/kvestigate/root` is the node's root once more, still shared with the node when a
container has made everything else its own: from there it binds host paths.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from kvestigate.cluster.node.hosts.identity import become
from kvestigate.cluster.node.hosts.interface import Bind, Launch, Propagation
from kvestigate.cluster.node.hosts.ownership import giving
from kvestigate.cluster.node.hosts.shim import READY

VOLUMES = "/var/lib/kvestigate/volumes"
ROOT = "/var/lib/kvestigate/root"
DISK = "upper"

# What an unprivileged node gets of its own, or not at all; all other directories are overlaid.
_SPECIAL = ("boot", "dev", "lost+found", "mnt", "proc", "root", "run", "sys", "tmp")
_SPECIAL_NAMES = frozenset(_SPECIAL)
# An unprivileged node owns only what it makes: without copies of its own, these directories
# would belong to nobody and take no files.
_OWNED = (
    "etc", "home", "opt", "srv", "usr", "usr/bin", "usr/local", "usr/local/bin", "var",
    "var/cache", "var/lib", "var/log", "var/tmp",
)  # fmt: skip

_SYSTEM = """
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755,size=64k dev "$root/dev"
for name in null zero full random urandom tty; do
  : >"$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
mount -t tmpfs -o mode=755 run "$root/run"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"; ln -s fd/1 "$root/dev/stdout"; ln -s fd/2 "$root/dev/stderr"
hostname "$name_of_node"
"""

# Often a link to somewhere below `/run`, which a node has of its own: then nothing could be
# resolved on the node, and no file of a container's own could be mounted there.
_RESOLVER = """
if [ -L /etc/resolv.conf ]; then
  cat /etc/resolv.conf >"$state/resolv.conf" 2>/dev/null || :
  rm -f "$root/etc/resolv.conf"
  cp "$state/resolv.conf" "$root/etc/resolv.conf"
fi
"""

_ENTER = f"""
mkdir -p "$root{VOLUMES}" "$root{ROOT}" "$root/.before"
mount --bind "$state/volumes" "$root{VOLUMES}"
cd "$root"
pivot_root . .before
"""

_SETTLE = f"""
umount -l /.before
rmdir /.before 2>/dev/null || :
mount --make-rshared /
mount --rbind / {ROOT}
echo ready
cd /
exec env --ignore-signal=CHLD sleep infinity </dev/null >/dev/null 2>&1
"""


MEMORY = """
grep -q " /proc/meminfo " /proc/self/mountinfo && exit 0
mkdir -p /run/kvestigate
{
  printf 'MemTotal:       %d kB\\n' "$1"
  printf 'MemFree:        %d kB\\n' "$(($1 / 16 * 15))"
  printf 'MemAvailable:   %d kB\\n' "$(($1 / 16 * 15))"
  grep -v '^Mem' /proc/meminfo
} >/run/kvestigate/meminfo
mount --bind /run/kvestigate/meminfo /proc/meminfo || :
"""
"""Makes `/proc/meminfo` of a node tell of `$1` kB. Like its GPUs, the memory of a node that says to
have more than the machine is simulated: files in it take what they are large, not what they may."""


def boot_as_root(state: Path, name: str, shared: Sequence[str]) -> str:
    """The first program of a node that root makes. It says `ready` and stays."""
    return (
        _preamble(state, name)
        + """
mkdir -p "$disk" "$state/work" "$root"
mount -t overlay -o "lowerdir=/,upperdir=$disk,workdir=$state/work" node "$root"
mount --bind /sys "$root/sys"
mount -o remount,bind,ro "$root/sys"
"""
        + _SYSTEM
        + _RESOLVER
        + _hide(state)
        + _shared(shared)
        + _ENTER
        + _SETTLE
    )


def boot_as_user(state: Path, name: str, shared: Sequence[str]) -> str:
    """The same in a user namespace, where this user is root.

    The node has a `tmp` and a `root` of its own; if we are installed below one of the machine's,
    those directories are shared, since `nvidia-smi` runs on this installation.
    """
    shared = [*shared, *hidden_installation()]
    return (
        _preamble(state, name)
        + f"""
mkdir -p "$disk" "$root"
mount --bind "$disk" "$root"
cd "$root"
mkdir -p proc dev run tmp root mnt sys
chmod 1777 tmp
for each in /*; do
  if [ -L "$each" ] && [ ! -L "$root$each" ]; then cp -P "$each" "$root$each"; fi
done
for each in {" ".join(_OWNED)}; do
  if [ -d "/$each" ] && [ ! -L "/$each" ]; then mkdir -p "$disk/$each"; fi
done
for path in /*; do
  each=${{path#/}}
  case " {" ".join(_SPECIAL)} " in *" $each "*) continue;; esac
  if [ -d "$path" ] && [ ! -L "$path" ]; then
    mkdir -p "$disk/$each" "$state/work/$each"
    mount -t overlay \\
      -o "userxattr,lowerdir=/$each,upperdir=$disk/$each,workdir=$state/work/$each" \\
      node "$root/$each" || mount --rbind "$path" "$root/$each"
  fi
done
mount --rbind /sys "$root/sys" || :
"""
        + _SYSTEM
        + _RESOLVER
        + _hide(state)
        + _shared(shared)
        + _ENTER
        + _SETTLE
    )


def hidden_installation() -> list[str]:
    """The directories of this Python that lie where a node has something else."""
    places = dict.fromkeys(os.path.realpath(path) for path in sys.path if path)
    return [
        path
        for path in places
        if _SPECIAL_NAMES.intersection(Path(path).parts[1:2]) and os.access(path, os.R_OK | os.X_OK)
    ]


def _preamble(state: Path, name: str) -> str:
    words = {
        "state": str(state),
        "name_of_node": name,
        "root": str(state / "root"),
        "disk": str(state / DISK),
    }
    return "set -e\n" + "".join(f"{key}={shlex.quote(value)}\n" for key, value in words.items())


def _hide(state: Path) -> str:
    """The nodes' own state lies below the overlay: nobody in a node should see it."""
    hidden = shlex.quote(str(state.parent))
    return (
        f'if [ -d "$root"{hidden} ]; then\n'
        f'  mount -t tmpfs -o size=64k hidden "$root"{hidden}; fi\n'
    )


def _shared(paths: Sequence[str]) -> str:
    return "".join(
        f'mkdir -p "$root"{word}; mount --bind {word} "$root"{word}\n'
        for word in map(shlex.quote, paths)
    )


def container_setup(launch: Launch, mounted: dict[str, str]) -> str:
    """The first program inside a container's namespaces: its view of files, then the command.

    `mounted` tells where on the node each bind's source is.
    """
    lines = ["set -e", *_privacy(launch.binds)]
    if not launch.host_pid:
        lines.append("mount -t proc proc /proc")
    if launch.hostname:
        lines.append(f"hostname {shlex.quote(launch.hostname)} || :")
    for bind in launch.binds:
        lines += _creating(bind, mounted[bind.source])
    for given in launch.ownerships:
        lines += giving(given, on_node(given.path))
    for bind in launch.binds:
        lines += _mounting(bind, mounted[bind.source])
    workdir = shlex.quote(launch.workdir or "/")
    lines.append(f"mkdir -p {workdir} 2>/dev/null || :")
    if launch.read_only_root:
        lines += _read_only(launch.binds)
    words = become(launch)
    lines += [f"cd {workdir}", "set +e"]
    terminal = ["setsid", "-c", "-w"] if launch.tty else []
    # The shell stays, to reap what the command leaves behind, and keeps quiet about its end.
    command = shlex.join(["exec", *terminal, *words, "/bin/sh", "-c", READY, "command"])
    lines += ["exec 6>&2 2>/dev/null", f'({command} "$@" 2>&6 6>&-)', "exit $?"]
    return "\n".join(lines)


def _privacy(binds: Sequence[Bind]) -> list[str]:
    """Mounts of a container are its own; only what must travel to the node stays shared."""
    if not any(bind.propagation is not Propagation.NONE for bind in binds):
        return ["mount --make-rprivate /"]
    own = ("/", "/proc", "/sys", "/dev", "/dev/pts", "/dev/shm", "/run")
    return [f"mount --make-private {path} 2>/dev/null || :" for path in own]


def on_node(path: str) -> str:
    """Where a container's setup finds a path of its node."""
    return f"{ROOT}{path}" if path != "/" else ROOT


def _creating(bind: Bind, source: str) -> list[str]:
    src = shlex.quote(source)
    missing = {
        "directory": f"mkdir -p {src}",
        "shared": f"{{ mkdir -p {src} && chmod 777 {src}; }}",
        "file": f": >{src}",
    }
    return [f"[ -e {src} ] || {missing[bind.create]}"] if bind.create else []


def _read_only(binds: Sequence[Bind]) -> list[str]:
    """The root and what the node has mounted on it; not what is the container's own."""
    own = ["/proc", "/dev", "/sys", VOLUMES, ROOT, *(bind.target for bind in binds)]
    kept = "|".join(f"{word}|{word}/*" for word in map(shlex.quote, own))
    return [
        "mount -o remount,bind,ro /",
        f"while read -r _ _ _ _ where _; do case $where in /|{kept}) ;;",
        '*) mount -o remount,bind,ro "$where" 2>/dev/null || :;; esac; done </proc/self/mountinfo',
    ]


def _mounting(bind: Bind, source: str) -> list[str]:
    src, target = shlex.quote(source), shlex.quote(bind.target)
    lines = [
        f"if [ -d {src} ]; then mkdir -p {target}; else "
        f"mkdir -p $(dirname {target}); [ -e {target} ] || : >{target}; fi",
        f"mount --rbind {src} {target}",
    ]
    if bind.propagation is not Propagation.BOTH:
        lines.append(
            f"mount --make-{bind.propagation.value} {target}".replace("-private", "-rprivate")
        )
    if bind.read_only:
        lines.append(f"mount -o remount,bind,ro {target}")
    return lines
