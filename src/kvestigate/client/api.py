"""The API server as everything above sees it: verbs on resources, typed by the caller.

    async with connect(access) as api:
        pod = await api.get(PODS, "web-0", type=Pod)
        async for page in api.pages(PODS, type=Pod): ...

Failures are exceptions of `kvestigate.errors`. `namespace=None` means the access's own
namespace for one object, and all namespaces for a collection.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from kvestigate.client.call import JSON, Call, Selection, parameters
from kvestigate.client.exchange import TIMEOUT, Exchange
from kvestigate.client.listing import PAGE_SIZE, pages, whole
from kvestigate.client.typed import OBJECT, Body, T, decoded, encode
from kvestigate.errors import InputError
from kvestigate.http.message import Headers, Request
from kvestigate.kube.decode import ListPage
from kvestigate.kube.resources import Resource

if TYPE_CHECKING:  # a command that reads a list should not load what follows one
    from kvestigate.client.cache import V
    from kvestigate.client.informer import Informer
    from kvestigate.client.logs import LogOptions
    from kvestigate.client.retry import RetryPolicy
    from kvestigate.client.streams import PortStream, Session
    from kvestigate.client.transport import Transport
    from kvestigate.client.watching import Watch

PODS = Resource("", "v1", "pods", "Pod")

EVERYTHING = Selection()
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class PatchType(enum.Enum):
    """How a patch is written."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Propagation(enum.Enum):
    """What becomes of the objects that a deleted one owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class Api:
    """One API server. Safe for concurrent use; close it, or use `connect`."""

    def __init__(
        self,
        transport: Transport,
        *,
        namespace: str = "default",
        timeout: float = TIMEOUT,
        policy: RetryPolicy | None = None,
    ) -> None:
        self.namespace = namespace
        self.exchange = Exchange(transport, policy=policy, timeout=timeout)

    async def aclose(self) -> None:
        await self.exchange.transport.aclose()

    # Reading.

    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str = "",
        type: type[T] = OBJECT,
    ) -> T:
        call = self._object("get", resource, name, namespace, subresource)
        return await self._typed(call, type)

    async def list(
        self,
        resource: Resource,
        selection: Selection = EVERYTHING,
        *,
        type: type[T] = OBJECT,
        limit: int = PAGE_SIZE,
    ) -> ListPage[T]:
        """All objects of one moment in one list; `pages` needs less memory."""
        return await whole(
            self.exchange, _collection("list", resource, selection), type, limit=limit
        )

    def pages(
        self,
        resource: Resource,
        selection: Selection = EVERYTHING,
        *,
        type: type[T] = OBJECT,
        limit: int = PAGE_SIZE,
        metadata_only: bool = False,
    ) -> AsyncGenerator[ListPage[T], None]:
        """The objects in pages, a few of which are held at a time."""
        listing = _listing(resource, selection, metadata_only)
        return pages(self.exchange, listing, type, limit=limit)

    def watch(
        self,
        resource: Resource,
        selection: Selection = EVERYTHING,
        *,
        resource_version: str = "",
        type: type[T] = OBJECT,
        unreadable: Callable[[InputError], None] | None = None,
    ) -> Watch[T]:
        """Changes since `resource_version`, across reconnections; `Expired` when too old.

        An object that is not of the type is raised, unless `unreadable` wants to be told of it.
        """
        from kvestigate.client.watching import Watch

        call = _collection("watch", resource, selection)
        return Watch(
            self.exchange, call, type, resource_version=resource_version, unreadable=unreadable
        )

    def informer(
        self,
        resource: Resource,
        selection: Selection = EVERYTHING,
        *,
        type: type[V],
        metadata_only: bool = False,
    ) -> Informer[V]:
        """A cache that keeps itself current once it is started."""
        from kvestigate.client.informer import WatchInformer

        return WatchInformer(self.exchange, _listing(resource, selection, metadata_only), type)

    # Writing.

    async def create(
        self,
        resource: Resource,
        body: Body,
        *,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        type: type[T] = OBJECT,
    ) -> T:
        """Create an object, or with `name` and `subresource` act on one."""
        call = self._write("create", resource, body, namespace, name, subresource)
        return await self._typed(call, type, _writing(dry_run, field_manager))

    async def replace(
        self,
        resource: Resource,
        name: str,
        body: Body,
        *,
        namespace: str | None = None,
        subresource: str = "",
        type: type[T] = OBJECT,
    ) -> T:
        """Write a whole object; with a `resourceVersion` in it, only over that version."""
        call = self._write("update", resource, body, namespace, name, subresource)
        return await self._typed(call, type)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Body | Sequence[Mapping[str, Any]],
        kind: PatchType = PatchType.MERGE,
        *,
        namespace: str | None = None,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        force: bool = False,
        type: type[T] = OBJECT,
    ) -> T:
        call = self._write("patch", resource, patch, namespace, name, subresource, kind.value)
        return await self._typed(call, type, _writing(dry_run, field_manager, force))

    async def apply(
        self,
        resource: Resource,
        body: Mapping[str, Any],
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        force: bool = False,
        type: type[T] = OBJECT,
    ) -> T:
        """Server-side apply: create the object, or own just the fields in `body`."""
        return await self.patch(
            resource,
            body["metadata"]["name"],
            body,
            PatchType.APPLY,
            namespace=namespace,
            dry_run=dry_run,
            field_manager="kvestigate",
            force=force,
            type=type,
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
        type: type[T] = OBJECT,
    ) -> T:
        """Delete an object; with `uid` or `resource_version` only exactly that one."""
        options = _delete_options(propagation, grace_seconds, dry_run, uid, resource_version)
        call = self._write("delete", resource, options, namespace, name)
        return await self._typed(call, type)

    async def delete_collection(
        self,
        resource: Resource,
        selection: Selection,
        *,
        propagation: Propagation | None = None,
    ) -> ListPage[dict[str, Any]]:
        """Delete all selected objects of a namespace (or of the cluster, for cluster types)."""
        call = Call(
            "deletecollection",
            resource,
            namespace=selection.namespace or self.namespace,
            query=selection.query(),
            body=encode(_delete_options(propagation)),
        )
        return await self._typed(call, ListPage[dict[str, Any]])

    # Subresources with a name of their own.

    async def scale(
        self, resource: Resource, name: str, replicas: int, *, namespace: str | None = None
    ) -> dict[str, Any]:
        body = {"spec": {"replicas": replicas}}
        return await self.patch(resource, name, body, namespace=namespace, subresource="scale")

    async def evict(
        self,
        pod: str,
        *,
        namespace: str | None = None,
        grace_seconds: int | None = None,
        uid: str = "",
    ) -> None:
        """Delete a pod unless a disruption budget forbids it: `TooManyRequests`.

        With `uid`, only exactly that pod: `Conflict` if the name belongs to another one by now.
        """
        options: dict[str, Any] = {"preconditions": {"uid": uid}} if uid else {}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace or self.namespace},
            "deleteOptions": options,
        }
        await self.create(PODS, body, namespace=namespace, name=pod, subresource="eviction")

    async def bind(
        self, pod: str, node: str, *, namespace: str | None = None, uid: str = ""
    ) -> None:
        """Assign a pod to a node; with `uid`, only exactly that pod."""
        metadata = {"name": pod} | ({"uid": uid} if uid else {})
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await self.create(
            PODS, body, namespace=namespace, name=pod, subresource="binding", type=bytes
        )

    # Streams.

    def logs(
        self, pod: str, options: LogOptions | None = None, *, namespace: str | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Log lines without their newlines; close the generator to stop following."""
        from kvestigate.client.logs import LogOptions, log_lines

        call = self._object("get", PODS, pod, namespace, "log", accept="*/*")
        return log_lines(self.exchange, call, options or LogOptions())

    def exec(
        self,
        pod: str,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        container: str = "",
        stdin: bool = False,
        tty: bool = False,
    ) -> Session:
        """Run a command in a container: `async with api.exec(...) as session`."""
        from kvestigate.client.streams import Session

        query = _streams(container, stdin, tty) + tuple(("command", word) for word in command)
        return Session(self.exchange, self._object("connect", PODS, pod, namespace, "exec", query))

    def attach(
        self,
        pod: str,
        *,
        namespace: str | None = None,
        container: str = "",
        stdin: bool = False,
        tty: bool = False,
    ) -> Session:
        """Join the container's own process."""
        from kvestigate.client.streams import Session

        query = _streams(container, stdin, tty)
        return Session(
            self.exchange, self._object("connect", PODS, pod, namespace, "attach", query)
        )

    def port_forward(self, pod: str, port: int, *, namespace: str | None = None) -> PortStream:
        """One connection to one port: `async with api.port_forward(...) as stream`."""
        from kvestigate.client.streams import PortStream

        query = parameters(ports=port)
        return PortStream(
            self.exchange, self._object("connect", PODS, pod, namespace, "portforward", query)
        )

    # What is no resource.

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: str = "",
        body: Body = b"",
        accept: str = JSON,
        timeout: float | None = None,
    ) -> bytes:
        """Any path, such as `/readyz`: the body of a successful answer."""
        fields = [("accept", accept)]
        if body:
            fields.append(("content-type", JSON))
        request = Request(method, path, query, Headers(fields), encode(body))
        return await self.exchange.body(request, timeout=timeout)

    # Calls.

    def _object(
        self,
        verb: str,
        resource: Resource,
        name: str | None,
        namespace: str | None,
        subresource: str = "",
        query: tuple[tuple[str, str], ...] = (),
        accept: str = JSON,
    ) -> Call:
        where = (namespace or self.namespace) if resource.namespaced else None
        return Call(verb, resource, where, name, subresource, query, accept=accept)

    def _write(
        self,
        verb: str,
        resource: Resource,
        body: Body | Sequence[Mapping[str, Any]],
        namespace: str | None,
        name: str | None,
        subresource: str = "",
        content_type: str = JSON,
    ) -> Call:
        if namespace is None and isinstance(body, Mapping):
            namespace = (body.get("metadata") or {}).get("namespace")
        call = self._object(verb, resource, name, namespace, subresource)
        return msgspec.structs.replace(call, body=encode(body), content_type=content_type)

    async def _typed(self, call: Call, type: type[T], query: tuple[tuple[str, str], ...] = ()) -> T:
        body = await self.exchange.body(call, call.request(*query))
        return decoded(body, type, where=str(call))


