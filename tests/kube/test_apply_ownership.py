"""Managers of fields through writes and applies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvestigate.kube.apply import kubectl, managers, ownership, shapes
from kvestigate.kube.apply.comparing import compare
from kvestigate.kube.apply.fieldset import FieldSet, Malformed, paths, text
from kvestigate.kube.apply.managers import ANCIENT, APPLY, MAX_UPDATERS, UPDATE, Entry, Managers
from kvestigate.kube.apply.ownership import Contested, Writer

Object = dict[str, Any]

SHAPE = shapes.of_definition("io.k8s.api.core.v1.ConfigMap")
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


def writer(name: str, operation: str = UPDATE, *, version: str = "v1", part: str = "") -> Writer:
    key = managers.manager(name, operation, version, part)
    return Writer(key, version, SHAPE, lambda *_: None)


def obj(annotations: Object | None = None, /, **data: str) -> Object:
    meta: Object = {"name": "a"}
    if annotations is not None:
        meta["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def owned(known: Managers) -> dict[str, list[str]]:
    return {
        key.name: sorted(text(path) for path in paths(entry.fields)) for key, entry in known.items()
    }


EMPTY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}


def test_a_write_owns_what_it_changes_and_takes_it_from_others() -> None:
    first = ownership.write(EMPTY, obj(a="1", b="1"), {}, writer("ann"), NOW)
    assert owned(first) == {"ann": [".data", ".data.a", ".data.b"]}
    second = ownership.write(obj(a="1", b="1"), obj(a="2", c="3"), first, writer("bob"), LATER)
    assert owned(second) == {"ann": [".data"], "bob": [".data.a", ".data.c"]}
    times = {key.name: entry.time for key, entry in second.items()}
    assert times == {"ann": NOW, "bob": LATER}


def test_a_write_that_changes_nothing_leaves_the_entries_alone() -> None:
    known = ownership.write(EMPTY, obj(a="1"), {}, writer("ann"), NOW)
    assert ownership.write(obj(a="1"), obj(a="1"), known, writer("bob"), LATER) is known


@pytest.mark.parametrize("other", [writer("ann", part="status"), writer("ann", version="v2")])
def test_subresources_and_versions_have_entries_of_their_own(other: Writer) -> None:
    known = ownership.write(EMPTY, obj(a="1"), {}, writer("ann"), NOW)
    by = Writer(other.manager, other.version, SHAPE, lambda *_: compare(EMPTY, EMPTY, SHAPE))
    after = ownership.write(obj(a="1"), obj(a="1", b="1"), known, by, NOW)
    assert len(after) == 2


def test_managers_of_a_version_that_is_no_longer_served_are_forgotten() -> None:
    gone: Managers = {writer("old", version="v0").manager: Entry({"f:data": {}}, "v0")}
    assert owned(ownership.write(obj(), obj(a="1"), gone, writer("ann"), NOW)) == {
        "ann": [".data.a"]
    }


def test_the_oldest_updates_are_summed_up() -> None:
    known: Managers = {}
    for count in range(MAX_UPDATERS + 3):
        before = obj(**{f"k{each:02}": "1" for each in range(count)}) if count else EMPTY
        after = obj(**{f"k{each:02}": "1" for each in range(count + 1)})
        known = ownership.write(before, after, known, writer(f"m{count:02}"), NOW)
    names = sorted(key.name for key in known)
    assert len(names) == MAX_UPDATERS
    assert names[:2] == [ANCIENT, "m04"]
    assert owned(known)[ANCIENT] == [".data", *(f".data.k{each:02}" for each in range(4))]


def apply(
    live: Object, config: Object, known: Managers, name: str, *, force: bool = False
) -> tuple[Object | None, Managers]:
    return ownership.apply(live, config, known, writer(name, APPLY), force=force, now=LATER)


def test_an_apply_owns_what_it_names_and_removes_what_it_named() -> None:
    new, known = apply(EMPTY, obj(a="1", b="1"), {}, "ann")
    assert new == obj(a="1", b="1")
    assert owned(known) == {"ann": [".data.a", ".data.b"]}
    newer, known = apply(new, obj(b="1"), known, "ann")
    assert newer == obj(b="1")
    assert owned(known) == {"ann": [".data.b"]}


def test_who_applies_more_than_before_leaves_alone_what_nobody_named() -> None:
    new, known = apply(EMPTY, obj(a="1"), {}, "ann")
    assert new is not None
    live = obj(a="1", b="1", z="of nobody")
    known = ownership.write(new, obj(a="1", b="1"), known, writer("bob"), NOW)
    newer, known = apply(live, obj(a="2", c="1"), known, "ann")
    assert newer == obj(a="2", b="1", c="1", z="of nobody")
    assert owned(known) == {"ann": [".data.a", ".data.c"], "bob": [".data.b"]}


def test_what_another_owns_too_stays() -> None:
    new, known = apply(EMPTY, obj(a="1", b="1"), {}, "ann")
    assert new is not None
    same, known = apply(new, obj(a="1"), known, "bob")
    assert same is None
    left, known = apply(new, obj(c="1"), known, "ann")
    assert left == obj(a="1", c="1")
    assert owned(known) == {"ann": [".data.c"], "bob": [".data.a"]}


def test_applying_the_same_again_changes_neither_object_nor_time() -> None:
    new, known = apply(EMPTY, obj(a="1"), {}, "ann")
    assert new is not None
    by = writer("ann", APPLY)
    again, after = ownership.apply(new, obj(a="1"), known, by, force=False, now="2027")
    assert again is None
    assert after == known


def test_a_conflict_names_every_field_and_its_managers() -> None:
    known = ownership.write(EMPTY, obj(a="1", b="1"), {}, writer("ann", part="scale"), NOW)
    new, known = apply(obj(a="1", b="1"), obj(c="1"), known, "bob")
    assert new is not None
    with pytest.raises(Contested) as caught:
        apply(new, obj(a="2", b="2", c="2"), known, "cid")
    refusal = ownership.refusal(caught.value)
    assert refusal.message == (
        'Apply failed with 3 conflicts: conflicts with "ann" with subresource "scale" using v1:\n'
        '- .data.a\n- .data.b\nconflicts with "bob":\n- .data.c'
    )
    assert [(cause["reason"], cause["field"]) for cause in refusal.causes] == [
        ("FieldManagerConflict", ".data.a"),
        ("FieldManagerConflict", ".data.b"),
        ("FieldManagerConflict", ".data.c"),
    ]
    forced, after = apply(new, obj(a="2", b="2", c="2"), known, "cid", force=True)
    assert forced == obj(a="2", b="2", c="2")
    assert owned(after) == {"ann": [".data"], "cid": [".data.a", ".data.b", ".data.c"]}


def test_kubectl_takes_over_what_its_annotation_says_and_nothing_else() -> None:
    last = json.dumps(obj(a="1"))
    live = obj({kubectl.LAST_APPLIED: last}, a="1", b="1")
    known = ownership.write(EMPTY, live, {}, writer("kubectl-client-side-apply"), NOW)
    by = writer(kubectl.NAME, APPLY)
    with pytest.raises(Contested) as caught:
        kubectl.apply(live, obj(a="2", b="2"), known, by, force=False, now=LATER)
    assert [text(path) for path in paths(next(iter(caught.value.fields.values())))] == [".data.b"]
    new, after = kubectl.apply(live, obj(a="2"), known, by, force=False, now=LATER)
    assert new is not None
    assert new["data"] == {"a": "2", "b": "1"}
    assert json.loads(new["metadata"]["annotations"][kubectl.LAST_APPLIED]) == obj(a="2")
    assert owned(after)["kubectl"] == [".data.a"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"apiVersion":"v9"}', '{"apiVersion":"v1","x":1}']
)
def test_an_annotation_that_says_nothing_of_use_helps_nobody(text: str) -> None:
    live = obj({kubectl.LAST_APPLIED: text}, a="1")
    known = ownership.write(EMPTY, live, {}, writer("other"), NOW)
    with pytest.raises(Contested):
        kubectl.apply(live, obj(a="2"), known, writer(kubectl.NAME, APPLY), force=False, now=LATER)


FIELDS: FieldSet = {"f:data": {"f:a": {}}}


def entry(name: str, operation: str, **more: Any) -> Object:
    base = {"manager": name, "operation": operation, "apiVersion": "v1", "time": NOW}
    return {**base, "fieldsType": "FieldsV1", "fieldsV1": FIELDS, **more}


def test_entries_are_ordered_by_operation_time_and_name() -> None:
    entries = [
        entry("b", APPLY),
        entry("a", APPLY, time=LATER),
        entry("c", UPDATE),
        entry("c", UPDATE, subresource="status"),
        entry("d", UPDATE),
    ]
    assert managers.encode(managers.decode(entries[::-1])) == entries


@pytest.mark.parametrize(
    "wrong",
    [
        entry("a", "Delete"),
        entry("a", UPDATE, apiVersion=""),
        entry("a", UPDATE, fieldsType="FieldsV2"),
        entry("a", UPDATE, fieldsV1={"nonsense": {}}),
        {},
    ],
)
def test_entries_that_make_no_sense_are_refused(wrong: Object) -> None:
    with pytest.raises(Malformed):
        managers.decode_foreign([wrong])


@pytest.mark.parametrize(
    ("entries", "resets"),
    [([], True), ([{}], True), (None, False), ([{}, {}], False), ([entry("a", UPDATE)], False)],
)
def test_is_reset(entries: Any, resets: bool) -> None:
    assert managers.is_reset(entries) is resets
