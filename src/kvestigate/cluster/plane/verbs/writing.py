"""The pipeline of every write: default, admit, validate, then commit.

create, update, patch, server-side apply and the subresources that change an object all end here:
`prepare_new` and `commit_new` for new objects, `change` for stored ones. Kinds plug in with hooks
(`kind.default`, `kind.on_create`, `validate`), admission with rules, policies and webhooks.

The order of the steps is kube-apiserver's, because clients can observe it: webhooks see defaulted
objects, a request with several faults gets the error of the first step that finds one, and
warnings come before policies and quotas are asked. Creating and updating differ in more than the
old object. The rules that are built into the server run before webhooks on a create and after
them on an update, and a pod's generation counts what they filled in.

**Races.** Other requests run at every `await`. So decisions are made against `plane.tip`, which
has the writes that are on their way to disk, and are committed on the condition that the object
still has the revision that was read. `change` repeats the whole decision when another writer was
faster (kube-apiserver's GuaranteedUpdate), unless the client named the revision itself. What a
write takes from a common stock (cluster IPs, node ports, quota) is not protected by the
object's own revision. It is taken from a scene that is made after the last `await`, and checked
again after validating webhooks (`kind.recheck`), which may take seconds: two Services could get the
same node port until that was done.

**Fairness.** A large object may take milliseconds to read and to validate. Between steps `breathe`
lets the requests of other planes run. A repeated `change` does not: with a busy object, a writer
that lets others go first every time would lose every race.

**Long work.** What a tenant can make long (expressions, patterns, schemas) is judged in a thread
beside the loop (`Call.aside`), which is an `await` like any other.

**Memory.** Many writes wait for the disk at a time. While they wait they keep the encoded bytes
but not the objects, which are hundreds of dicts each. When 64 writers kept theirs, every request
began in cold memory, and the garbage collector had all of them to look at. This is why preparing
and committing are two functions, and why `create` drops its references in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from kvestigate.cluster.plane.admission.interface import SubresourceObject, Write
from kvestigate.cluster.plane.admission.policies.asking import Asking, asking
from kvestigate.cluster.plane.admission.policies.evaluation import BINDINGS as POLICY_BINDINGS
from kvestigate.cluster.plane.admission.registry import admit, approve, charge
from kvestigate.cluster.plane.kinds.custom.kind import DEFINITIONS
from kvestigate.cluster.plane.model import metadata, objects
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.store.errors import Exists, Mismatch, Missing
from kvestigate.cluster.plane.store.model import (
    Change,
    ChangeType,
    Item,
    Mutation,
    Put,
    Remove,
    fill,
    unfilled,
)
from kvestigate.cluster.plane.verbs import converting, managed
from kvestigate.errors import ApiError, BadRequest
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause

T = TypeVar("T")

CONFLICT_RETRIES = 5
"""How often a change is tried, if the client did not name the revision to change."""


class New(NamedTuple):
    """A new object that passed admission and validation."""

    put: Put
    extra: list[Mutation]
    """Mutations to commit together with it: a quota's new usage."""


class _Update(NamedTuple):
    """An update that passed admission and validation."""

    mutations: list[Mutation]
    answer: Item | None
    """The object to answer with, if not the one that is stored."""


