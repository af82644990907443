"""What hosts have in common whose containers are processes behind shims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from kvestigate.cluster.node.gpu import smi
from kvestigate.cluster.node.gpu.model import Gpu
from kvestigate.cluster.node.hosts import shim
from kvestigate.cluster.node.hosts.interface import Launch, LaunchFailed, Process
from kvestigate.cluster.node.hosts.process import ShimProcess

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SAME_USER = "all containers run as the same user"

P = TypeVar("P", bound=ShimProcess)


class ProcessHost(Generic[P]):
    """One node, whose files are below `directory`."""

    def __init__(self, directory: Path, *, now: Callable[[], float]) -> None:
        self._directory = directory
        self._now = now
        self._running: dict[str, P] = {}

    @property
    def volumes_root(self) -> Path:
        return self._directory / "volumes"

    def show_gpus(self, gpus: Sequence[Gpu]) -> None:
        smi.write_state(self.volumes_root / smi.STATE, gpus)

    async def adopt(self) -> list[Process]:
        processes: list[Process] = []
        for directory in shim.run_directories(self._directory):
            kept = shim.kept_of(directory)
            if kept is not None:
                process = self._found(directory, kept)
                self._follow(process)
                process.resume()
                processes.append(process)
        return processes

    def _found(self, directory: Path, kept: shim.Kept) -> P:
        """The process of a run that an earlier agent started."""
        raise NotImplementedError

    async def _begin(
        self, process: P, program: str, argv: Sequence[str], launch: Launch, slave: int | None
    ) -> P:
        cwd = process.kept.workdir if not process.own_files else "/"
        process.spawn(program, argv, cwd=cwd, slave=slave, network=launch.network)
        self._follow(process)
        await process.begin()
        return process

    def _follow(self, process: P) -> None:
        self._running[process.key.id] = process
        process.ended.add_done_callback(lambda _: self._running.pop(process.key.id, None))


def no_such_file(name: str) -> LaunchFailed:
    return LaunchFailed(
        "ContainerCannotRun", f'exec: "{name}": stat {name}: no such file or directory'
    )


def not_in_path(name: str) -> LaunchFailed:
    return LaunchFailed("ContainerCannotRun", f'exec: "{name}": executable file not found in $PATH')
