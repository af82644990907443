"""What is known of a pod's containers on this node: the input of every decision. Pure."""

from __future__ import annotations

import enum

import msgspec


class Stage(enum.Enum):
    """The state of one container."""

    WAITING = "waiting"
    """Not started since the pod came, or its start failed."""
    RUNNING = "running"
    EXITED = "exited"


class Exit(msgspec.Struct, frozen=True):
    """How a run ended."""

    code: int
    at: float
    reason: str = ""
    """`Completed`, `Error`, `OOMKilled`, `ContainerCannotRun`"""
    message: str = ""


class Run(msgspec.Struct, frozen=True):
    """One run of a container that began."""

    id: str
    started_at: float
    exit: Exit | None = None


class Waiting(msgspec.Struct, frozen=True):
    """Why a container does not run."""

    reason: str
    message: str = ""


class Health(msgspec.Struct, frozen=True):
    """What the probes say of the current run; with no probe, the start value stays."""

    started: bool = True
    ready: bool = True
    alive: bool = True


class ContainerRecord(msgspec.Struct, frozen=True):
    """One container of one pod."""

    run: Run | None = None
    """The current or last run."""
    previous: Run | None = None
    """The one before."""
    restarts: int = 0
    waiting: Waiting | None = None
    """Why the last attempt to start it failed."""
    retry_at: float = 0.0
    """When the next attempt to start is due, if the last one failed."""
    pause: float = 0.0
    """The back-off that the next exit has to wait out; 0 after the first start."""
    health: Health = Health()
    stopping: bool = False
    """It was asked to stop."""
    hooked: bool = False
    """Its postStart hook runs: until that has ended it does not count as started."""

    @property
    def stage(self) -> Stage:
        if self.run is None or self.waiting is not None:
            return Stage.WAITING
        return Stage.RUNNING if self.run.exit is None else Stage.EXITED

    @property
    def running(self) -> bool:
        return self.stage is Stage.RUNNING

    @property
    def up(self) -> bool:
        """Whether it has started for all that wait for it."""
        return self.running and not self.hooked and self.health.started


NEVER_STARTED = ContainerRecord()
