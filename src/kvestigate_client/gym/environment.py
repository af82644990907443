"""Gymnasium environments over planes: one, and as many as a Fleet has.

Actions and observations are text, as agents read and write it: an action is the JSON of
`actions`, an observation is the JSON of a snapshot, or of what has changed since the start.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from string import printable
from typing import Any, Literal
from uuid import uuid4

import gymnasium
import numpy
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from kvestigate_client.client import PlaneClient
from kvestigate_client.failures import NotFound, PlaneError, Unreachable
from kvestigate_client.fleets import Fleet
from kvestigate_client.gym import actions
from kvestigate_client.gym.task import Task
from kvestigate_client.planes import Plane
from kvestigate_client.results import Object, Snapshot, without_revisions

Observing = Literal["snapshot", "diff"]

START = "start"
_SIZE = 2**24
"""Characters that an observation or an action may have."""
_THREADS = 16
_SETTLING = 60.0
"""Virtual seconds before an episode may start."""


def _text() -> gymnasium.spaces.Text:
    return gymnasium.spaces.Text(_SIZE, charset=printable)


class ActionSpace(gymnasium.spaces.Text):
    """Any text. What is drawn from it is an action by its form, as hardly any text is."""

    def __init__(self) -> None:
        super().__init__(_SIZE, charset=printable)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return json.dumps(actions.draw(self.np_random))


@dataclass(slots=True)
class _Episode:
    """One plane that an agent is at work in."""

    plane: Plane
    task: Task
    observing: Observing
    resources: Sequence[str]
    """What is shown of the plane; all of it if there are none."""
    seed: int
    score: float = 0.0
    turns: int = 0
    start: Snapshot | None = None

    def prepare(self) -> None:
        """Let everything settle, and remember where it starts."""
        # Not until nothing is left to do: what is broken may be tried again for ever.
        self.plane.step(_SETTLING)
        self.plane.checkpoint(START, replace=True)
        if self.resources:
            self.plane.snapshot(self.resources)  # or a misspelt one would show nothing, for ever

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """Back to the start; the seed stays as it was if there is none."""
        self.seed = self.seed if seed is None else seed
        self.plane.restore(START, seed=self.seed)
        self.start = snapshot = self.plane.snapshot()
        self.score, self.turns = self.task.score(snapshot), 0
        told = {"instruction": self.task.instruction, "score": self.score}
        return self._observe(snapshot), told

    def turn(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """An action that cannot be done costs the turn, and the agent is told why."""
        if self.start is None:
            raise gymnasium.error.ResetNeeded("reset comes before the first step")
        told: dict[str, Any] = {}
        try:
            actions.perform(self.plane, actions.parse(action))
        except Unreachable:
            raise  # no fault of the agent's
        except PlaneError as error:
            told["error"] = error.message
        self.plane.step(self.task.seconds)
        snapshot = self.plane.snapshot()
        if harm := self.task.harm(self.start, snapshot):
            told["harm"] = harm
        before, self.score = self.score, 0.0 if harm else self.task.score(snapshot)
        self.turns += 1
        done = self.score >= 1.0
        late = not done and self.turns >= self.task.limit
        told["score"] = self.score
        return self._observe(snapshot), self.score - before, done, late, told

    def _observe(self, snapshot: Snapshot) -> str:
        if self.observing == "snapshot":
            # An agent that sent a revision back would be told that the object has changed since.
            return json.dumps([without_revisions(obj) for obj in self._shown(snapshot)])
        found = self.plane.diff(f"checkpoint:{START}", resources=self.resources)
        return json.dumps([_line(change) for change in found.changes])

    def _shown(self, snapshot: Snapshot) -> Iterable[Object]:
        if not self.resources:
            return snapshot
        return (obj for resource in self.resources for obj in snapshot.items(resource))


def _line(change: Any) -> dict[str, Any]:
    fields = {each.path: each.after for each in change.fields}
    return {
        "type": change.type,
        "resource": change.resource,
        "namespace": change.namespace,
        "name": change.name,
        "fields": fields,
    }


class PlaneEnv(gymnasium.Env[str, str]):
    """One task in one plane. The reward of a turn is by how much the score rose."""

    metadata = {"render_modes": []}  # noqa: RUF012 - as gymnasium declares it

    def __init__(
        self,
        client: PlaneClient,
        task: Task,
        *,
        seed: int = 0,
        observing: Observing = "snapshot",
        resources: Sequence[str] = (),
        ttl_seconds: int | None = None,
    ) -> None:
        """`resources` are observed, such as `["pods", "deployments"]`; all if there are none.

        After `ttl_seconds` the environment ends, if nobody has closed it before.
        """
        self.action_space = ActionSpace()
        self.observation_space = _text()
        self.task = task
        self._fleet = client.fleet(f"gym-{uuid4().hex[:12]}")
        begin = partial(_Episode, task=task, observing=observing, resources=resources, seed=seed)
        (self._episode,) = _episodes(self._fleet, begin, task.template(seed), 1, ttl_seconds)

    @property
    def plane(self) -> Plane:
        """To look deeper than observations go."""
        return self._episode.plane

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return self._episode.reset(seed)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return self._episode.turn(action)

    def close(self) -> None:
        _end(self._fleet)


class FleetVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """One task in many planes at once, each of them an environment of its own."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 - as gymnasium has it

    def __init__(
        self,
        client: PlaneClient,
        task: Task,
        num_envs: int,
        *,
        seed: int = 0,
        observing: Observing = "diff",
        resources: Sequence[str] = (),
        ttl_seconds: int | None = None,
    ) -> None:
        """Takes what `PlaneEnv` takes, for each of them."""
        self.num_envs = num_envs
        self.single_action_space = ActionSpace()
        self.single_observation_space = _text()
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._fleet = client.fleet(f"gym-{uuid4().hex[:12]}")
        begin = partial(_Episode, task=task, observing=observing, resources=resources, seed=seed)
        self._episodes = _episodes(self._fleet, begin, task.template(seed), num_envs, ttl_seconds)
        self._threads = ThreadPoolExecutor(min(num_envs, _THREADS))
        self._over = [False] * num_envs

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """With one seed, every plane has one of its own: this, the next and so on."""
        if seed is None or isinstance(seed, int):
            seed = [None if seed is None else seed + index for index in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"seed: {len(seed)} seeds for {self.num_envs} environments")
        found = list(self._threads.map(_Episode.reset, self._episodes, seed))
        self._over = [False] * self.num_envs
        return tuple(each[0] for each in found), _stacked([each[1] for each in found])

    def step(self, actions: Sequence[str]) -> tuple[tuple[str, ...], Any, Any, Any, dict[str, Any]]:
        if len(actions) != self.num_envs:
            raise ValueError(f"actions: {len(actions)} for {self.num_envs} environments")
        found = list(self._threads.map(self._turn, range(self.num_envs), actions))
        self._over = [done or late for _, _, done, late, _ in found]
        return (
            tuple(each[0] for each in found),
            numpy.array([each[1] for each in found], dtype=numpy.float64),
            numpy.array([each[2] for each in found], dtype=numpy.bool_),
            numpy.array([each[3] for each in found], dtype=numpy.bool_),
            _stacked([each[4] for each in found]),
        )

    def _turn(self, index: int, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """A turn, or the start of the next episode after one has ended."""
        if self._over[index]:
            observation, told = self._episodes[index].reset()
            return observation, 0.0, False, False, told
        return self._episodes[index].turn(action)

    def close_extras(self, **_: Any) -> None:
        self._threads.shutdown()
        _end(self._fleet)


def _stacked(infos: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The infos of all environments, as gymnasium wants them.

    Each key has an array of values, and `_key` says which environments have that key.
    """
    stacked: dict[str, Any] = {}
    for key in dict.fromkeys(key for info in infos for key in info):
        values = [info.get(key) for info in infos]
        numeric = all(isinstance(value, float) for value in values)
        stacked[key] = numpy.array(values, dtype=numpy.float64 if numeric else object)
        stacked[f"_{key}"] = numpy.array([key in info for info in infos], dtype=numpy.bool_)
    return stacked


def _episodes(
    fleet: Fleet,
    begin: Callable[[Plane], _Episode],
    template: Mapping[str, Any],
    count: int,
    ttl: int | None,
) -> list[_Episode]:
    """The members of a new Fleet, which is there with all of them or not at all."""
    fleet.create(count, template=template, ttl_seconds=ttl)
    try:
        fleet.wait()
        made = [begin(plane) for plane in fleet.planes()]
        with ThreadPoolExecutor(min(count, _THREADS)) as threads:
            list(threads.map(_Episode.prepare, made))
    except BaseException:
        _end(fleet)
        raise
    return made


def _end(fleet: Fleet) -> None:
    with contextlib.suppress(NotFound):  # its time was up, or somebody was faster
        fleet.delete()
