"""What creating and updating have in common: judge an object, then commit it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kvestigate.cluster.plane.admission.interface import Face, Write
from kvestigate.cluster.plane.admission.policies.asking import Asking, asking
from kvestigate.cluster.plane.admission.registry import admit, approve, charge
from kvestigate.cluster.plane.kinds.custom.kind import DEFINITIONS
from kvestigate.cluster.plane.model import metadata, objects
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.store.body import fill, unfilled
from kvestigate.cluster.plane.store.errors import Exists, Mismatch, Missing
from kvestigate.cluster.plane.store.model import Change, ChangeType, Item, Mutation, Put, Remove
from kvestigate.cluster.plane.verbs import managed
from kvestigate.errors import ApiError, BadRequest
from kvestigate.kube import causes

CONFLICT_RETRIES = 5
"""How often a change that names no revision is tried anew on what another writer left."""


# Many writes are on their way to disk at a time. Who waits for one holds on to its bytes, but
# not to the objects they were made from: those are hundreds of dicts, and the next request
# takes their place while they are still at hand.


class New(NamedTuple):
    """A new object that may be stored."""

    put: Put
    along: list[Mutation]
    """To be committed together with it."""


class _Changed(NamedTuple):
    """A change that may be made."""

    mutations: list[Mutation]
    answer: Item | None
    """What to answer with, if not with what is stored."""


async def prepare_new(call: Call, obj: Object, *, tracked: bool = False) -> New:
    """Everything that happens to a new object before it is stored.

    `tracked` says that its fields have their managers already.
    """
    kind = call.kind
    if obj["metadata"].get("resourceVersion", "") not in ("", "0"):
        raise ApiError("resourceVersion should not be set on objects to be created")
    check_namespace(call, obj)
    _merge_owners(call, obj)
    metadata.begin(obj, kind, call.namespace, call.clock.now(), call.random)
    sent = None
    if kind.has_status and not kind.keeps_status_on_create:
        sent = obj.get("status")
        kind.reset_status(obj)
    kind.default(obj)
    if not tracked:
        managed.track(call, obj, None)
    await call.breathe()
    write = _write(call, "CREATE", kind, obj, None, call.scene(call.plane.tip))
    admit(write)
    webhooks = asking(write, call.backends, call.random)
    if webhooks is not None and await _let_change(webhooks, kind, obj, sent):
        _merge_owners(call, obj)
    await call.breathe()
    # What is handed out from here on (addresses, ports) nobody else may have had meanwhile.
    scene = write.scene = call.scene(call.plane.tip)
    # After admission: what the server derives (a pod's QoS class) depends on what rules added.
    kind.on_create(obj, scene)
    judge = call.served.judge
    found = metadata.check(obj, kind) + judge.validate(obj, scene)
    found += judge.validate_create(obj, scene)
    if call.served is not judge:
        found += call.served.validate_create(obj, scene)
    if found:
        await call.breathe()
        raise causes.reject(
            kind.resource.kind, kind.resource.group, obj["metadata"].get("name", ""), found
        )
    call.warnings.extend(kind.warnings(obj))
    approve(write)
    if webhooks is not None:
        await webhooks.validate()
        write.scene = call.scene(call.plane.tip)  # they may have taken their time
        kind.hold(obj, None, write.scene)
    charge(write)
    return New(objects.put(obj, kind, expect=0), write.extra)


async def _let_change(webhooks: Asking, kind: Kind, obj: Object, sent: Object | None) -> bool:
    """Whether others changed a new object. They see the status that it came with, but no status
    of theirs counts."""
    if not kind.has_status or kind.keeps_status_on_create:
        return await webhooks.mutate(admit)
    begun = {"status": obj["status"]} if "status" in obj else {}
    if sent:
        obj["status"] = sent
    changed = await webhooks.mutate(admit)
    _keep(obj, begun, "status")
    return changed


async def pass_admission(
    call: Call, write: Write, check: Callable[[], None] = lambda: None
) -> None:
    """All that may refuse what stores no object of its own; `check` validates in between."""
    webhooks = asking(write, call.backends, call.random)
    admit(write)
    if webhooks is not None:
        await webhooks.mutate(admit)
    check()
    approve(write)
    if webhooks is not None:
        await webhooks.validate()


def part(call: Call, kind: Kind, obj: Object, *, dry_run: bool) -> Write:
    """The making of something that is no object of its own: a binding, an eviction."""
    write = _write(call, "CREATE", kind, obj, None, call.scene(call.plane.tip))
    write.served, write.dry_run = kind, dry_run
    return write


def deletion(call: Call, obj: Object, scene: Scene, *, dry_run: bool) -> Write:
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
    call: Call, new: Object, old: Object, *, tracked: bool, face: Face | None, patient: bool
) -> Write:
    """Everything that happens to a changed object before it is stored."""
    kind = call.kind
    check_namespace(call, new)
    _merge_owners(call, new)
    status = call.info.subresource in kind.status_subresources
    _carry_over(new, old, kind, status=status)
    kind.default_changed(new, old)
    if not tracked:
        managed.track(call, new, old)
    if patient:
        await call.breathe()
    scene = call.scene(call.plane.tip)
    write = _write(call, "UPDATE", kind, new, old, scene)
    write.face = face
    webhooks = asking(write, call.backends, call.random)
    # In-tree rules are put to an update below, after what may still change it.
    if webhooks is not None and await webhooks.mutate(lambda write: None):
        _merge_owners(call, new)
        _carry_over(new, old, kind, status=status)
    kind.on_update(new, old, scene)
    admit(write)
    if kind.counts_generations and not status:
        metadata.advance_generation(new, old, kind)
    found = metadata.check_changed(new, old, kind)
    if status:
        found += call.served.judge.validate_status(new, old, scene)
    else:
        found += call.served.judge.validate_changed(new, old, scene)
    if found:
        raise causes.reject(kind.resource.kind, kind.resource.group, new["metadata"]["name"], found)
    if not status:
        call.warnings.extend(kind.update_warnings(new, old))
    approve(write)
    if webhooks is not None:
        await webhooks.validate()
        write.scene = call.scene(call.plane.tip)
        kind.hold(new, old, write.scene)
    charge(write)
    return write


def _carry_over(new: Object, old: Object, kind: Kind, *, status: bool) -> None:
    """Whatever of the old object this write cannot change."""
    metadata.carry_over(new, old)
    if status:
        _only_status(new, old, kind)
    elif kind.has_status:
        _keep(new, old, "status")


def _merge_owners(call: Call, obj: Object) -> None:
    if warning := metadata.merge_owners(obj):
        call.warnings.append(warning)


def check_namespace(call: Call, obj: Object) -> None:
    meta = obj["metadata"]
    told = meta.get("namespace") or ""
    if not call.kind.resource.namespaced:
        meta.pop("namespace", None)
    elif told and told != call.namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


async def commit_new(call: Call, new: New) -> Item:
    put = new.put
    if call.dry_run:
        if call.plane.tip.get(put.resource, put.namespace, put.name):
            raise call.already_exists(put.name)
        return dry_item(call, put.body, put.name)
    try:
        changes = await call.plane.commit([put, *new.along], call.user.name)
    except Exists:
        raise call.already_exists(put.name) from None
    return changes[0].item


async def change(
    call: Call,
    alter: Callable[[Object, Item], Object | None],
    *,
    pinned: bool = False,
    tracked: bool = False,
    face: Face | None = None,
) -> Item:
    """Read, alter, judge, write; again if another writer was faster and no revision was named.

    `alter` gets a fresh dict of the stored object and returns the new one (None: no change).
    `pinned` says that it insists on the revision it was given, `tracked` that it has seen to
    the managers of the fields, and `face` what the client sees of the object, if not itself.
    """
    for attempt in range(CONFLICT_RETRIES):
        # Who lets others go first every time might never be fast enough.
        changed = await _changed(call, alter, tracked=tracked, face=face, patient=attempt == 0)
        if isinstance(changed, Item):
            return changed
        try:
            changes = await commit(call, changed.mutations)
        except Mismatch:
            if pinned or attempt == CONFLICT_RETRIES - 1:
                raise call.modified() from None
        except Missing:
            raise call.not_found() from None
        else:
            return changed.answer or changes[0].item
    raise AssertionError("unreachable")


async def _changed(
    call: Call,
    alter: Callable[[Object, Item], Object | None],
    *,
    tracked: bool,
    face: Face | None,
    patient: bool,
) -> _Changed | Item:
    """The change to make, or the object to answer with if there is nothing to change."""
    item = call.find(call.plane.tip)
    old = call.kind.from_stored(objects.read(item))
    current = _current(call, item, old)
    if patient:
        await call.breathe()
    new = alter(current, item)
    if new is None:
        return item
    if patient:
        await call.breathe()
    write = await _prepare_update(call, new, old, tracked=tracked, face=face, patient=patient)
    if not objects.differ(new, old):
        managed.settle(new, old)
        if objects.same(new, old, item):
            return item
    if call.dry_run:
        return dry_item(call, objects.body(new, call.kind), item.name, item.revision)
    if not new["metadata"].get("deletionTimestamp") or not gone(call, new):
        return _Changed([objects.put(new, call.kind, expect=item.revision), *write.extra], None)
    # Watchers see it as it last was; only the one who let go sees it without the finalizer.
    removal = Remove(call.kind.key, item.namespace, item.name, item.revision)
    along = call.kind.takes_along(new, write.scene)
    last = dry_item(call, objects.body(new, call.kind), item.name, item.revision)
    return _Changed([removal, *write.extra, *along], last)


def _current(call: Call, item: Item, old: Object) -> Object:
    """What was read as `old`, to be altered."""
    if call.kind.shares_on_update and call.served is call.kind:
        return {name: value.copy() if type(value) is dict else value for name, value in old.items()}
    return call.kind.from_stored(objects.read(item))


async def commit(call: Call, mutations: list[Mutation]) -> list[Change]:
    """Commit what may remove a definition, and with it the resource that others watch."""
    changes = await call.plane.commit(mutations, call.user.name)
    for change in changes:
        if change.resource == DEFINITIONS and change.type is ChangeType.DELETED:
            plural, _, group = change.item.name.partition(".")
            call.plane.end_watches((group, plural))
    return changes


def gone(call: Call, obj: Object) -> bool:
    """Whether an object on its way out has nothing left that holds it."""
    return not call.kind.held(obj) and not obj["metadata"].get("deletionGracePeriodSeconds")


def dry_item(call: Call, body: bytes, name: str, revision: int = 0, uid: str = "") -> Item:
    """What would have been stored, without a revision of its own: that of the old one, or none."""
    data = fill(body, revision) if revision else unfilled(body)
    return Item(call.namespace, name, uid, revision, 0, data)


def _only_status(new: Object, old: Object, kind: Kind) -> None:
    status = new.get("status")
    meta = new["metadata"]
    if kind.status_carries_metadata:
        for field in kind.status_keeps:
            _keep(meta, old["metadata"], field)
    else:
        managed = meta.get("managedFields")
        meta = dict(old["metadata"])
        if managed is not None:
            meta["managedFields"] = managed
    new.clear()
    new.update({**old, "metadata": meta})
    if status is None:
        new.pop("status", None)
    else:
        new["status"] = status


def _keep(new: Object, old: Object, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)
