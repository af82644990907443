"""The namespace host: a node is an overlay of the machine in namespaces of its own. Linux.

The problem: pods of several nodes on one machine need files, processes and hostnames that do not
collide, without images, a container runtime or a daemon, and if possible without root.

The way: `unshare` makes one first process a node, in its own mount, pid, uts and ipc namespaces.
It mounts an overlay of the machine's root (`boot`), says `ready` and sleeps; the node exists for
as long as that process does, and killing it removes every process and mount at once. What was
written to the node's files stays in its directory, and is there when it starts again. A container
is `nsenter` into the node, `unshare` into namespaces of its own, and a setup script that binds
its volumes. All of this is done by programs of util-linux, because a multi-threaded Python
process must not call `setns` or `unshare` itself, and because the words can be tried in a shell.

Root mounts one overlay over `/`. An ordinary user gets the same inside a user namespace, where
the kernel refuses an overlay over `/`: each directory gets its own, and there is one user only,
so `runAsUser` and cgroups are out of reach. What a node cannot do, `facts` and `shortfalls` say.

Three details cost the most time. A container's command is found from outside, as the fourth
generation below its shim, because a pid written inside is a number of the inner namespace.
The setup is a file, since a program given by `sh -c` would be what `ps` shows for every
container. And a signal sent during the setup reaches nobody, so `start` returns only when the
command has begun (`shim`). The node's first process is known by pid and start time
(`sandbox.remember`): the next agent finds it again, and does not mistake a reused pid for it.

Isolation for honest workloads, not a security boundary. Pods see their node's files and
processes, never another node's.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from kvestigate import errors
from kvestigate.cluster.node.gpu import smi
from kvestigate.cluster.node.gpu.model import Gpu
from kvestigate.cluster.node.hosts import boot, cgroups, machine, sandbox, shim, terminal
from kvestigate.cluster.node.hosts.directory import DirectoryHost
from kvestigate.cluster.node.hosts.disk import leave_disk, remove_tree
from kvestigate.cluster.node.hosts.endings import on_exit
from kvestigate.cluster.node.hosts.identity import become, env_words, identity_fields
from kvestigate.cluster.node.hosts.interface import (
    Bind,
    Ceiling,
    Facts,
    Host,
    Launch,
    LaunchFailed,
    Process,
    Usage,
)
from kvestigate.cluster.node.hosts.namespace_process import NamespaceProcess
from kvestigate.cluster.node.hosts.process_host import (
    DEFAULT_PATH,
    SAME_USER,
    ProcessHost,
    no_such_file,
    not_in_path,
)
from kvestigate.cluster.node.hosts.processes import MARK, children, descendants, kill, usage_of
from kvestigate.cluster.node.hosts.seccomp import descriptor_of, obstacle
from kvestigate.cluster.node.hosts.session import PipedSession

RUNTIME = "kvestigate-namespace://1"

_BOOT_SECONDS = 30.0
_CLEAN = {"PATH": DEFAULT_PATH}

_SHARED = Path("/etc/kvestigate/shared-with-agents")
"""Where a host says which directories the workspaces of agents may read."""


class NamespaceHost(ProcessHost[NamespaceProcess]):
    """One node of the machine.

    `directory` is the node's alone, and its parent holds nothing but nodes: no node sees it.
    `shared` are directories of the machine that the node sees at the same path.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        *,
        now: Callable[[], float],
        shared: Sequence[str] = (),
    ) -> None:
        super().__init__(directory, now=now)
        self._name = name
        self._shared = tuple(shared)
        self._privileged = machine.can_mount()
        self._init = 0
        self._parent: subprocess.Popen[bytes] | None = None
        """What started the node's first process and waits for it."""
        self._groups: cgroups.Cgroups | None = None
        self._sandboxes = sandbox.Sandboxes(directory / "pods")

    # The node.

    async def open(self) -> None:
        """Find the node of an earlier agent, or make one; `HostUnavailable` if the kernel won't."""
        for name in ("pods", "volumes", boot.DISK):
            (self._directory / name).mkdir(parents=True, exist_ok=True, mode=0o755)
        self._groups = cgroups.find(_unlike_any_other(self._name, self._directory))
        init = sandbox.recall(self._directory / "init.json")
        if init is None:
            init = await self._boot()
        self._init = init

    async def close(self, *, keep: bool) -> None:
        if not keep:
            await self._destroy()
            return
        for process in list(self._running.values()):
            process.detach()
        if self._parent is not None:
            self._parent.returncode = 0  # it outlives us: init will reap it
        self._sandboxes.release()

    async def _destroy(self) -> None:
        """End the node's first process, and with it all others and every mount."""
        if not self._init:
            return
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        on_exit(self._init, lambda: gone.set_result(None))
        kill(self._init)
        await gone
        if self._parent is not None:
            self._parent.wait()
        self._sandboxes.reap()
        for process in list(self._running.values()):
            await process.ended
        if self._groups is not None:
            self._groups.remove()
        await asyncio.to_thread(leave_disk, self._directory, boot.DISK)

    async def _boot(self) -> int:
        make = boot.boot_as_root if self._privileged else boot.boot_as_user
        program = make(self._directory, self._name, self._shared)
        new = ["--mount", "--propagation=private", "--pid", "--uts", "--ipc", "--fork"]
        if not self._privileged:
            new = ["--user", "--map-root-user", *new]
        child = self._spawn_init(["unshare", *new, "/bin/sh", "-c", program])
        assert child.stdout is not None
        with child.stdout as pipe:
            line = await asyncio.wait_for(asyncio.to_thread(pipe.readline), _BOOT_SECONDS)
        if line.strip() != b"ready":
            child.wait()
            why = (self._directory / "boot.log").read_text().strip() or "no reason given"
            raise HostUnavailable(f"this machine does not allow namespace nodes: {why}")
        self._parent = child
        (init,) = children(child.pid)
        sandbox.remember(self._directory / "init.json", init)
        return init

    def _spawn_init(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        with (self._directory / "boot.log").open("wb") as log:
            return subprocess.Popen(
                argv,
                env=_CLEAN,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                cwd="/",
            )

    def facts(self) -> Facts:
        limits = []
        if obstacle():
            limits.append(f"pods share the machine's network: {obstacle()}")
        if self._groups is None:
            limits.append("resource limits are not enforced")
        if not self._privileged:
            limits.append(SAME_USER)
        return machine.facts(RUNTIME, self._directory, tuple(limits))

    # Containers.

    async def start(self, launch: Launch) -> Process:
        if not self._privileged:
            launch = replace(launch, user=None, group=None, groups=())  # it has no others
        self._require_program(launch)
        argv = await self._command(launch)
        joined = self._groups.make(launch.key.id, launch.ceiling) if self._groups else []
        master, slave = self._terminal() if launch.tty else (None, None)
        directory = shim.run_directory(self._directory, launch.key)
        kept = self._kept(launch, master)
        shim.prepare(directory, kept)
        process = self._process(directory, kept, master)
        program = shim.script(shim.ENTERING, launch, groups=[str(path) for path in joined])
        try:
            return await self._begin(process, program, argv, launch, slave)
        except LaunchFailed:
            if self._groups is not None:
                self._groups.remove(launch.key.id)
            raise

    def shortfalls(self, launch: Launch) -> list[str]:
        fields = ", ".join(identity_fields(launch))
        if self._privileged or not fields:
            return []
        return [f"{fields} not enforced: {SAME_USER}"]

    async def _command(self, launch: Launch) -> list[str]:
        """Into the node, into namespaces of the container's own, and through its setup."""
        mounted = {bind.source: await self._on_node(bind) for bind in launch.binds}
        setup = self._write_setup(launch, mounted)
        own = ["--mount", "--propagation=unchanged", "--uts", "--fork"]
        if not launch.host_pid and not launch.shared_pids:
            own.append("--pid")
        enter = self._nsenter(self._init)
        if launch.shared_pids:
            first = await self._sandboxes.enter(launch.key.pod_uid, enter, _CLEAN)
            enter = self._nsenter(self._init, f"--pid=/proc/{first}/ns/pid")
        command = [*env_words(launch.env), *launch.argv]
        return [*enter, "unshare", *own, "/bin/sh", setup, *command]

    def _kept(self, launch: Launch, master: int | None) -> shim.Kept:
        key = launch.key
        env = {"PATH": DEFAULT_PATH, "HOME": "/root", **launch.env}
        if launch.tty:
            env.setdefault("TERM", "xterm")
        if launch.shared_pids and self._groups is None:
            env[MARK] = str(shim.run_directory(self._directory, key))
        return shim.Kept(
            key.pod_uid, key.container, key.attempt, started_at=self._now(), env=env,
            workdir=launch.workdir or "/", tty=launch.tty, stdin=launch.stdin,
            user=launch.user, become=tuple(become(launch)),
            network=launch.network is not None,
            extra={
                "host_pid": "yes" if launch.host_pid else "",
                "shared_pids": "yes" if launch.shared_pids else "",
                "terminal": "" if master is None else str(master),
            },
        )  # fmt: skip

    def _process(self, directory: Path, kept: shim.Kept, master: int | None) -> NamespaceProcess:
        return NamespaceProcess(
            directory, kept, now=self._now, groups=self._groups, terminal=master
        )

    def _write_setup(self, launch: Launch, mounted: dict[str, str]) -> str:
        """A file, as the program would else be what `ps` shows for every container."""
        key = launch.key
        below = f"{key.pod_uid}/.setup/{key.container}-{key.attempt}"
        path = self.volumes_root / below
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(boot.container_setup(launch, mounted))
        return f"{boot.VOLUMES}/{below}"

    def _terminal(self) -> tuple[int, int]:
        return terminal.open_pair(f"/proc/{self._init}/root/dev/pts/ptmx")

    def _found(self, directory: Path, kept: shim.Kept) -> NamespaceProcess:
        pid, number = shim.shim_pid_of(directory), kept.extra.get("terminal")
        held = _terminal_of(pid, int(number)) if number and pid is not None else None
        return self._process(directory, kept, held)

    async def enter(
        self, process: Process, argv: tuple[str, ...], *, tty: bool, stdin: bool
    ) -> PipedSession:
        assert isinstance(process, NamespaceProcess)
        first = process.first_pid()
        if first is None:
            raise LaunchFailed("ContainerCannotRun", "the container is not running")
        kept = process.kept
        words = [*self._nsenter(first), *kept.become]
        # The working directory is given by name: ours would be one of the machine.
        change = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', kept.workdir]
        env = dict(kept.env)
        master, slave = self._terminal() if tty else (None, None)
        if tty:
            words += ["setsid", "-c", "-w"]
            env.setdefault("TERM", "xterm")
        session = PipedSession(terminal=master)
        session.begin(
            [*words, *change, *env_words(env), *argv], env=env, cwd="/", stdin=stdin,
            slave=slave, user=kept.user, network=process.network, own_files=True,
        )  # fmt: skip
        return session

    def resize(self, process: Process, ceiling: Ceiling) -> None:
        if self._groups is not None:
            self._groups.make(process.key.id, ceiling)

    async def forget(self, pod_uid: str) -> None:
        await self._sandboxes.end(pod_uid)
        for where in self._mounts():
            if where.startswith(f"{boot.VOLUMES}/{pod_uid}/"):
                await self._in_node("umount", where)
        for root in ("pods", "volumes"):
            await asyncio.to_thread(remove_tree, self._directory / root / pod_uid)

    def usage(self, process: Process) -> Usage:
        assert isinstance(process, NamespaceProcess)
        if self._groups is not None:
            measured = self._groups.usage(process.key.id)
            if measured is not None:
                return measured
        return usage_of(descendants(process.shim_pid) if process.shim_pid is not None else [])

    async def install_gpus(self, gpus: Sequence[Gpu]) -> None:
        write = "cat >/usr/bin/nvidia-smi && chmod 755 /usr/bin/nvidia-smi"
        await self._in_node("/bin/sh", "-c", write, input=smi.program().encode())
        share = f"mkdir -p {_SHARED.parent} && cat >{_SHARED}"
        read = "".join(f"{path}\n" for path in smi.directories())
        await self._in_node("/bin/sh", "-c", share, input=read.encode())
        self.show_gpus(gpus)

    async def show_memory(self, amount: int) -> None:
        await self._in_node("/bin/sh", "-c", boot.MEMORY, "memory", str(amount // 1024))

    # Reaching into the node.

    def _nsenter(self, pid: int, pids: str = "--pid") -> list[str]:
        user = [] if self._privileged else ["--user", "--preserve-credentials"]
        return ["nsenter", f"--target={pid}", *user, "--mount", pids, "--uts", "--ipc", "--"]

    async def _in_node(self, *argv: str, input: bytes = b"") -> None:
        done = await asyncio.create_subprocess_exec(
            *self._nsenter(self._init), *argv, env=_CLEAN,
            stdin=subprocess.PIPE if input else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        _, complaint = await done.communicate(input or None)
        if done.returncode:
            message = complaint.decode(errors="replace").strip()
            raise LaunchFailed("FailedMount", f"{argv[0]}: {message}")

    async def _on_node(self, bind: Bind) -> str:
        """Where a bind's source is on the node."""
        if bind.on_node:
            return boot.on_node(bind.source)
        source = Path(bind.source)
        if source.is_relative_to(self.volumes_root):
            path = f"{boot.VOLUMES}/{source.relative_to(self.volumes_root)}"
            if bind.memory is not None and path not in self._mounts():
                size = f",size={bind.memory}" if bind.memory else ""
                given = self._privileged and bind.group is not None
                mode = f"mode=2777,gid={bind.group}" if given else "mode=1777"
                options = f"{mode}{size}"
                await self._in_node("mount", "-t", "tmpfs", "-o", options, "memory", path)
            return path
        if any(source.is_relative_to(path) for path in self._shared):
            return str(source)
        raise LaunchFailed("FailedMount", f"{source} of the machine is not shared with this node")

    def _mounts(self) -> list[str]:
        mounts = Path(f"/proc/{self._init}/mountinfo").read_text()
        return [line.split()[4] for line in mounts.splitlines()]

    def _require_program(self, launch: Launch) -> None:
        """A program that is not there is told as such, not as the shell's exit code."""
        name = launch.argv[0]
        root = Path(f"/proc/{self._init}/root")
        if "/" in name:
            mounted = any(name.startswith(bind.target) for bind in launch.binds)
            if not mounted and name.startswith("/") and not _lexists(root, name):
                raise no_such_file(name)
            return
        path = launch.env.get("PATH", DEFAULT_PATH)
        if not any(
            _lexists(root, f"{directory}/{name}") for directory in path.split(":") if directory
        ):
            raise not_in_path(name)


async def best_host(directory: Path, name: str, *, now: Callable[[], float]) -> Host:
    """A namespace host where the kernel allows one, else a directory host; open already."""
    if sys.platform == "linux":
        host = NamespaceHost(directory, name, now=now)
        try:
            await host.open()
        except HostUnavailable:
            pass  # a container without rights, or a kernel that forbids user namespaces
        else:
            return host
    plain = DirectoryHost(directory, now=now)
    await plain.open()
    return plain


class HostUnavailable(errors.KvestigateError):
    """This machine does not let us make nodes of this kind."""


def _unlike_any_other(name: str, directory: Path) -> str:
    """Clusters on one machine may each have a node of this name, and forks pods of one uid."""
    return f"{name}-{zlib.crc32(os.fsencode(directory)):08x}"


def _terminal_of(shim_pid: int, number: int) -> int | None:
    """The terminal that a shim holds for us; None where the kernel hands out no descriptors."""
    try:
        return descriptor_of(shim_pid, number)
    except OSError:
        return None


def _lexists(root: Path, path: str) -> bool:
    """Whether there is such a path; links are not followed, as they lead out of `root`."""
    try:
        (root / path.lstrip("/")).lstat()
    except OSError:
        return False
    return True
