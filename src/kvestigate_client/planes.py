"""One plane: seen whole, changed, copied, put back, compared, stepped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kvestigate_client import contract
from kvestigate_client.contract import APPLY, JSON, MERGE, Outgoing, api_root, segment
from kvestigate_client.exchange import Asynchronous, AsyncHttp, Blocking, Steps, operation
from kvestigate_client.failures import Invalid, NotFound
from kvestigate_client.results import (
    Checkpoint,
    Difference,
    Event,
    Object,
    Snapshot,
    Stepped,
)

if TYPE_CHECKING:
    import httpx2

MANAGER = "kvestigate-client"


class PlaneOperations:
    """What can be done with a plane, whichever way it is run."""

    id: str
    _kinds: dict[tuple[str, str], tuple[str, bool]]
    """(apiVersion, kind) to (plural, whether it is namespaced), as far as they were asked for."""

    @property
    def path(self) -> str:
        """Where its API is."""
        return contract.plane_path(self.id)

    @operation
    def request(
        self, method: str, path: str, body: Any = None, params: Mapping[str, Any] | None = None
    ) -> Steps[Any]:
        """Anything of Kubernetes' own API; `path` is relative to the plane, PATCH is a merge."""
        media = MERGE if method == "PATCH" else JSON
        return (yield Outgoing(method, self.path + path, params or {}, body, media))

    @operation
    def snapshot(
        self, resources: Iterable[str] = (), *, include_empty: bool = False
    ) -> Steps[Snapshot]:
        """Everything at one revision, or only some resources: `pods`, `deployments.apps`."""
        request = contract.snapshot(self.id, resources, include_empty=include_empty)
        return Snapshot.read((yield request))

    @operation
    def checkpoint(self, name: str = "", *, replace: bool = False) -> Steps[Checkpoint]:
        """Keep the present state under a name."""
        request = contract.create_checkpoint(self.id, name, replace=replace)
        return Checkpoint.read((yield request))

    @operation
    def checkpoints(self) -> Steps[list[Checkpoint]]:
        answer = yield contract.list_checkpoints(self.id)
        return [Checkpoint.read(item) for item in answer["items"]]

    @operation
    def drop_checkpoint(self, name: str) -> Steps[None]:
        yield contract.delete_checkpoint(self.id, name)

    @operation
    def restore(
        self, checkpoint: str = "", *, resource_version: str = "", seed: int | None = None
    ) -> Steps[int]:
        """Have the objects of an earlier state again; how many changes that took.

        On a virtual clock the same actions then lead to the same again, unless another `seed`
        is given.
        """
        done = yield contract.restore(
            self.id, checkpoint, resource_version=resource_version, seed=seed
        )
        return int(done["changes"])

    @operation
    def diff(
        self, before: str | int, after: str | int | None = None, resources: Iterable[str] = ()
    ) -> Steps[Difference]:
        """Between two points (the second is the present if not given).

        A point is a revision, `checkpoint:NAME` or `plane:ID`.
        """
        return Difference.read((yield contract.diff(self.id, before, after, resources)))

    @operation
    def events(
        self,
        after: int | str | None = None,
        *,
        until: int | str | None = None,
        resources: Iterable[str] = (),
        objects: bool = True,
    ) -> Steps[list[Event]]:
        """Every change after a revision, with its actor: the trajectory."""
        answer = yield contract.events(self.id, after, resources, until=until, objects=objects)
        return [Event.read(event) for event in answer["events"]]

    @operation
    def step(self, seconds: float | None = None) -> Steps[Stepped]:
        """Let time pass in a plane with a virtual clock; until nothing is left to do if None."""
        return Stepped.read((yield contract.step(self.id, seconds)))

    @operation
    def apply(self, *objects: Object) -> Steps[list[Object]]:
        """Server-side apply manifests, in this order; what became of them."""
        applied = []
        for obj in objects:
            path = yield from self._path_of(obj)
            params = {"fieldManager": MANAGER, "force": True}
            applied.append((yield Outgoing("PATCH", path, params, obj, APPLY)))
        return applied

    @operation
    def merge(self, *objects: Object) -> Steps[list[Object]]:
        """Merge what these manifests say into the objects they name."""
        merged = []
        for obj in objects:
            path = yield from self._path_of(obj)
            merged.append((yield Outgoing("PATCH", path, body=obj, media=MERGE)))
        return merged

    @operation
    def delete(self, *objects: Object) -> Steps[None]:
        """Delete what these manifests name."""
        for obj in objects:
            yield Outgoing("DELETE", (yield from self._path_of(obj)))

    @operation
    def _fork(
        self, name: str, count: int | None, checkpoint: str, resource_version: str
    ) -> Steps[list[str]]:
        made = yield contract.fork(
            self.id, name, count, checkpoint=checkpoint, resource_version=resource_version
        )
        return [plane["id"] for plane in made["items"]]

    def _path_of(self, obj: Object) -> Steps[str]:
        """Where an object belongs, by what the plane says of its kind."""
        version, kind, name, namespace = _identity(obj)
        root = self.path + api_root(version)
        if (version, kind) not in self._kinds:
            for each in (yield from _served(root)):
                if "/" not in each["name"]:
                    self._kinds[version, each["kind"]] = (each["name"], each["namespaced"])
        found = self._kinds.get((version, kind))
        if found is None:
            raise Invalid(f"the plane has no kind {kind} in {version}")
        plural, namespaced = found
        scope = f"/namespaces/{segment(namespace)}" if namespaced else ""
        return f"{root}{scope}/{plural}/{segment(name)}"


