"""Objects go when that is meant, and what goes with them is known before."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.client.access import Access
from kvestigate.client.api import Propagation
from kvestigate.errors import NotFound, UsageError
from kvestigate.manifests.delete import GONE, LEAVING, UNTOUCHED, DeleteOptions, delete
from kvestigate.manifests.dependents import Owned, doomed
from tests.contexts import acting, planning
from tests.upstream.judge import Judge

Json = dict[str, Any]


def create(judge: Judge, namespace: str, name: str, **metadata: Any) -> str:
    """A ConfigMap; gives its uid."""
    body = {"metadata": {"name": name, **metadata}}
    uid: str = judge.post(f"/api/v1/namespaces/{namespace}/configmaps", body)["metadata"]["uid"]
    return uid


def owner(name: str, uid: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}


async def test_a_preview_deletes_nothing(access: Access, judge: Judge, namespace: str) -> None:
    create(judge, namespace, "a")
    seen = await delete(planning(access), DeleteOptions("configmap", "a"))
    assert (seen.kind, seen.namespace, seen.name) == ("ConfigMap", namespace, "a")
    assert (seen.outcome, seen.with_it.counts) == (UNTOUCHED, {})
    found = judge.get(f"/api/v1/namespaces/{namespace}/configmaps/a")
    assert "deletionTimestamp" not in found["metadata"]


async def test_it_goes(access: Access, judge: Judge, namespace: str) -> None:
    create(judge, namespace, "a")
    done = await delete(acting(access), DeleteOptions("cm", "a"))
    assert (done.outcome, done.finalizers) == (GONE, ())
    assert not judge.answers(f"/api/v1/namespaces/{namespace}/configmaps/a")


async def test_what_it_owns_is_counted_down_the_line(
    access: Access, judge: Judge, namespace: str
) -> None:
    top = create(judge, namespace, "top")
    middle = create(judge, namespace, "middle", ownerReferences=[owner("top", top)])
    create(judge, namespace, "leaf", ownerReferences=[owner("middle", middle)])
    other = create(judge, namespace, "other")
    both = [owner("top", top), owner("other", other)]
    create(judge, namespace, "shared", ownerReferences=both)
    seen = await delete(
        planning(access), DeleteOptions("cm", "top", propagation=Propagation.ORPHAN)
    )
    assert seen.with_it.counts == {"configmaps": 2}
    assert seen.with_it.unseen == ()


async def test_a_namespace_takes_all_that_is_in_it(
    access: Access, judge: Judge, namespace: str
) -> None:
    create(judge, namespace, "a")
    create(judge, namespace, "b")
    seen = await delete(planning(access), DeleteOptions("ns", namespace))
    assert seen.with_it.counts["configmaps"] >= 2
    assert seen.namespace == ""


async def test_a_finalizer_that_is_not_done_is_named_at_the_deadline(
    access: Access, judge: Judge, namespace: str
) -> None:
    create(judge, namespace, "a", finalizers=["example.org/slow"])
    done = await delete(acting(access), DeleteOptions("cm", "a", timeout=0.3))
    assert (done.outcome, done.finalizers) == (LEAVING, ("example.org/slow",))
    path = f"/api/v1/namespaces/{namespace}/configmaps/a"
    assert judge.get(path)["metadata"]["deletionTimestamp"]
    judge.merge(path, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    ("kind", "name", "error", "hint"),
    [
        ("configmop", "a", UsageError, "did you mean configmaps?"),
        ("configmap", "settinks", NotFound, "did you mean 'settings'?"),
        ("node", "nowhere", NotFound, "none with a similar name"),
    ],
)
async def test_what_is_not_there(
    access: Access,
    judge: Judge,
    namespace: str,
    kind: str,
    name: str,
    error: type[UsageError | NotFound],
    hint: str,
) -> None:
    create(judge, namespace, "settings")
    with pytest.raises(error) as refused:
        await delete(acting(access), DeleteOptions(kind, name))
    assert hint in (refused.value.hint or "")


def test_only_what_has_no_owner_left_is_doomed() -> None:
    def owned(uid: str, *owners: str) -> Owned:
        return Owned(uid, "pods", frozenset(owners))

    objects = [owned("c", "b"), owned("b", "a"), owned("d", "a", "x"), owned("e", "x")]
    assert {it.uid for it in doomed("a", objects)} == {"b", "c"}
