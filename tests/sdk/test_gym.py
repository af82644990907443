"""Tasks as Gymnasium environments, one and many at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from kvestigate_client import PlaneClient, PlaneError
from kvestigate_client.gym import TASKS, FleetVectorEnv, PlaneEnv, Task
from kvestigate_client.gym.actions import VERBS, WAIT, parse
from kvestigate_client.gym.environment import Observing

NOTHING = json.dumps(WAIT)


def leftovers(client: PlaneClient) -> list[str]:
    """The Fleets that nobody has ended; those that are about to go take a moment."""
    found = client.plane("root").request("GET", "/apis/kplane.dev/v1/fleets")["items"]
    return [
        each["metadata"]["name"] for each in found if "deletionTimestamp" not in each["metadata"]
    ]


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
        ('{"verb": "apply", "object": {"metadata": "web"}}', "metadata.name"),
        ('{"verb": "scale", "object": {}}', "replicas is missing"),
        ('{"verb": "scale", "object": {}, "replicas": "many"}', "not a number"),
        ("[" * 100_000, "an action is JSON"),
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


@pytest.mark.parametrize("observing", ["snapshot", "diff"])
def test_it_is_what_gymnasium_takes_for_an_environment(
    client: PlaneClient, observing: Observing
) -> None:
    with PlaneEnv(client, TASKS["scale-out"], observing=observing) as env:
        check_env(env, skip_render_check=True)


@pytest.mark.parametrize("observing", ["snapshot", "diff"])
def test_only_what_is_wanted_is_observed(client: PlaneClient, observing: Observing) -> None:
    solve = json.dumps(TASKS["scale-out"].solution[0])
    wanted = ["deployments", "pods"]
    with PlaneEnv(client, TASKS["scale-out"], observing=observing, resources=wanted) as env:
        env.reset()
        shown = json.loads(env.step(solve)[0])

    kinds = {each.get("kind", each.get("resource")) for each in shown}
    assert kinds == ({"Deployment", "Pod"} if observing == "snapshot" else set(wanted))


@pytest.mark.parametrize("observing", ["snapshot", "diff"])
def test_a_seed_repeats_an_episode(client: PlaneClient, observing: Observing) -> None:
    solve = json.dumps(TASKS["scale-out"].solution[0])

    def episode(env: PlaneEnv, seed: int | None) -> tuple[str, str]:
        return env.reset(seed=seed)[0], env.step(solve)[0]

    with PlaneEnv(client, TASKS["scale-out"], seed=1, observing=observing) as env:
        first, again, other, still = (episode(env, seed) for seed in (1, None, 2, None))

    assert first == again
    assert first != other
    assert other == still


def test_actions_of_every_verb_are_drawn_by_a_seed(env: PlaneEnv) -> None:
    space = env.action_space

    def drawn(seed: int) -> list[str]:
        space.seed(seed)
        return [space.sample() for _ in range(50)]

    assert drawn(7) == drawn(7) != drawn(8)
    assert {parse(each)["verb"] for each in drawn(7)} == set(VERBS)
    assert all(each in space for each in drawn(7))


def test_an_episode_begins_with_a_reset(env: PlaneEnv) -> None:
    with pytest.raises(ResetNeeded):
        env.step(NOTHING)


def test_closing_leaves_nothing_behind_and_can_be_repeated(client: PlaneClient) -> None:
    env = PlaneEnv(client, TASKS["scale-out"])
    env.close()
    env.close()

    assert leftovers(client) == []


def test_what_cannot_be_observed_is_refused_at_once(client: PlaneClient) -> None:
    with pytest.raises(PlaneError, match='no resource "pod"'):
        PlaneEnv(client, TASKS["scale-out"], resources=["pod"])

    assert leftovers(client) == []


def test_an_environment_that_cannot_begin_leaves_nothing_behind(client: PlaneClient) -> None:
    task = replace(TASKS["scale-out"], scenario="none")

    with pytest.raises(PlaneError, match='"none"'):
        PlaneEnv(client, task)

    assert leftovers(client) == []


def test_an_environment_may_have_its_time(client: PlaneClient) -> None:
    with PlaneEnv(client, TASKS["scale-out"], ttl_seconds=3600):
        (name,) = leftovers(client)
        spec = client.plane("root").request("GET", f"/apis/kplane.dev/v1/fleets/{name}")["spec"]

    assert spec["ttlSeconds"] == 3600


def test_every_plane_of_many_has_a_seed_of_its_own(client: PlaneClient) -> None:
    solve = json.dumps(TASKS["scale-out"].solution[0])
    envs = FleetVectorEnv(client, TASKS["scale-out"], 2, observing="snapshot")
    ways = []
    for seed in (1, [1, 2], [2, 1]):
        envs.reset(seed=seed)
        ways.append(envs.step([solve] * 2)[0])
    with pytest.raises(ValueError, match="3 seeds for 2 environments"):
        envs.reset(seed=[1, 2, 3])
    with pytest.raises(ValueError, match="1 for 2 environments"):
        envs.step([solve])
    envs.close()

    assert ways[0] == ways[1] == ways[2][::-1]
    assert ways[0][0] != ways[0][1]


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