async def prepare_new(call: Call, obj: Object, *, tracked: bool = False) -> New:
    """Default, admit and validate a new object; ApiError if it is refused.

    `tracked`: the managed fields of the object are up to date, as after an apply.
    """
    kind = call.kind
    if obj["metadata"].get("resourceVersion", "") not in ("", "0"):
        raise ApiError("resourceVersion should not be set on objects to be created")
    check_namespace(call, obj)
    metadata.merge_owners(obj, call.warnings)
    metadata.begin(obj, kind, call.namespace, call.clock.now(), call.random)
    submitted_status = None
    if kind.has_status and not kind.keeps_status_on_create:
        submitted_status = obj.get("status")
        kind.reset_status(obj)
    kind.default(obj)
    if not tracked:
        await _unhurried(call, lambda: managed.track(call, obj, None))
    await call.breathe()
    write = _write(call, "CREATE", kind, obj, None, call.scene(call.plane.tip))
    admit(write)
    webhooks = asking(write, call.backends, call.random, call.aside, converting.converter(call))
    if webhooks is not None and await _mutate_new(webhooks, kind, obj, submitted_status):
        metadata.merge_owners(obj, call.warnings)
    await call.breathe()
    # The newest state: addresses and ports that are free in it are allocated from here on.
    scene = write.scene = call.scene(call.plane.tip)
    # After admission: what the server derives (a pod's QoS class) depends on what rules added.
    kind.on_create(obj, scene)
    problems = await _unhurried(call, lambda: _problems_of_new(call, obj, scene))
    if problems:
        await call.breathe()
        raise causes.reject(
            kind.resource.kind, kind.resource.group, obj["metadata"].get("name", ""), problems
        )
    call.warnings.extend(kind.warnings(obj))
    waited = await _approve(call, write)
    if webhooks is not None:
        await webhooks.validate()
    if waited or webhooks is not None:
        write.scene = call.scene(call.plane.tip)
        kind.recheck(obj, None, write.scene)
    charge(write)
    return New(await converting.put(call, obj, expect=0), write.extra)


def _problems_of_new(call: Call, obj: Object, scene: Scene) -> list[Cause]:
    judge = call.served.judge
    problems = metadata.check(obj["metadata"], call.kind)
    problems += judge.validate(obj, scene)
    problems += judge.validate_create(obj, scene)
    if call.served is not judge:
        problems += call.served.validate_create(obj, scene)
    return problems


def _problems_of_change(
    call: Call, new: Object, old: Object, scene: Scene, *, status: bool
) -> list[Cause]:
    judge = call.served.judge
    problems = metadata.check_changed(new, old, call.kind)
    validate = judge.validate_status if status else judge.validate_changed
    problems += validate(new, old, scene)
    return problems


_LARGE = 32_768
"""Bytes of an object, stored or sent, whose changes take so long that others would wait."""


async def _unhurried(call: Call, work: Callable[[], T], stored: int = 0) -> T:
    """The result of work on an object: beside the loop, if that can be made long.

    `stored` is the length of the object before.
    """
    long = call.served.takes_long or max(stored, len(call.request.body)) > _LARGE
    return await call.aside(work) if long else work()


async def _approve(call: Call, write: Write) -> bool:
    """Ask the rules and policies that may only refuse; whether that took an `await`."""
    if write.kind.takes_long or POLICY_BINDINGS in write.scene.state.collections:
        await call.aside(lambda: approve(write))
        return True
    approve(write)
    return write.served.takes_long


async def _mutate_new(
    webhooks: Asking, kind: Kind, obj: Object, submitted_status: Object | None
) -> bool:
    """Let mutating policies and webhooks change a new object; whether they did.

    They see the submitted status, but their changes to it are dropped.
    """
    if not kind.has_status or kind.keeps_status_on_create:
        return await webhooks.mutate(admit)
    initial = {"status": obj["status"]} if "status" in obj else {}
    if submitted_status:
        obj["status"] = submitted_status
    changed = await webhooks.mutate(admit)
    _restore(obj, initial, "status")
    return changed


async def pass_admission(
    call: Call, write: Write, check: Callable[[], None] = lambda: None
) -> None:
    """Admission of a write that stores no object of its own, or removes one.

    `check` validates between the rules that may change the object and those that may not.
    """
    webhooks = asking(write, call.backends, call.random, call.aside, converting.converter(call))
    admit(write)
    if webhooks is not None:
        await webhooks.mutate(admit)
    check()
    await _approve(call, write)
    if webhooks is not None:
        await webhooks.validate()


def subresource_write(call: Call, kind: Kind, obj: Object, *, dry_run: bool) -> Write:
    """The creation of a subresource that is not stored itself: a Binding, an Eviction."""
    write = _write(call, "CREATE", kind, obj, None, call.scene(call.plane.tip))
    write.served, write.dry_run = kind, dry_run
    return write


def deletion_write(call: Call, obj: Object, scene: Scene, *, dry_run: bool) -> Write:
    write = _write(call, "DELETE", call.kind, obj, obj, scene)
    write.dry_run = dry_run
    return write


