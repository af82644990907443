"""Tasks for agents, as Gymnasium environments. Needs the extra: `pip install kvestigate[gym]`.

env = PlaneEnv(client, TASKS["repair-selector"])
observation, info = env.reset()                       # info["instruction"] says what to do
observation, reward, done, late, info = env.step('{"verb": "wait"}')
"""

from __future__ import annotations

from kvestigate_client.gym.environment import FleetVectorEnv, PlaneEnv
from kvestigate_client.gym.task import Task
from kvestigate_client.gym.tasks import TASKS

__all__ = ["TASKS", "FleetVectorEnv", "PlaneEnv", "Task"]
