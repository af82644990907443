"""What the server needs to know of one kind; the generic answers fit most of them.

The verbs (`verbs.writing` and its neighbours) are generic. They call the hooks of `Kind` in a fixed
order; a kind that differs overrides the few hooks it must, in a file of its own under `kinds`, and
is listed in `kinds.registry`. A create calls, after the body was decoded:

    problems, normalised      unknown fields and wrong types; the form in which Go would write it
    to_stored                 from the version that the client speaks to the stored one
    reset_status, default     what the client may not set; what it may leave out
    (field managers, admission rules, mutating webhooks)
    on_create                 what only the server sets: QoS class, cluster IP
    validate, validate_create every cause, in the order in which kube-apiserver reports them
    warnings                  advice for the Warning header
    (admission policies, validating webhooks, quotas)
    recheck                   refuses what another write took while webhooks were called

An update calls `default_changed`, `on_update`, `validate_changed` and `update_warnings` instead; a
write to `status` calls `validate_status`; a deletion calls `grace_period`, `on_delete`,
`has_finalizers`, `finalizers_on_delete` and `removed_with`.

Three rules keep this simple. Objects are plain dicts, fresh for each request, so hooks change them
in place. No hook does I/O: what it needs of the rest of the plane it reads from the `Scene`, which
holds the state and the time. And nothing passes from one hook to a later one except the object.

A `View` is a kind at another version than the stored one; its objects are converted on the way in
and out, so all other rules are written once, for the stored version.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import msgspec

from kvestigate.cluster.plane.model.user import User
from kvestigate.cluster.plane.store.model import Mutation
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.kube import facts, names, normal, schema, tidy
from kvestigate.kube.apply import shapes
from kvestigate.kube.causes import Causes
from kvestigate.kube.resources import Resource
from kvestigate.kube.schema import Problems

Object = dict[str, Any]

_SCHEMALESS = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class Scene(msgspec.Struct, frozen=True):
    """Where and when a write happens: what hooks may look at besides the object."""

    state: PlaneState
    user: User
    now: float
    """Unix seconds, on the plane's clock."""
    subresource: str = ""
    owner: User | None = None
    """The user whose credentials were sent; None: `user`, who is not impersonated."""


