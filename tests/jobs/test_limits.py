"""How long each phase of a task may take."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.errors import InputError
from kvestigate.jobs.tasks.limits import Limits, with_limits
from kvestigate.jobs.tasks.parse import parse_task

DAY = 86400


@pytest.mark.parametrize(
    ("config", "limits"),
    [
        (None, Limits(DAY, 30 * DAY, 7 * DAY, "")),
        ({"kubernetes": {"provision_timeout": 600}}, Limits(start_seconds=600)),
        ({"kubernetes": {"provision_timeout": -1}}, Limits(start_seconds=2**31 - 1)),
        ({"kubernetes": {"kueue": {"local_queue_name": "ml"}}}, Limits(queue="ml")),
        ({"kvestigate": {"deadline": "90m"}}, Limits(deadline_seconds=5400)),
        ({"kvestigate": {"ttl": "2d"}}, Limits(ttl_seconds=2 * DAY)),
        ({"kvestigate": {"ttl": "30"}}, Limits(ttl_seconds=30)),
    ],
)
def test_they_are_read_from_the_tasks_config(config: Any, limits: Limits) -> None:
    task = parse_task({"run": "x", "config": config})
    assert (task.limits, task.ignored) == (limits, ())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (3, "config: 3 is not a mapping"),
        ({"kubernetes": []}, "config.kubernetes: [] is not a mapping"),
        ({"kubernetes": {"provision_timeout": 0}}, "config.kubernetes.provision_timeout: 0"),
        ({"kubernetes": {"kueue": {"queue": "a"}}}, "config.kubernetes.kueue.queue: no such field"),
        (
            {"kubernetes": {"kueue": {"local_queue_name": "A b"}}},
            "local_queue_name: 'A b' is not the name of a LocalQueue",
        ),
        (
            {"kvestigate": {"deadline": "soon"}},
            "deadline: 'soon' is not a duration",
        ),
        ({"kvestigate": {"deadline": True}}, "config.kvestigate.deadline: True is not a duration"),
        ({"kvestigate": {"ttl": "99999999w"}}, "config.kvestigate.ttl: "),
        ({"kvestigate": {"deadlin": 1}}, "config.kvestigate.deadlin: no such field"),
    ],
)
def test_a_mistake_is_named_with_its_path(config: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_task({"run": "x", "config": config})
    assert message in str(caught.value)


def test_flags_are_on_top_of_the_file() -> None:
    document = {"run": "x", "config": {"kvestigate": {"ttl": 5, "deadline": 6}}}
    changed = with_limits(document, queue="ml", start=60, deadline=7.5)
    assert parse_task(changed).limits == Limits(60, 7, 5, "ml")
    assert with_limits({"run": "x"}) == {"run": "x"}