def _write(
    call: Call, operation: str, kind: Kind, new: Object, old: Object | None, scene: Scene
) -> Write:
    return Write(
        operation,
        kind,
        new,
        old,
        call.info,
        scene,
        call.warnings,
        call.served,
        operation == "CREATE" and not call.info.subresource,
        call.dry_run,
        notes=call.notes,
    )


async def _prepare_update(
    call: Call,
    new: Object,
    old: Object,
    *,
    tracked: bool,
    shown_as: SubresourceObject | None,
    may_yield: bool,
    stored: int,
) -> Write:
    """Default, admit and validate a changed object; ApiError if it is refused."""
    kind = call.kind
    check_namespace(call, new)
    metadata.merge_owners(new, call.warnings)
    status = call.info.subresource in kind.status_subresources
    _carry_over(new, old, kind, status=status)
    kind.default_changed(new, old)
    if not tracked:
        await _unhurried(call, lambda: managed.track(call, new, old), stored)
    if may_yield:
        await call.breathe()
    scene = call.scene(call.plane.tip)
    write = _write(call, "UPDATE", kind, new, old, scene)
    write.shown_as = shown_as
    webhooks = asking(write, call.backends, call.random, call.aside, converting.converter(call))
    # On an update, the rules that are built in see the object after webhooks changed it.
    if webhooks is not None and await webhooks.mutate(lambda write: None):
        metadata.merge_owners(new, call.warnings)
        _carry_over(new, old, kind, status=status)
    kind.on_update(new, old, scene)
    admit(write)
    if kind.counts_generations and not status:
        metadata.advance_generation(new, old, kind)
    problems = await _unhurried(
        call, lambda: _problems_of_change(call, new, old, scene, status=status), stored
    )
    if problems:
        resource = kind.resource
        raise causes.reject(resource.kind, resource.group, new["metadata"]["name"], problems)
    if not status:
        call.warnings.extend(await _unhurried(call, lambda: kind.update_warnings(new, old)))
    waited = await _approve(call, write)
    if webhooks is not None:
        await webhooks.validate()
    if waited or webhooks is not None:
        write.scene = call.scene(call.plane.tip)
        kind.recheck(new, old, write.scene)
    charge(write)
    return write


def _carry_over(new: Object, old: Object, kind: Kind, *, status: bool) -> None:
    """Restore the fields of the old object that this write may not change."""
    metadata.carry_over(new, old)
    if status:
        _restrict_to_status(new, old, kind)
    elif kind.has_status:
        _restore(new, old, "status")


def check_namespace(call: Call, obj: Object) -> None:
    meta = obj["metadata"]
    namespace = meta.get("namespace") or ""
    if not call.kind.resource.namespaced:
        meta.pop("namespace", None)
    elif namespace and namespace != call.namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


async def commit_new(call: Call, new: New) -> Item:
    put = new.put
    if call.dry_run:
        if call.plane.tip.get(put.resource, put.namespace, put.name):
            raise call.already_exists(put.name)
        return await converting.shown(call, dry_run_item(call, put.body, put.name))
    try:
        changes = await call.commit([put, *new.extra])
    except Exists:
        raise call.already_exists(put.name) from None
    return await converting.shown(call, changes[0].item)


async def change(
    call: Call,
    alter: Callable[[Object, Item], Object | None],
    *,
    pinned: bool = False,
    tracked: bool = False,
    shown_as: SubresourceObject | None = None,
) -> Item:
    """Update the object that the path names; again if another writer was faster.

    `alter` gets a fresh dict of the stored object and returns the new one (None: no change).
    `pinned`: the client named the revision to change, so a conflict is its to resolve.
    `tracked`: `alter` has updated the managed fields.
    `shown_as`: the object of a subresource that webhooks see instead, as a Scale of a Deployment.
    """
    for attempt in range(CONFLICT_RETRIES):
        update = await _prepare(
            call, alter, tracked=tracked, shown_as=shown_as, may_yield=attempt == 0
        )
        if isinstance(update, Item):
            return update
        try:
            changes = await commit(call, update.mutations)
        except Mismatch:
            if pinned or attempt == CONFLICT_RETRIES - 1:
                raise call.modified() from None
        except Missing:
            raise call.not_found() from None
        else:
            return update.answer or await converting.shown(call, changes[0].item)
    raise AssertionError("unreachable")


