"""The garbage collector: what loses its last owner goes; who waits for dependents is told.

Its queue holds uids (as the names of keys), since any object of any resource may be garbage.
"""

from __future__ import annotations

from typing import Any

from kvestigate import errors
from kvestigate.client.api import PatchType, Propagation
from kvestigate.client.cache import Change, Key
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.garbage import graph as rules
from kvestigate.cluster.controllers.garbage.graph import Graph, Node, OwnerState, Step
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.meta import OwnerReference, PartialObject

_POLICIES = {
    Step.DELETE: Propagation.BACKGROUND,
    Step.DELETE_FOREGROUND: Propagation.FOREGROUND,
    Step.DELETE_ORPHANING: Propagation.ORPHAN,
}


class GarbageCollector:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._graph = Graph()
        self._inventory = context.inventory()
        self._inventory.subscribe(self._note)

    # -- the graph -------------------------------------------------------------------------

    def _note(self, resource: Resource, change: Change[Any]) -> None:
        graph, old, new = self._graph, change.old, change.new
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._removed(graph.remove(old.metadata.uid))
        if new is not None and not graph.refresh(old and old.metadata, new.metadata):
            node = graph.put(resource, new.metadata)
            if node.waits_for_dependents or node.orphans or not graph.is_kept(node):
                self._look(node.uid)
            if node.waits_for_dependents:
                for dependent in graph.dependents(node.uid):
                    self._look(dependent.uid)
            if old is not None and old.metadata.owner_references != new.metadata.owner_references:
                self._released(old.metadata.owner_references)

    def _removed(self, node: Node | None) -> None:
        if node is not None:
            for dependent in self._graph.dependents(node.uid):
                self._look(dependent.uid)
            self._released(node.metadata.owner_references)

    def _released(self, references: tuple[OwnerReference, ...]) -> None:
        for reference in references:
            owner = self._graph.get(reference.uid)
            if owner is not None and owner.waits_for_dependents:
                self._look(owner.uid)

    def _look(self, uid: str) -> None:
        self._context.queue.add(Key("", uid))

    # -- the work --------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> float | None:
        graph = self._graph
        node = graph.get(key.name)
        if node is None:
            return None
        dependents = graph.dependents(node.uid)
        decision = rules.on_leaving(node, dependents)
        if decision is None:
            states = [
                (reference, await self._state(node, reference))
                for reference in node.metadata.owner_references
            ]
            decision = rules.on_owners(node, states, dependents)
        await self._apply(node, dependents, decision)
        return None

    async def _apply(self, node: Node, dependents: list[Node], decision: rules.Decision) -> None:
        for uid in decision.look_at:
            self._look(uid)
        step = decision.step
        if step is Step.DROP_OWNERS:
            await self._drop_owners(node, decision.drop)
        elif step is Step.ORPHAN_DEPENDENTS:
            for dependent in dependents:
                await self._drop_owners(dependent, (node.uid,))
            await self._drop_finalizer(node, rules.ORPHAN)
        elif step is Step.FINISH_FOREGROUND:
            await self._drop_finalizer(node, rules.FOREGROUND)
        elif step in _POLICIES:
            if decision.unblock:
                await self._unblock(node)
            await self._delete(node, _POLICIES[step])

    async def _state(self, node: Node, reference: OwnerReference) -> OwnerState:
        owner = self._graph.get(reference.uid)
        if owner is not None:
            return OwnerState.WAITING if owner.waits_for_dependents else OwnerState.SOLID
        # Never trust a cache with a verdict of death: ask.
        resource = self._inventory.resource_of(reference.api_version, reference.kind)
        if resource is None:
            raise errors.NotFound(
                f'the owner {reference.kind} "{reference.name}" of {node.resource.qualified} '
                f'"{node.metadata.name}" is of a type that the server does not serve'
            )
        if resource.namespaced and not node.metadata.namespace:
            return OwnerState.SOLID  # it cannot be found, so nothing is known of it
        try:
            answer = await self._context.api.get(
                resource,
                reference.name,
                namespace=node.metadata.namespace or None,
                type=PartialObject,
            )
        except errors.NotFound:
            return OwnerState.DANGLING
        if answer.metadata.uid != reference.uid:
            return OwnerState.DANGLING
        leaving = answer.metadata.deletion_timestamp is not None
        waits = leaving and rules.FOREGROUND in answer.metadata.finalizers
        return OwnerState.WAITING if waits else OwnerState.SOLID

    async def _delete(self, node: Node, propagation: Propagation) -> None:
        metadata = node.metadata
        try:
            await self._context.api.delete(
                node.resource,
                metadata.name,
                namespace=metadata.namespace or None,
                propagation=propagation,
                uid=metadata.uid,
                resource_version=metadata.resource_version,
                type=bytes,
            )
        except errors.NotFound:
            pass

    async def _drop_owners(self, node: Node, uids: tuple[str, ...]) -> None:
        kept = [
            reference for reference in node.metadata.owner_references if reference.uid not in uids
        ]
        await self._write_owners(node, kept)

    async def _unblock(self, node: Node) -> None:
        await self._write_owners(node, list(node.metadata.owner_references), blocking=False)

    async def _write_owners(
        self, node: Node, references: list[OwnerReference], *, blocking: bool | None = None
    ) -> None:
        """A merge patch of the whole list, on just this version: custom resources know no other."""
        owners = [_written(reference, blocking) for reference in references]
        await self._patch(node, {"ownerReferences": owners or None})

    async def _drop_finalizer(self, node: Node, finalizer: str) -> None:
        kept = [name for name in node.metadata.finalizers if name != finalizer]
        await self._patch(node, {"finalizers": kept or None})

    async def _patch(self, node: Node, change: dict[str, Any]) -> None:
        metadata = node.metadata
        guard = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        try:
            await self._context.api.patch(
                node.resource,
                metadata.name,
                {"metadata": {**guard, **change}},
                PatchType.MERGE,
                namespace=metadata.namespace or None,
                field_manager=self._context.name,
                type=bytes,
            )
        except errors.NotFound:
            pass


def _written(reference: OwnerReference, blocking: bool | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "name": reference.name,
        "uid": reference.uid,
    }
    if reference.controller:
        entry["controller"] = True
    if reference.block_owner_deletion if blocking is None else blocking:
        entry["blockOwnerDeletion"] = True
    return entry
