"""The directory host: plain processes, for machines that allow nothing better.

The problem: on macOS, in containers without rights and on kernels without user namespaces, pods
should run all the same, with volumes, logs, exec, probes and clean ends, although nothing can be
mounted and no process can be fenced in.

The way: a container is a process group with an environment of its own. Since its volumes are not
at the paths that its spec says, those paths are replaced by the real ones wherever they stand as
whole paths in the command, its arguments and its environment (`replace_paths`), and linked below
`$KVESTIGATE_ROOT` for programs that build paths themselves. The cluster's names reach the C
library by `LOCALDOMAIN` and `RES_OPTIONS`, because `/etc/resolv.conf` is the machine's.

A process that leaves its group cannot be kept, but it can be recognised: every process of a
container inherits the variable `KVESTIGATE_CONTAINER`, and `sweep` ends all that have it. Its
value is the directory of the run. The pod's uid was tried first, and is not unique: a plane that
was forked has pods with the same uids, and two nodes ended each other's containers.

Commands become the spec's user only if root runs the node and everybody may enter its directory.
Otherwise that user would find neither volumes nor token, which are not mounted anywhere else; so
all containers then run as one user, and an event says so.

Limited, and it says so (`LIMITS`, `shortfalls`): containers see the machine's own files,
processes and hostname.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from kvestigate.cluster.node.gpu import smi
from kvestigate.cluster.node.gpu.model import Gpu
from kvestigate.cluster.node.hosts import machine, ownership, resolv_conf, shim
from kvestigate.cluster.node.hosts.disk import leave_disk
from kvestigate.cluster.node.hosts.identity import become, env_words, identity_fields
from kvestigate.cluster.node.hosts.interface import (
    Bind,
    Ceiling,
    Facts,
    Launch,
    LaunchFailed,
    Process,
    Usage,
)
from kvestigate.cluster.node.hosts.process import ShimProcess
from kvestigate.cluster.node.hosts.process_host import (
    DEFAULT_PATH,
    SAME_USER,
    ProcessHost,
    no_such_file,
    not_in_path,
)
from kvestigate.cluster.node.hosts.processes import MARK, kill, marked, usage_of
from kvestigate.cluster.node.hosts.seccomp import obstacle
from kvestigate.cluster.node.hosts.session import PipedSession
from kvestigate.cluster.node.hosts.terminal import take_stdin

RUNTIME = "kvestigate-directory://1"
LIMITS = (
    "containers share the machine's files, processes and hostname; no root file system is "
    "read-only",
    "mount paths are replaced in commands and environment, not mounted",
    "resource limits are not enforced",
)

_DISK = "rootfs"
"""Where the node's own files are, those of `hostPath` volumes: kept when the node ends."""


class DirectoryProcess(ShimProcess):
    """A process group, and whatever left it."""

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.sweep()

    def sweep(self) -> None:
        spared = {self.shim_pid} if not self.ended.done() else set()
        for pid in self.pids():
            if pid not in spared:
                kill(pid)

    def pids(self) -> list[int]:
        return marked(MARK, self.kept.env[MARK])

    def command_pid(self) -> int | None:
        """None once the command has ended: the pid may belong to another process then."""
        return super().command_pid() if shim.exit_code_of(self.directory) is None else None


