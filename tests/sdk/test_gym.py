"""Tasks as Gymnasium environments, one and many at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from kvestigate_client import PlaneClient
from kvestigate_client.gym import TASKS, FleetVectorEnv, PlaneEnv, Task
from kvestigate_client.gym.actions import WAIT

NOTHING = json.dumps(WAIT)


def test_there_are_tasks_of_every_category() -> None:
    assert len(TASKS) >= 12
    assert set(Counter(task.category for task in TASKS.values())) == {
        "repair",
        "scaling",
        "security",
        "cost",
        "gpu",
    }


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_doing_nothing_scores_nothing_and_the_solution_everything(
    client: PlaneClient, task: Task
) -> None:
    env = PlaneEnv(client, task)

    env.reset()
    idle = [env.step(NOTHING)[4]["score"] for _ in range(len(task.solution) + 1)]
    _, info = env.reset()
    turns = []
    for action in task.solution:
        turns.append(env.step(json.dumps(action)))
        if turns[-1][2]:
            break
    env.close()

    assert idle == [0.0] * len(idle)
    assert info == {"instruction": task.instruction, "score": 0.0}
    assert [turn[4].get("error") for turn in turns] == [None] * len(turns)
    assert (turns[-1][4]["score"], turns[-1][2], turns[-1][3]) == (1.0, True, False)
    assert sum(turn[1] for turn in turns) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("kubectl get pods", "an action is JSON"),
        ("[]", "an action has a verb"),
        ('{"verb": "destroy"}', "one of apply, patch, scale, delete, wait"),
        ('{"verb": "apply"}', "the object it is about is missing"),
        ('{"verb": "delete", "object": {"apiVersion": "v1", "kind": "Pod"}}', "metadata.name"),
    ],
)
def test_an_action_that_cannot_be_done_costs_the_turn(
    env: PlaneEnv, action: str, message: str
) -> None:
    env.reset()

    _, reward, done, _, info = env.step(action)

    assert (reward, done) == (0.0, False)
    assert message in info["error"]


@pytest.fixture
def env(client: PlaneClient) -> Iterator[PlaneEnv]:
    made = PlaneEnv(client, TASKS["scale-out"], observing="diff")
    yield made
    made.close()


def test_an_episode_is_cut_off_and_the_next_starts_where_it_did(env: PlaneEnv) -> None:
    before, _ = env.reset()
    halfway = json.dumps({**TASKS["scale-out"].solution[0], "replicas": 2})

    ends = [env.step(halfway)[3] for _ in range(env.task.limit)]

    assert ends == [False] * (env.task.limit - 1) + [True]
    again, info = env.reset()
    assert (again, info["score"]) == (before, 0.0)


def test_observations_and_actions_are_of_their_spaces(env: PlaneEnv) -> None:
    observation, _ = env.reset()
    after = env.step(NOTHING)[0]

    assert env.observation_space.contains(after)
    assert env.action_space.contains(NOTHING)
    assert json.loads(observation) == []


def test_the_same_actions_give_the_same_plane(client: PlaneClient) -> None:
    digests = set()
    for _ in range(2):
        env = PlaneEnv(client, TASKS["scale-out"], seed=7)
        env.reset()
        env.step(json.dumps(TASKS["scale-out"].solution[0]))
        digests.add(env.plane.snapshot().digest())
        env.close()

    assert len(digests) == 1


def test_many_planes_take_their_turns_together(client: PlaneClient) -> None:
    task = TASKS["scale-out"]
    solve = json.dumps(task.solution[0])
    envs = FleetVectorEnv(client, task, 4)

    envs.reset()
    _, rewards, done, _, infos = envs.step([solve, NOTHING, solve, NOTHING])
    _, again, over, _, _ = envs.step([NOTHING] * 4)
    envs.close()

    assert rewards.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert done.tolist() == [True, False, True, False]
    assert infos["score"].tolist() == [1.0, 0.0, 1.0, 0.0]
    assert (again.tolist(), over.tolist()) == ([0.0] * 4, [False] * 4)
