"""Own writes are seen at once, and old news never undo them."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from kvestigate.client.cache import Cache, Change, Key
from kvestigate.kube.views.meta import PartialObject

KEY = Key("default", "a")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def thing(version: int, name: str = "a", uid: str = "1", **meta: object) -> PartialObject:
    identity = {"namespace": "default", "name": name, "uid": uid}
    return msgspec.convert(
        {"metadata": {**identity, "resourceVersion": str(version), **meta}}, PartialObject
    )


@pytest.fixture
def cache() -> Cache[PartialObject]:
    return Cache()


def test_an_own_write_is_there_before_the_watch_tells_of_it(cache: Cache[PartialObject]) -> None:
    cache.assume(thing(5))
    assert cache.get(KEY) == thing(5)


def test_older_news_do_not_undo_an_own_write(cache: Cache[PartialObject]) -> None:
    cache.apply("MODIFIED", thing(3))
    cache.assume(thing(5, labels={"new": "yes"}))
    cache.apply("MODIFIED", thing(4))
    found = cache.get(KEY)
    assert found is not None
    assert found.metadata.labels == {"new": "yes"}


def test_what_came_and_went_before_the_answer_does_not_stay(cache: Cache[PartialObject]) -> None:
    cache.apply("MODIFIED", thing(5))
    cache.apply("DELETED", thing(6))
    cache.assume(thing(5))
    assert cache.get(KEY) is None


def test_what_the_watch_passed_in_silence_is_gone(cache: Cache[PartialObject]) -> None:
    cache.assume(thing(5))
    cache.apply("MODIFIED", thing(9, "b", "2"))
    assert cache.get(KEY) is None


def test_a_list_drops_what_was_written_before_it_and_is_not_in_it(
    cache: Cache[PartialObject],
) -> None:
    cache.assume(thing(5))
    cache.replace([], "6")
    assert cache.get(KEY) is None


def test_a_list_keeps_what_was_written_after_it(cache: Cache[PartialObject]) -> None:
    cache.apply("ADDED", thing(3))
    cache.assume(thing(7, labels={"new": "yes"}))
    cache.assume(thing(8, "b", "2"))
    cache.replace([thing(3)], "6")
    assert {view.metadata.resource_version for view in cache} == {"7", "8"}


def test_a_list_tells_nothing_of_own_writes_that_it_shows(cache: Cache[PartialObject]) -> None:
    cache.assume(thing(4))
    cache.assume(thing(5, "b", "2"))
    told: list[Change[PartialObject]] = []
    cache.subscribe(told.append)
    told.clear()
    cache.replace([thing(9, "0", "3"), thing(4), thing(5, "b", "2")], "9")
    assert [(change.type, change.key.name) for change in told] == [("ADDED", "0")]


def test_after_a_restore_a_list_of_older_versions_counts(cache: Cache[PartialObject]) -> None:
    cache.replace([thing(50)], "90")
    cache.replace([thing(40)], "45")
    cache.assume(thing(46))
    held = cache.get(KEY)
    assert held is not None
    assert held.metadata.resource_version == "46"


def test_a_doomed_object_stays_doomed_whatever_old_news_say(cache: Cache[PartialObject]) -> None:
    cache.apply("MODIFIED", thing(3))
    cache.assume_doomed(thing(3), NOW)
    cache.apply("MODIFIED", thing(4))
    found = cache.get(KEY)
    assert found is not None
    assert found.metadata.deletion_timestamp == NOW


def test_a_successor_by_the_same_name_is_not_doomed(cache: Cache[PartialObject]) -> None:
    cache.apply("MODIFIED", thing(3))
    cache.assume_doomed(thing(3), NOW)
    cache.assume(thing(7, uid="2"))
    cache.apply("DELETED", thing(6))
    found = cache.get(KEY)
    assert found is not None
    assert found.metadata.deletion_timestamp is None


def test_dooming_twice_is_no_news(cache: Cache[PartialObject]) -> None:
    cache.apply("MODIFIED", thing(3))
    told: list[Change[PartialObject]] = []
    cache.subscribe(told.append)
    told.clear()
    cache.assume_doomed(thing(3), NOW)
    cache.assume_doomed(thing(3), NOW)
    assert len(told) == 1


def test_an_index_follows_its_objects(cache: Cache[PartialObject]) -> None:
    cache.apply("MODIFIED", thing(1, labels={"app": "x"}))
    cache.add_index("app", lambda it: (it.metadata.labels.get("app", ""),))
    assert [it.metadata.name for it in cache.find("app", "x")] == ["a"]
    cache.apply("MODIFIED", thing(2, labels={"app": "y"}))
    assert cache.find("app", "x") == []
    assert len(cache.find("app", "y")) == 1
    cache.apply("MODIFIED", thing(3, labels={"app": "y"}))
    assert [it.metadata.resource_version for it in cache.find("app", "y")] == ["3"]
    cache.apply("DELETED", thing(3))
    assert cache.find("app", "y") == []
    assert list(cache) == []