async def _prepare(
    call: Call,
    alter: Callable[[Object, Item], Object | None],
    *,
    tracked: bool,
    shown_as: SubresourceObject | None,
    may_yield: bool,
) -> _Update | Item:
    """The update to commit, or the object to answer with if there is nothing to commit."""
    stored = call.find(call.plane.tip)
    item = await converting.shown(call, stored)
    old = call.kind.from_stored(objects.read(item))
    current = _alterable(call, item, old)
    if may_yield:
        await call.breathe()
    size = len(item.data)
    new = await _unhurried(call, lambda: alter(current, item), size)
    if new is None:
        return item
    if may_yield:
        await call.breathe()
    write = await _prepare_update(
        call, new, old, tracked=tracked, shown_as=shown_as, may_yield=may_yield, stored=size
    )
    if not objects.differ(new, old):
        managed.settle(new, old)
        # What is stored at another version is written anew: so users migrate their objects.
        if objects.same(new, old, item) and stored.data.startswith(call.kind.storage.head):
            return item
    if call.dry_run:
        body = (await converting.put(call, new, item.revision)).body
        dry = dry_run_item(call, body, item.name, item.revision)
        return await converting.shown(call, dry)
    if not new["metadata"].get("deletionTimestamp") or not is_removable(call, new):
        put = await converting.put(call, new, expect=item.revision)
        return _Update([put, *write.extra], None)
    # The last finalizer is gone. Watchers see the object as it was stored; only the client that
    # removed the finalizer gets it without.
    removal = Remove(call.kind.key, item.namespace, item.name, item.revision)
    removed_with_it = call.kind.removed_with(new, write.scene)
    last = dry_run_item(call, objects.body(new, call.kind), item.name, item.revision)
    return _Update([removal, *write.extra, *removed_with_it], last)


def _alterable(call: Call, item: Item, old: Object) -> Object:
    """A copy of `old` that may be altered; a shallow one if the hooks of the kind permit that."""
    if call.kind.shares_on_update and call.served is call.kind:
        return {name: value.copy() if type(value) is dict else value for name, value in old.items()}
    return call.kind.from_stored(objects.read(item))


async def commit_decided(call: Call, decide: Callable[[], list[Mutation]]) -> None:
    """Commit what is decided by the newest state; decide again if another writer was faster."""
    for _ in range(CONFLICT_RETRIES):
        try:
            await call.commit(decide())
        except Mismatch:
            continue
        except Missing:
            raise call.not_found() from None
        return
    raise call.modified()


async def commit(call: Call, mutations: list[Mutation]) -> list[Change]:
    """Commit mutations; the removal of a CustomResourceDefinition ends the watches of its kind."""
    changes = await call.commit(mutations)
    for change in changes:
        if change.resource == DEFINITIONS and change.type is ChangeType.DELETED:
            plural, _, group = change.item.name.partition(".")
            call.plane.end_watches((group, plural))
    return changes


def is_removable(call: Call, obj: Object) -> bool:
    """Whether an object that is being deleted has neither finalizers nor a grace period left."""
    return not call.kind.has_finalizers(obj) and not obj["metadata"].get(
        "deletionGracePeriodSeconds"
    )


def dry_run_item(call: Call, body: bytes, name: str, revision: int = 0, uid: str = "") -> Item:
    """The object that a dry run answers with; its revision is the old object's, or none."""
    data = fill(body, revision) if revision else unfilled(body)
    return Item(call.namespace, name, uid, revision, 0, data)


def _restrict_to_status(new: Object, old: Object, kind: Kind) -> None:
    """Make `new` the old object with the status (and, for some kinds, the metadata) of `new`."""
    status = new.get("status")
    meta = new["metadata"]
    if kind.status_carries_metadata:
        for field in kind.status_keeps:
            _restore(meta, old["metadata"], field)
    else:
        managed_fields = meta.get("managedFields")
        meta = dict(old["metadata"])
        if managed_fields is not None:
            meta["managedFields"] = managed_fields
    new.clear()
    new.update({**old, "metadata": meta})
    if status is None:
        new.pop("status", None)
    else:
        new["status"] = status


def _restore(new: Object, old: Object, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)