def _collection(verb: str, resource: Resource, selection: Selection) -> Call:
    return Call(verb, resource, selection.namespace, query=selection.query())


def _listing(resource: Resource, selection: Selection, metadata_only: bool) -> Call:
    call = _collection("list", resource, selection)
    return msgspec.structs.replace(call, accept=_METADATA) if metadata_only else call


def _writing(
    dry_run: bool, field_manager: str = "", force: bool = False
) -> tuple[tuple[str, str], ...]:
    return parameters(dryRun="All" if dry_run else "", fieldManager=field_manager, force=force)


def _streams(container: str, stdin: bool, tty: bool) -> tuple[tuple[str, str], ...]:
    # A terminal has one output: asking for stderr beside it is refused.
    return parameters(container=container, stdin=stdin, stdout=True, stderr=not tty, tty=tty)


def _delete_options(
    propagation: Propagation | None,
    grace_seconds: int | None = None,
    dry_run: bool = False,
    uid: str = "",
    resource_version: str = "",
) -> dict[str, Any]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if dry_run:
        # A server that is sent options does not read them in the query: it would delete.
        options["dryRun"] = ["All"]
    if propagation is not None:
        options["propagationPolicy"] = propagation.value
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    exact = {"uid": uid, "resourceVersion": resource_version}
    if preconditions := {key: value for key, value in exact.items() if value}:
        options["preconditions"] = preconditions
    return options
