"""eviction: delete a pod if its PodDisruptionBudget can spare it.

The pod's deletion and the budget's new count are one commit, so that two evictions can never
spend the same disruption.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.request import body
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.model import Item, Mutation
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.cluster.plane.verbs import writing
from kvestigate.cluster.plane.verbs.delete import Options, check_options, check_preconditions, mark
from kvestigate.cluster.plane.verbs.subresources import budget
from kvestigate.cluster.plane.verbs.subresources.binding import CREATED, set_condition
from kvestigate.errors import ApiError, BadRequest, InputError
from kvestigate.http.message import Response
from kvestigate.kube.resources import Resource
from kvestigate.kube.selectors import from_label_selector

EVICTION = Kind(Resource("policy", "v1", "evictions", "Eviction"))
BUDGETS = ("policy", "poddisruptionbudgets")


async def create_eviction(call: Call) -> Response:
    """POST pods/NAME/eviction"""
    eviction = await _decode(call)
    options = _options(call, eviction)
    write = writing.subresource_write(call, EVICTION, eviction, dry_run=bool(options.dryRun))
    await writing.pass_admission(call, write)
    if options.dryRun:
        _decide(call, options)
    else:
        await writing.commit_decided(call, lambda: _decide(call, options))
    return answer.made(call, CREATED)


async def _decode(call: Call) -> Object:
    eviction, repeated = await body.read(call, EVICTION)
    if eviction.get("apiVersion") == "policy/v1beta1":
        eviction["apiVersion"] = "policy/v1"  # the same fields
    if not isinstance(eviction.get("metadata"), dict):
        eviction["metadata"] = {}
    eviction = body.accepted(eviction, replace(call, served=EVICTION), repeated)
    if eviction["metadata"].get("name") != call.info.name:
        raise BadRequest("name in URL does not match name in Eviction object")
    writing.check_namespace(call, eviction)
    return eviction


def _options(call: Call, eviction: Object) -> Options:
    """The DeleteOptions of the eviction; a dry run may also be requested in the query."""
    try:
        options = msgspec.convert(eviction.get("deleteOptions") or {}, Options)
    except msgspec.ValidationError as error:
        raise BadRequest(f"invalid DeleteOptions: {error}") from None
    check_options(options)
    if call.dry_run:
        options.dryRun = ["All"]
    return options


def _decide(call: Call, options: Options) -> list[Mutation]:
    """The mutations that evict the pod; raises if its disruption budget does not allow it."""
    state = call.plane.tip
    item = call.find(state)
    pod = objects.read(item)
    spent = [] if _needs_no_budget(pod) else _spend(call, state, item, pod)
    check_preconditions(call.kind, options.preconditions, item)
    set_condition(
        pod,
        "DisruptionTarget",
        "True",
        call.clock.now(),
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
    )
    changed = mark(call, pod, options)
    if writing.is_removable(call, pod):
        return [objects.removal(pod, call.kind, item.revision), *spent]
    if changed:
        return [objects.put(pod, call.kind, item.revision), *spent]
    return []


def _needs_no_budget(pod: Object) -> bool:
    """Whether the pod is not running or is terminating: its eviction disrupts no workload."""
    phase = (pod.get("status") or {}).get("phase")
    terminating = pod["metadata"].get("deletionTimestamp")
    return phase in ("Succeeded", "Failed", "Pending") or bool(terminating)


def _spend(call: Call, state: PlaneState, item: Item, pod: Object) -> list[Mutation]:
    budgets = _budgets(state, item)
    if len(budgets) > 1:
        raise ApiError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
    if not budgets:
        return []
    [(pdb_item, pdb)] = budgets
    if budget.spares_unready(pdb, pod):
        return []
    if refusal := budget.refusal(pdb):
        raise refusal
    budget.spend(pdb, item.name, call.clock.now())
    kind = types.of(state).get("policy", "v1", "poddisruptionbudgets")
    assert kind is not None, "PodDisruptionBudgets are built in"
    return [objects.put(pdb, kind, pdb_item.revision)]


def _budgets(state: PlaneState, pod: Item) -> Sequence[tuple[Item, Object]]:
    """The PodDisruptionBudgets that select a pod."""
    matching = []
    for item in state.collection(BUDGETS).items(pod.namespace):
        pdb = objects.read(item)
        label_selector = (pdb.get("spec") or {}).get("selector")
        if label_selector is None:
            continue  # selects no pod; an empty selector selects every pod
        try:
            selector = from_label_selector(label_selector)
        except InputError:
            continue
        if selector.matches(pod.labels):
            matching.append((item, pdb))
    return matching
