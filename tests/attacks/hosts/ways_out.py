"""Ways out of a workspace, as an agent would try them: a shell command that succeeds if it is out.

`$other` is the workspace of another agent, `$pid` a process of its run, `$mine` our own workspace;
the host has a secret in each of the places that are read here.
"""

from __future__ import annotations

import shlex
from collections.abc import Container

HARMLESS = (
    "read /srv/secret",
    "read another workspace",
    "read the markers",
    "forge a process ID",
    "signal another run",
    "see processes of the host",
    "gain privileges",
)
"""Those that root may try on a host without doing damage, the machine under it included."""

SECRET = "canary-of-the-host"

HOST_FILES = ("/root/secret", "/srv/secret", "/home/secret", "/var/lib/secret", "/tmp/secret")
"""Readable for every user of the host; so are those of /dev/shm and /run."""

WAYS_OUT = {
    **{f"read {path}": f"grep -q {SECRET} {path}" for path in (*HOST_FILES, "/dev/shm/secret")},
    "read the shadow file": "cat /etc/shadow",
    "read the Kubernetes configuration": "ls /etc/kubernetes /var/lib/kubelet",
    "read another workspace": 'cat "$other/code/secret"',
    "list another workspace": 'ls "$other"',
    "see that there is another workspace": 'ls "${mine%/*}" | grep -qv "^${mine##*/}$"',
    "read the markers": 'ls "${mine%/*}/.state"',
    "read another workspace through a link": 'ln -sfn "$other" l && cat l/code/secret',
    "read a file through a hard link": 'ln "$other/code/secret" hard && cat hard',
    "write a marker": 'echo {} >"${mine%/*}/.state/${mine##*/}.json"',
    "remove the directory of the process IDs": 'rm -rf "$mine/pids" && [ ! -e "$mine/pids" ]',
    "forge a process ID": 'echo 1 >"$mine/pids/x.pid"',
    "change the log of another run": 'echo >>"$mine/logs/other.log"',
    "put a link where logs are": 'ln -s /root/secret "$mine/logs/x.log"',
    "put something else where logs are": 'mv "$mine/logs" "$mine/gone"',
    "make a directory beside code": 'mkdir "$mine/beside"',
    "write beside the workspace": 'mkdir "${mine%/*}/new"',
    "change a system file": "echo x >>/etc/passwd",
    "put a program into the system": "cp /bin/true /usr/bin/kvestigate-planted",
    "write to /opt": "touch /opt/planted",
    "signal another run": 'kill -0 "$pid"',
    "read the memory of another run": 'head -c 1 "/proc/$pid/maps"',
    "see processes of the host": '[ "$(ls /proc | grep -c "^[0-9]")" -gt 12 ]',
    "go through the root of the first process": "cat /proc/1/root/root/secret",
    "go through the root of its own process": "cat /proc/self/root/root/secret",
    "enter the namespaces of the first process": "nsenter -t 1 -m cat /root/secret",
    "become root": "setpriv --reuid 0 true",
    "become root by su": "su -c true",
    "become root by a program of its own": (
        "cp /bin/sh s && chmod u+s s && ./s -p -c '[ $(id -u) = 0 ]'"
    ),
    "gain privileges": "grep -q 'CapEff:.*[1-9a-f]' /proc/self/status",
    "mount memory": "mount -t tmpfs x /tmp",
    "mount the host's disk": "mount --bind / /tmp",
    "unmount what hides the others": 'umount "${mine%/*}"',
    "make the system writable": "mount -o remount,rw /usr",
    "as root of a namespace, read a secret": "unshare -Ur cat /root/secret",
    "as root of a namespace, uncover the others": (
        'unshare -Urm sh -c "umount -l ${mine%/*} && ls ${mine%/*} | grep -v ${mine##*/}"'
    ),
    "as root of a namespace, write to the system": (
        'unshare -Urm sh -c "mount -o remount,rw /usr && touch /usr/planted"'
    ),
    "as root of a namespace, mount a device": "unshare -Urm mount /dev/vda /tmp",
    "leave by chroot": "mkdir -p c && chroot c /bin/true",
    "make a device": "mknod d b 8 0",
    "read a disk": "head -c 1 /dev/vda || head -c 1 /dev/sda || head -c 1 /dev/nvme0n1",
    "read the memory of the machine": "head -c 1 /dev/mem || head -c 1 /dev/kmsg",
    "see a GPU that is not its own": "ls /dev/nvidia[0-9]* /dev/nvidiactl",
    "change the kernel": "echo x >/proc/sys/kernel/core_pattern",
    "restart the machine": "echo h >/proc/sysrq-trigger",
    "have the kernel run a program": "echo x >/sys/kernel/uevent_helper",
    "reach the cgroups": "ls /sys/fs/cgroup/* ",
    "change the name of the host": "hostname planted",
    "change the time": "date -s @0",
    "speak to the container runtime": "ls /run/containerd /run/docker.sock /var/run/docker.sock",
    "speak to the system's services": "ls /run/dbus /run/systemd/private",
    "keep a file of the host open": "ls -l /proc/self/fd | grep -v -e pipe: -e /dev/null -e /proc/ "
    '-e "$mine/logs/" -e total',
    "start any number of processes": '[ "$(ulimit -u)" = unlimited ]',
    "leave the process group of the host": "kill -0 -1 && [ $(id -u) = 0 ]",
}


def script(names: Container[str] = WAYS_OUT) -> str:
    """Tries these, and prints a line for each: `out` or `in`, and what was tried."""
    return "\n".join(
        f"if timeout 5 sh -c {shlex.quote(way)} >/dev/null 2>&1\n"
        f"then echo {shlex.quote('out ' + name)}\nelse echo {shlex.quote('in ' + name)}\nfi"
        for name, way in WAYS_OUT.items()
        if name in names
    )
