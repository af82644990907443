"""What snapshots show of a namespace: always all of it, and only what changed is made anew."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.store.state import Bucket, Collection, PlaneState
from kvestigate.cluster.plane.tenancy.environment.texts import SPAN, Text, Texts

KEY = ("", "configmaps")
NAMES = st.integers(0, 150).map(lambda n: f"n{n:03d}")
STEPS = st.lists(st.tuples(NAMES, st.booleans(), st.booleans()), max_size=200)


def made(name: str, value: int = 0) -> Item:
    obj = {"metadata": {"name": name, "managedFields": [{"manager": "m"}]}, "value": value}
    return Item("default", name, "", value, value, msgspec.json.encode(obj))


def filled(count: int) -> Collection:
    state = PlaneState()
    for number in range(count):
        state = state.put(KEY, made(f"n{number:03d}"))
    return state.collection(KEY)


def only(collection: Collection) -> Bucket:
    return collection.buckets["default"]


def made_of(texts: Texts, bucket: Bucket) -> Text:
    async def pause() -> None:
        pass

    try:
        texts.of(bucket, pause).send(None)
    except StopIteration as ended:
        text: Text = ended.value
        return text
    raise AssertionError("it waits for something")


def shown(texts: Texts, bucket: Bucket) -> list[tuple[str, int]]:
    document = b"[" + b"".join(made_of(texts, bucket).segments).removesuffix(b",") + b"]"
    items = msgspec.json.decode(document)
    assert all("managedFields" not in item["metadata"] for item in items)
    return [(item["metadata"]["name"], item["value"]) for item in items]


def expected(bucket: Bucket) -> list[tuple[str, int]]:
    return sorted((item.name, item.revision) for item in bucket.items.values())


@given(STEPS, st.sampled_from([2**20, 1000, 0]))
def test_it_is_what_the_bucket_has_however_objects_come_change_and_go(
    steps: list[tuple[str, bool, bool]], limit: int
) -> None:
    texts = Texts(limit)
    bucket = only(filled(100))
    past = [bucket]
    for value, (name, adding, looking) in enumerate(steps, start=1):
        if adding:
            bucket = bucket.put(made(name, value))
        elif name in bucket.items:
            bucket = bucket.remove(name)
        if looking:
            assert shown(texts, bucket) == expected(bucket)
            past.append(bucket)
    for before in past:
        assert shown(texts, before) == expected(before)


def test_objects_that_all_go_leave_nothing() -> None:
    texts = Texts()
    bucket = only(filled(2))
    made_of(texts, bucket)

    bucket = bucket.remove("n000").remove("n001")

    assert list(made_of(texts, bucket).segments) == []


def test_a_write_makes_one_segment_anew_and_shares_the_others() -> None:
    texts = Texts()
    bucket = only(filled(8 * SPAN))
    before = made_of(texts, bucket).segments

    after = made_of(texts, bucket.put(made("n100", 7))).segments

    assert len(before) == len(after) == 8
    assert sum(old is new for old, new in zip(before, after, strict=True)) == 7


def test_those_who_stem_from_one_state_share_what_they_did_not_change() -> None:
    texts = Texts()
    start = only(filled(4 * SPAN))
    made_of(texts, start)

    one, other = (made_of(texts, start.put(made("n000", value))).segments for value in (1, 2))

    assert one[0] != other[0]
    assert all(left is right for left, right in zip(one[1:], other[1:], strict=True))


def test_a_segment_that_has_grown_is_split() -> None:
    texts = Texts()
    bucket = only(filled(SPAN))
    assert len(made_of(texts, bucket).segments) == 1

    for number in range(SPAN):
        bucket = bucket.put(made(f"n000-{number:03d}"))

    assert len(made_of(texts, bucket).segments) == 2


def test_beyond_the_limit_those_unused_for_longest_go() -> None:
    texts = Texts(limit=3 * 1700)
    buckets = [only(filled(40)) for _ in range(4)]
    first = made_of(texts, buckets[0])
    assert 1000 < first.size < 1700

    kept = [made_of(texts, bucket) for bucket in buckets[1:3]]
    assert made_of(texts, buckets[0]) is first
    made_of(texts, buckets[3])
    del first, kept

    assert [bucket.derived is not None and bucket.derived() is not None for bucket in buckets] == [
        True,
        False,
        True,
        True,
    ]