class Kind:
    """Generic behaviour of a resource with metadata, maybe a spec and maybe a status."""

    def prepare(self) -> None:
        """Compile what is compiled once: called before the first use if not `is_prepared`."""

    counts_generations: ClassVar[bool] = False
    """`metadata.generation` starts at 1 and grows with every change outside metadata and status."""
    starts_generations: ClassVar[bool] = True
    """A new object is generation 1; else it has none until it changes."""
    keeps_status_on_create: ClassVar[bool] = False
    status_carries_metadata: ClassVar[bool] = False
    """A write to `status` may also change labels and annotations."""
    status_keeps: ClassVar[tuple[str, ...]] = ()
    """Metadata that such a write leaves as it was all the same."""
    deletes_gracefully: ClassVar[bool] = False
    """A deletion always leaves its time and grace period in the object, even if it is at once."""
    is_prepared: bool = True
    """Whether its objects can be read and written without compiling anything first."""
    takes_long: bool = False
    """Whether who writes objects can make their validation long: it is done beside the loop."""
    deprecation: str = ""
    """Sent as a warning with every answer."""
    warns_on_update: ClassVar[bool] = True
    """`warnings` are sent for updates too."""
    status_subresources: ClassVar[tuple[str, ...]] = ("status",)
    """Those that write to the status and to nothing else."""
    returns_deleted: ClassVar[bool] = False
    """A deletion answers with the object instead of a Status."""
    orphans_by_default: ClassVar[bool] = False
    """A deletion that names no propagation policy leaves the dependents alone."""
    orphan_warning: ClassVar[str] = ""
    """The warning for a deletion that orphans dependents because it names no policy."""
    updates_unconditionally: ClassVar[bool] = True
    """An update without a resourceVersion overwrites whatever is there."""
    creates_on_update: ClassVar[bool] = False
    shares_on_update: ClassVar[bool] = False
    """What a patch leaves alone in the fields of spec, status and the like may be the old object's:
    no hook changes it there, so nothing is copied and it is equal at a glance."""
    has_plain_finalizers: ClassVar[bool] = False
    """Finalizers do without a domain, as those of custom resources do."""
    trims_list_items: ClassVar[bool] = True
    """Items of a list leave out kind and apiVersion, as those of built-in kinds do."""
    says_continue: ClassVar[bool] = False
    """Lists that are complete say so by an empty `continue`, as those of custom resources do."""
    selectable: tuple[tuple[str, Callable[[Object], str]], ...] = ()
    """Field selectors beyond metadata.name and metadata.namespace, and how to read them."""

    field_names: tuple[str, ...] = ()
    """The names of these; a kind that says them itself has its own `fields`."""

    indexes_fields: ClassVar[bool] = True
    """Items carry the values of these; those of custom resources may change under them."""

    schema: dict[str, Any] | None = None
    """The OpenAPI schema that a custom resource was given; built-in kinds have a `type`."""

    conversion: dict[str, Any] | None = None
    """The webhook that converts objects of a custom resource between its versions."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.key = (resource.group, resource.plural)
        """Where the objects are kept; versions and aliases of a resource share them."""
        self.stored: Kind = self
        """The kind at the version in which the objects are kept: another one for a `View`."""
        if self.selectable:
            self.field_names = tuple(path for path, _ in self.selectable)
        self.has_status = "status" in resource.subresources
        self.type = facts.for_kind(resource.group, resource.version, resource.kind)
        """What the facts table knows of the kind; None for custom resources."""
        self.head = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()
        """The constant start of every stored object, cut off in lists of built-in kinds."""

    @property
    def storage(self) -> Kind:
        """The kind at the version in which objects are written to the store.

        Not `stored` if a webhook converts them: all rules are then those of the client's version.
        """
        return self.stored

    @property
    def shown_as_stored(self) -> bool:
        """Whether clients are sent the stored bytes unchanged."""
        return self.stored is self

    @property
    def judge(self) -> Kind:
        """The kind whose rules apply to objects written at this version, in their stored form."""
        return self.stored

    @cached_property
    def shape(self) -> shapes.Shape:
        """How server-side apply divides the objects among field managers."""
        if self.type is not None:
            return shapes.of_definition(self.type.name)
        return shapes.of_schema(self.schema or _SCHEMALESS)

    # -- writing -------------------------------------------------------------------------

    def problems(self, obj: Object) -> Problems:
        """Unknown fields and wrong types, found before anything else is looked at."""
        return schema.FITS if self.type is None else schema.problems(obj, self.type)

    def normalised(self, obj: Object) -> Object:
        """The object after decoding into its Go type and encoding again. Call `problems` first."""
        return obj if self.type is None else normal.normalised(obj, self.type)

    def tidied(self, obj: Object) -> Object | None:
        """The normal form, if one quick walk finds no problem.

        None means that `problems` and `normalised` must be called.
        """
        return None if self.type is None else tidy.tidied(obj, self.type)

    def to_stored(self, obj: Object) -> Object:
        """An object of this version, in its normal form, as one of the stored version."""
        return obj

    def from_stored(self, obj: Object) -> Object:
        """A stored object as this version shows it."""
        return obj

    def reset_status(self, obj: Object) -> None:
        """Drop the status that the creator sent."""
        obj.pop("status", None)
        if (
            self.type is not None
            and (status := normal.empty_field(self.type, "status")) is not None
        ):
            obj["status"] = status

    def default(self, obj: Object) -> None:
        """Fill in what users may leave out."""

    def default_changed(self, new: Object, old: Object) -> None:
        """Fill in what users may leave out of a changed object."""
        self.default(new)

    def on_create(self, obj: Object, scene: Scene) -> None:
        """Set what only the server sets."""

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        """Carry over what users cannot change."""

    def recheck(self, new: Object, old: Object | None, scene: Scene) -> None:
        """Refuse an address or port that another object got while webhooks were called."""

    def is_new_generation(self, new: Object, old: Object) -> bool:
        """Whether an update changes what `metadata.generation` counts."""
        return _essence(new) != _essence(old)

    def name_problems(self, name: str) -> list[str]:
        return names.subdomain_problems(name)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return ()

    def validate_create(self, obj: Object, scene: Scene) -> Causes:
        """What is wrong with a new object only; `validate` has seen it already."""
        return ()

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        """What is wrong with the step from `old` to `new`; `validate` has seen `new` already."""
        return ()

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        """Everything wrong with a changed object, in the order in which it is reported."""
        yield from self.validate(new, scene)
        yield from self.validate_update(new, old, scene)

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        return ()

    def warnings(self, obj: Object) -> list[str]:
        """Advice on an object, sent back in Warning headers: always to its creator."""
        return []

    def update_warnings(self, new: Object, old: Object) -> list[str]:
        """Advice on a changed object."""
        return self.warnings(new) if self.warns_on_update else []

    # -- deleting ------------------------------------------------------------------------

    def grace_period(self, obj: Object, requested: int | None) -> int:
        """Seconds between the request and the removal; 0 removes at once."""
        return 0

    def on_delete(self, obj: Object, scene: Scene) -> None:
        """Mark an object that stays a while because of its grace period or finalizers."""

    def has_finalizers(self, obj: Object) -> bool:
        """Whether finalizers keep the object from being removed."""
        return bool(obj["metadata"].get("finalizers"))

    def finalizers_on_delete(self, obj: Object, scene: Scene) -> list[str]:
        """Finalizers that a deletion adds to the object."""
        return []

    def removed_with(self, obj: Object, scene: Scene) -> list[Mutation]:
        """Other objects that are removed in the same step as this one."""
        return []

    # -- reading -------------------------------------------------------------------------

    def selects_by(self, field: str) -> bool:
        """Whether a field selector may name the field."""
        if field == "metadata.namespace":
            return self.resource.namespaced or not self.field_names
        return field == "metadata.name" or field in self.field_names

    def field_refusal(self, field: str) -> str:
        """The error message for a field selector that names an unsupported field."""
        if self.field_names:
            return f"field label not supported: {field}"
        known = '"metadata.name", "metadata.namespace"'
        return f'"{field}" is not a known field selector: only {known}'

    def fields(self, obj: Object) -> tuple[str, ...]:
        """What field selectors can see of this object, in the order of `field_names`."""
        return tuple([read(obj) for _, read in self.selectable])


def _essence(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}