class DirectoryHost(ProcessHost[DirectoryProcess]):
    """One node in one directory of the machine."""

    _has_users = False
    """Whether commands can be other users' than this process."""

    async def open(self) -> None:
        for name in ("pods", "volumes", _DISK):
            (self._directory / name).mkdir(parents=True, exist_ok=True, mode=0o711)
        self._has_users = _may_become() and _all_may_enter(self._directory)

    async def close(self, *, keep: bool) -> None:
        for process in list(self._running.values()):
            if keep:
                process.detach()
            else:
                process.kill()
                await process.ended
        if not keep:
            leave_disk(self._directory, _DISK)

    def facts(self) -> Facts:
        why = obstacle()
        network = (f"pods share the machine's network: {why}",) if why else ()
        users = () if self._has_users else (SAME_USER,)
        return machine.facts(RUNTIME, self._directory, (*LIMITS, *users, *network))

    async def start(self, launch: Launch) -> Process:
        directory = shim.run_directory(self._directory, launch.key)
        paths = Paths(launch.binds, self._directory / _DISK)
        for given in launch.ownerships:
            path = self._directory / _DISK / given.path.lstrip("/")
            ownership.give(path, given.group, only_on_mismatch=given.only_on_mismatch)
        root = self._directory / "pods" / launch.key.pod_uid / f"root-{launch.key.container}"
        paths.link_below(root)
        own = {name: paths.replaced(value) for name, value in launch.env.items()}
        env = {
            "HOME": str(root),
            **_resolver(launch.binds),
            **own,
            "PATH": f"{self._bin}:{own.get('PATH', DEFAULT_PATH)}",
            "KVESTIGATE_ROOT": str(root),
            smi.FILE: str(self.volumes_root / smi.STATE),
            # Not the pod's uid, which a forked plane has as well.
            MARK: str(directory),
        }
        argv = [paths.replaced(word) for word in launch.argv]
        cwd = self._cwd(paths.replaced(launch.workdir), root)
        _require_program(argv[0], env, cwd)
        kept = shim.Kept(
            launch.key.pod_uid,
            launch.key.container,
            launch.key.attempt,
            started_at=self._now(),
            env=env,
            workdir=cwd,
            tty=launch.tty,
            stdin=launch.stdin,
            user=launch.user if self._has_users else None,
            become=tuple(become(launch)) if self._has_users else (),
            network=launch.network is not None,
            extra=paths.kept(),
        )
        shim.prepare(directory, kept)
        master, slave = os.openpty() if launch.tty else (None, None)
        process = DirectoryProcess(directory, kept, now=self._now, terminal=master)
        program = shim.script(shim.OWN_CHILD, launch)
        words = [*kept.become, *env_words(env), *argv]
        return await self._begin(process, program, words, launch, slave)

    def shortfalls(self, launch: Launch) -> list[str]:
        missed = []
        if launch.read_only_root:
            missed.append(
                "readOnlyRootFilesystem is not enforced: containers share the machine's files"
            )
        if launch.host_aliases:
            missed.append("hostAliases are ignored: containers read the machine's /etc/hosts")
        if not self._has_users and (fields := ", ".join(identity_fields(launch))):
            missed.append(f"{fields} not enforced: {SAME_USER}")
        return missed

    def _found(self, directory: Path, kept: shim.Kept) -> DirectoryProcess:
        return DirectoryProcess(directory, kept, now=self._now)

    async def enter(
        self, process: Process, argv: tuple[str, ...], *, tty: bool, stdin: bool
    ) -> PipedSession:
        assert isinstance(process, DirectoryProcess)
        kept = process.kept
        words = [replace_paths(word, kept.extra) for word in argv]
        env = dict(kept.env) | ({"TERM": "xterm"} if tty else {})
        _require_program(words[0], env, kept.workdir)
        master, slave = os.openpty() if tty else (None, None)
        session = PipedSession(terminal=master)
        session.begin(
            [*kept.become, *words], env=env, cwd=kept.workdir, stdin=stdin, slave=slave,
            user=kept.user, preexec=take_stdin if tty else None, network=process.network,
        )  # fmt: skip
        return session

    def resize(self, process: Process, ceiling: Ceiling) -> None:
        pass  # limits are not enforced here

    async def forget(self, pod_uid: str) -> None:
        for root in ("pods", "volumes"):
            shutil.rmtree(self._directory / root / pod_uid, ignore_errors=True)

    def usage(self, process: Process) -> Usage:
        assert isinstance(process, DirectoryProcess)
        return usage_of(process.pids())

    async def show_memory(self, amount: int) -> None:
        pass  # its /proc is the machine's

    async def install_gpus(self, gpus: Sequence[Gpu]) -> None:
        program = self._bin / "nvidia-smi"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(smi.program())
        program.chmod(0o755)
        self.show_gpus(gpus)

    @property
    def _bin(self) -> Path:
        """Programs of the node that the machine has not."""
        return self._directory / _DISK / "usr" / "bin"

    def _cwd(self, workdir: str, root: Path) -> str:
        if not workdir:
            return str(root)
        if Path(workdir).is_dir():
            return workdir
        below = root / workdir.lstrip("/")
        below.mkdir(parents=True, exist_ok=True)
        return str(below)


class Paths:
    """Where a container's mount paths really are."""

    def __init__(self, binds: Sequence[Bind], node_root: Path) -> None:
        self._sources: dict[str, str] = {}
        for bind in binds:
            source = Path(bind.source)
            if bind.on_node:
                source = node_root / bind.source.lstrip("/")
                _make(source, bind.create)
            self._sources[bind.target.rstrip("/") or "/"] = str(source)

    def replaced(self, text: str) -> str:
        return replace_paths(text, self._sources)

    def kept(self) -> dict[str, str]:
        return dict(self._sources)

    def link_below(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True, mode=0o755)
        for target, source in self._sources.items():
            link = root / target.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink() and not link.exists():
                link.symlink_to(source)


def replace_paths(text: str, sources: Mapping[str, str]) -> str:
    """`text` with each mount path replaced where it stands as a path of its own."""
    targets = sorted((path for path in sources if path != "/"), key=len, reverse=True)
    if not targets:
        return text
    pattern = "|".join(re.escape(target) for target in targets)
    return re.sub(
        rf"(?<![\w./-])(?:{pattern})(?![\w.-])", lambda match: sources[match.group()], text
    )


def _make(path: Path, what: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "file":
        path.touch()
    elif what and not path.exists():
        path.mkdir()
        if what == "shared":
            path.chmod(0o777)


def _require_program(name: str, env: Mapping[str, str], cwd: str) -> None:
    if "/" in name:
        path = Path(cwd) / name
        if not path.exists():
            raise no_such_file(name)
        if not os.access(path, os.X_OK):
            raise LaunchFailed("ContainerCannotRun", f'exec: "{name}": permission denied')
    elif shutil.which(name, path=env.get("PATH", DEFAULT_PATH)) is None:
        raise not_in_path(name)


def _may_become() -> bool:
    return os.geteuid() == 0 and shutil.which("setpriv") is not None


def _all_may_enter(directory: Path) -> bool:
    """Whether all users may enter the directory: other users need it to reach their volumes."""
    place = directory.resolve()
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in (place, *place.parents))


def _resolver(binds: Sequence[Bind]) -> dict[str, str]:
    """The variables that stand for a `resolv.conf` of the container's own."""
    for bind in binds:
        if bind.target == resolv_conf.PATH:
            return resolv_conf.read(Path(bind.source).read_text()).variables()
    return {}
