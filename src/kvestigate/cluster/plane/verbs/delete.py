"""delete and deletecollection: grace periods, finalizers, propagation, preconditions."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec.structs import replace

from kvestigate.cluster.plane.model import metadata, objects
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.request.body import read
from kvestigate.cluster.plane.request.call import Call, check_dry_run
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.errors import Mismatch, Missing
from kvestigate.cluster.plane.store.model import Item, Mutation, Remove
from kvestigate.cluster.plane.verbs import converting, writing
from kvestigate.cluster.plane.verbs.list import Stale, list_options, page
from kvestigate.errors import BadRequest, Conflict, NotFound
from kvestigate.http.message import Response
from kvestigate.kube import causes
from kvestigate.kube.resources import Resource

# DeleteOptions may come in any media type, for custom resources too.
DELETE_OPTIONS = Kind(Resource("", "v1", "deleteoptions", "DeleteOptions"))

_DELETIONS_WITHOUT_PAUSE = 4
"""Of a collection: they take half a millisecond."""

ORPHAN, FOREGROUND, BACKGROUND = "Orphan", "Foreground", "Background"
_POLICY_FINALIZERS = {ORPHAN: "orphan", FOREGROUND: "foregroundDeletion"}


class Preconditions(msgspec.Struct):
    uid: str | None = None
    resourceVersion: str | None = None


class Options(msgspec.Struct):
    """DeleteOptions, from the body or else the query."""

    gracePeriodSeconds: int | None = None
    preconditions: Preconditions | None = None
    orphanDependents: bool | None = None
    propagationPolicy: str | None = None
    dryRun: list[str] | None = None


async def delete(call: Call) -> Response:
    options = await read_options(call)
    item, removed = await remove(call, options)
    if removed and not call.kind.returns_deleted:
        resource = call.served.resource
        details = {"name": item.name, "kind": resource.plural, "uid": item.uid}
        if resource.group:
            details = {"name": item.name, "group": resource.group, **details}
        return answer.success(details, warnings=call.warnings)
    return answer.one(call, await converting.shown(call, item))


async def delete_collection(call: Call) -> Response:
    """Delete the objects that a list with the same query returns, one page at most."""
    query = list_options(call)
    options = await read_options(call)
    try:
        selected = await page(call, query)
    except Stale as stale:
        return stale.answer(call)
    for number, item in enumerate(selected.items, start=1):
        info = replace(call.info, name=item.name, namespace=item.namespace)
        with suppress(NotFound):
            await remove(replace(call, info=info), options)
        if number % _DELETIONS_WITHOUT_PAUSE == 0:
            await call.pause()
    return await answer.many(call, selected.items, selected.metadata)


async def remove(call: Call, options: Options) -> tuple[Item, bool]:
    """Delete one object. Its last form, and whether it is gone (else it is terminating)."""
    for attempt in range(writing.CONFLICT_RETRIES):
        state = call.plane.tip
        item = await converting.find(call, state)
        check_preconditions(call.kind, options.preconditions, item)
        obj = objects.read(item)
        scene = call.scene(state)
        write = writing.deletion_write(call, obj, scene, dry_run=bool(options.dryRun))
        await writing.pass_admission(call, write)
        changed = mark(call, obj, options)
        done = writing.is_removable(call, obj)
        if options.dryRun:
            body = objects.body(obj, call.kind)
            return writing.dry_run_item(call, body, item.name, item.revision, item.uid), done
        if not done and not changed:
            return item, False
        mutations: list[Mutation] = []
        revision = item.revision
        if not done or (changed and call.kind.deletes_gracefully):
            # Also before an immediate removal: watches see the deletionTimestamp first.
            mutations.append(await converting.put(call, obj, revision))
            revision = state.revision + 1
        if done:
            mutations.append(Remove(call.kind.key, item.namespace, item.name, revision))
        last = len(mutations) - 1
        mutations += call.kind.removed_with(obj, scene)
        try:
            changes = await writing.commit(call, mutations)
        except Mismatch:
            if attempt == writing.CONFLICT_RETRIES - 1:
                raise call.modified() from None
        except Missing:
            raise call.not_found() from None
        else:
            return changes[last].item, done
    raise AssertionError("unreachable")


def mark(call: Call, obj: Object, options: Options) -> bool:
    """Set the finalizers and the deletionTimestamp of a deletion; whether anything changed."""
    meta = obj["metadata"]
    before = (meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds"))
    finalizers = _finalizers(call, meta.get("finalizers") or [], options)
    scene = call.scene(call.plane.tip)
    finalizers += [
        name for name in call.kind.finalizers_on_delete(obj, scene) if name not in finalizers
    ]
    changed = finalizers != (meta.get("finalizers") or [])
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    grace = call.kind.grace_period(obj, options.gracePeriodSeconds)
    if before[0] is not None:
        # Already terminating: a second request can only shorten the grace period.
        grace = min(grace, before[1] or 0)
    marked = call.kind.deletes_gracefully or call.kind.has_finalizers(obj)
    if marked and (before[0] is None or grace != (before[1] or 0)):
        meta["deletionTimestamp"] = metadata.timestamp(call.clock.now() + grace)
        meta["deletionGracePeriodSeconds"] = grace
        if call.kind.counts_generations and before[0] is None:
            meta["generation"] = meta.get("generation", 0) + 1
        call.kind.on_delete(obj, scene)
        changed = True
    return changed


def _finalizers(call: Call, present: list[str], options: Options) -> list[str]:
    """The finalizers with that of the propagation policy."""
    policy = options.propagationPolicy
    if policy is None and options.orphanDependents is not None:
        policy = ORPHAN if options.orphanDependents else BACKGROUND
    if policy is None:
        if any(name in present for name in _POLICY_FINALIZERS.values()):
            return present
        policy = ORPHAN if call.kind.orphans_by_default else BACKGROUND
    kept = [name for name in present if name not in _POLICY_FINALIZERS.values()]
    added = _POLICY_FINALIZERS.get(policy)
    return [*kept, added] if added else kept


async def read_options(call: Call) -> Options:
    """DeleteOptions from the body or else from the query; with a body, the query is ignored."""
    params = call.info.params
    if call.request.body:
        value, _ = await read(call, DELETE_OPTIONS)
    else:
        value = {}
        if (grace := call.info.integer("gracePeriodSeconds")) is not None:
            value["gracePeriodSeconds"] = grace
        if "propagationPolicy" in params:
            value["propagationPolicy"] = params["propagationPolicy"]
        if "orphanDependents" in params:
            value["orphanDependents"] = call.info.flag("orphanDependents")
        if "dryRun" in params:
            value["dryRun"] = [params["dryRun"]]
    if value.get("kind") not in (None, "", "DeleteOptions"):
        version = value.get("apiVersion") or "v1"
        raise BadRequest(f'no kind "{value["kind"]}" is registered for version "{version}"')
    if mistyped := DELETE_OPTIONS.problems(value).mistyped:
        raise BadRequest(mistyped)
    options = msgspec.convert(value, Options)
    check_options(options)
    undecided = options.propagationPolicy is None and options.orphanDependents is None
    if undecided and call.kind.orphan_warning:
        call.warnings.append(call.kind.orphan_warning)
    return options


def check_options(options: Options) -> None:
    problems = []
    if options.propagationPolicy is not None and options.orphanDependents is not None:
        problems.append(
            causes.invalid(
                "propagationPolicy",
                options.propagationPolicy,
                "orphanDependents and deletionPropagation cannot be both set",
            )
        )
    if options.propagationPolicy not in (None, ORPHAN, FOREGROUND, BACKGROUND):
        choices = [FOREGROUND, BACKGROUND, ORPHAN, "nil"]
        problems.append(causes.unsupported("propagationPolicy", options.propagationPolicy, choices))
    problems += check_dry_run(options.dryRun or [])
    if problems:
        raise causes.reject("DeleteOptions", "meta.k8s.io", "", problems)


def check_preconditions(kind: Kind, preconditions: Preconditions | None, item: Item) -> None:
    """Conflict if the object is not the one that the DeleteOptions name."""
    if preconditions is None:
        return
    for field, expected, actual, event in (
        ("UID", preconditions.uid, item.uid, "deleted and then recreated"),
        ("ResourceVersion", preconditions.resourceVersion, str(item.revision), "modified"),
    ):
        if expected and expected != actual:
            resource = kind.resource
            name = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
            details = {"name": item.name, "group": resource.group, "kind": resource.kind}
            raise Conflict(
                f'Operation cannot be fulfilled on {name} "{item.name}": the {field} in the '
                f"precondition ({expected}) does not match the {field} in record ({actual}). The "
                f"object might have been {event}",
                details={key: value for key, value in details.items() if value},
            )