def _served(root: str) -> Steps[list[Any]]:
    """The resources of a version; none if there is no such version."""
    try:
        found: list[Any] = (yield Outgoing("GET", root))["resources"]
    except NotFound as error:
        if error.reason:  # the plane itself
            raise
        return []
    return found


def _identity(obj: Any) -> tuple[str, str, str, str]:
    """apiVersion, kind, name and namespace of a manifest, whoever wrote it."""
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else None
    if not isinstance(metadata, Mapping):
        raise Invalid("an object needs apiVersion, kind and metadata.name")
    fields = {
        "apiVersion": obj.get("apiVersion"),
        "kind": obj.get("kind"),
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace") or "default",
    }
    for field, value in fields.items():
        if not value:
            raise Invalid("an object needs apiVersion, kind and metadata.name")
        if not isinstance(value, str):
            raise Invalid(f"{field}: {value!r} is not a string")
    version, kind, name, namespace = fields.values()
    return version, kind, name, namespace


class Plane(PlaneOperations, Blocking):
    """A plane of a server; `PlaneClient.plane` gives you one."""

    def __init__(self, http: httpx2.Client, timeout: float, id: str) -> None:
        super().__init__(http, timeout)
        self.id = id
        self._kinds = {}

    def fork(
        self,
        name: str = "",
        count: int | None = None,
        *,
        checkpoint: str = "",
        resource_version: str = "",
    ) -> Sequence[Plane]:
        """Copies of this plane, independent from then on."""
        made = self._fork(name, count, checkpoint, resource_version)
        return [Plane(self._http, self._timeout, plane_id) for plane_id in made]


class AsyncPlane(PlaneOperations, Asynchronous):
    """A plane of a server; `AsyncPlaneClient.plane` gives you one."""

    def __init__(self, http: AsyncHttp, timeout: float, id: str) -> None:
        super().__init__(http, timeout)
        self.id = id
        self._kinds = {}

    async def fork(
        self,
        name: str = "",
        count: int | None = None,
        *,
        checkpoint: str = "",
        resource_version: str = "",
    ) -> Sequence[AsyncPlane]:
        """Copies of this plane, independent from then on."""
        made = await self._fork(name, count, checkpoint, resource_version)
        return [AsyncPlane(self._http, self._timeout, plane_id) for plane_id in made]
