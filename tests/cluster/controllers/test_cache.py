"""Own writes are seen at once, and old news never undo them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kvestigate.client.informer import Key
from kvestigate.cluster.controllers.cache import Cache, Change
from kvestigate.kube.views.meta import PartialObject
from tests.cluster.controllers.builders import view

KEY = Key("default", "a")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def thing(version: int, name: str = "a", uid: str = "1", **meta: object) -> PartialObject:
    return view(PartialObject, name, meta={"resourceVersion": str(version), "uid": uid, **meta})


@pytest.fixture
def cache() -> Cache[PartialObject]:
    return Cache()


def test_an_own_write_is_there_before_the_watch_tells_of_it(cache: Cache[PartialObject]) -> None:
    cache.assume(thing(5))
    assert cache.get(KEY) == thing(5)


def test_older_news_do_not_undo_an_own_write(cache: Cache[PartialObject]) -> None:
    cache.learn(KEY, thing(3))
    cache.assume(thing(5, labels={"new": "yes"}))
    cache.learn(KEY, thing(4))
    found = cache.get(KEY)
    assert found is not None
    assert found.metadata.labels == {"new": "yes"}


def test_what_came_and_went_before_the_answer_does_not_stay(cache: Cache[PartialObject]) -> None:
    cache.learn(KEY, thing(5))
    cache.learn_gone(KEY, thing(6))
    cache.assume(thing(5))
    assert cache.get(KEY) is None


def test_what_the_watch_passed_in_silence_is_gone(cache: Cache[PartialObject]) -> None:
    cache.assume(thing(5))
    cache.learn(Key("default", "b"), thing(9, "b", "2"))
    assert cache.get(KEY) is None


def test_a_doomed_object_stays_doomed_whatever_old_news_say(cache: Cache[PartialObject]) -> None:
    cache.learn(KEY, thing(3))
    cache.assume_doomed(thing(3), NOW)
    cache.learn(KEY, thing(4))
    found = cache.get(KEY)
    assert found is not None
    assert found.metadata.deletion_timestamp == NOW


def test_a_successor_by_the_same_name_is_not_doomed(cache: Cache[PartialObject]) -> None:
    cache.learn(KEY, thing(3))
    cache.assume_doomed(thing(3), NOW)
    cache.learn(KEY, thing(7, uid="2"))
    cache.learn_gone(KEY, thing(6))
    found = cache.get(KEY)
    assert found is not None
    assert found.metadata.deletion_timestamp is None


def test_dooming_twice_is_no_news(cache: Cache[PartialObject]) -> None:
    cache.learn(KEY, thing(3))
    told: list[Change[PartialObject]] = []
    cache.subscribe(told.append)
    cache.assume_doomed(thing(3), NOW)
    cache.assume_doomed(thing(3), NOW)
    assert len(told) == 1


def test_an_index_follows_its_objects(cache: Cache[PartialObject]) -> None:
    cache.learn(KEY, thing(1, labels={"app": "x"}))
    cache.add_index("app", lambda it: (it.metadata.labels.get("app", ""),))
    assert [it.metadata.name for it in cache.find("app", "x")] == ["a"]
    cache.learn(KEY, thing(2, labels={"app": "y"}))
    assert cache.find("app", "x") == []
    assert len(cache.find("app", "y")) == 1
    cache.learn(KEY, thing(3, labels={"app": "y"}))
    assert [it.metadata.resource_version for it in cache.find("app", "y")] == ["3"]
    cache.learn_gone(KEY, thing(3))
    assert cache.find("app", "y") == []
    assert list(cache) == []
