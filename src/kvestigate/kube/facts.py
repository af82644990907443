"""What is known of the built-in types: definitions, fields, merge keys and routes.

The table beside this file is generated (`make facts`) and holds names and types only. It is
read once, in about a millisecond, and each definition stays undecoded until somebody asks
for it.

A field is written as its type, then how patches and server-side apply treat it:

    TYPE [STRATEGY[=MERGE-KEY]] [LIST-OR-MAP-TYPE[=KEY,KEY]]

    s string    y base64 bytes    t time      u time in microseconds    b boolean
    i int32     l int64           n double    q quantity                x int or string
    o object    * anything        #NAME a definition
    [TYPE  a list of these        {TYPE  a map from strings to these

so `[#io.k8s.api.core.v1.Container merge=name` is the containers of a pod.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path

import msgspec


class Type(enum.Enum):
    """The shape of a JSON value, as the API types have it."""

    STRING = "s"
    BYTES = "y"
    TIME = "t"
    MICROTIME = "u"
    BOOLEAN = "b"
    QUANTITY = "q"
    INT32 = "i"
    INT64 = "l"
    NUMBER = "n"
    INT_OR_STRING = "x"
    OBJECT = "o"
    ANY = "*"
    DEFINED = "#"
    LIST = "["
    MAP = "{"


class Ownership(enum.Enum):
    """How server-side apply divides a value among field managers."""

    WHOLE = "whole"
    """One owner for all of it: a scalar, or a list or object marked atomic."""
    FIELDS = "fields"
    """Each field of an object or entry of a map on its own."""
    SET = "set"
    """Each value of a list of scalars on its own."""
    KEYED = "keyed"
    """Each element of a list of objects on its own, told apart by `Field.keys`."""


# What a key of a list element means when it is left out. No source has defaults; this is
# the only one that OpenAPI v3 documents give to a list's key.
KEY_DEFAULTS = {"protocol": "TCP"}


class Field(msgspec.Struct, frozen=True):
    """One field of a definition, or the elements of a list or map."""

    type: Type
    definition: str = ""
    """The name of the definition, when the type is `DEFINED`."""
    element: Field | None = None
    """What a list or a map holds."""
    strategies: tuple[str, ...] = ()
    """Of strategic merge patch: `merge`, `retainKeys`, both or none."""
    merge_key: str = ""
    """The key of list elements in a strategic merge patch: `name`."""
    topology: str = ""
    """Of server-side apply: `atomic`, `set`, `map` or, when nothing was said, empty."""
    keys: tuple[str, ...] = ()
    """The keys of list elements in server-side apply: `containerPort`, `protocol`."""

    @property
    def ownership(self) -> Ownership:
        if self.type is Type.LIST:
            # Unlike objects, a list of which nothing is said has one owner.
            return _LISTS.get(self.topology, Ownership.WHOLE)
        if self.topology:
            return Ownership.WHOLE if self.topology == "atomic" else Ownership.FIELDS
        if self.type is Type.DEFINED:
            return definition(self.definition).ownership
        return Ownership.FIELDS if self.type is Type.MAP else Ownership.WHOLE


_LISTS = {"set": Ownership.SET, "map": Ownership.KEYED}


class Definition:
    """One type: the fields of an object, or the scalar that it is under another name."""

    __slots__ = ("__dict__", "_row", "name")

    def __init__(self, name: str, row: _Row) -> None:
        self.name = name
        self._row = row

    def __repr__(self) -> str:
        return f"Definition({self.name!r})"

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """Empty for a scalar."""
        return {name: parse_field(code) for name, code in self._row.fields.items()}

    @cached_property
    def scalar(self) -> Type | None:
        """What the value is, if it is not an object with fields: a `Time` is a `TIME`."""
        return Type(self._row.scalar) if self._row.scalar else None

    @property
    def required(self) -> tuple[str, ...]:
        """As the schema says; the API server enforces less of it."""
        return self._row.required

    @property
    def ownership(self) -> Ownership:
        whole = self.scalar is not None or self._row.map_type == "atomic"
        return Ownership.WHOLE if whole else Ownership.FIELDS


class Subresource(msgspec.Struct, frozen=True):
    """What may follow an object's name in a path, and the kind that is spoken there."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


class Route(msgspec.Struct, frozen=True):
    """One REST resource as the API server routes it."""

    group: str = msgspec.field(name="g")
    version: str = msgspec.field(name="v")
    plural: str = msgspec.field(name="p")
    kind: str = msgspec.field(name="k")
    namespaced: bool = msgspec.field(name="n")
    verbs: tuple[str, ...] = msgspec.field(name="w")
    codes: dict[str, tuple[str, ...]] = msgspec.field(name="s", default_factory=dict)
    """The subresources as written in the table: group, version, kind, then the verbs."""

    @property
    def subresources(self) -> tuple[Subresource, ...]:
        return tuple(
            Subresource(name, code[0], code[1], code[2], code[3:])
            for name, code in self.codes.items()
        )


class _Row(msgspec.Struct, frozen=True):
    fields: dict[str, str] = msgspec.field(name="f", default_factory=dict)
    scalar: str = msgspec.field(name="t", default="")
    required: tuple[str, ...] = msgspec.field(name="r", default=())
    map_type: str = msgspec.field(name="m", default="")


class _Table(msgspec.Struct, frozen=True):
    release: str
    routes: tuple[Route, ...]
    kinds: dict[str, str]
    definitions: dict[str, msgspec.Raw]


@cache
def _table() -> _Table:
    return msgspec.json.decode(Path(__file__).with_name("facts.json").read_bytes(), type=_Table)


_row = msgspec.json.Decoder(_Row)


def release() -> str:
    """The Kubernetes release that the table describes: `1.36`."""
    return _table().release


def version() -> str:
    """What the servers and nodes of an embedded cluster call themselves: `v1.36.0+kvestigate`."""
    return f"v{release()}.0+kvestigate"


def routes() -> tuple[Route, ...]:
    """Every resource that an API server of the release serves by default."""
    return _table().routes


def definition_names() -> Iterator[str]:
    return iter(_table().definitions)


@cache
def definition(name: str) -> Definition:
    """The definition called `io.k8s.api.core.v1.PodSpec`; KeyError if there is none."""
    return Definition(name, _row.decode(_table().definitions[name]))


def for_kind(group: str, version: str, kind: str) -> Definition | None:
    """The definition of a kind, or None if it is not built in."""
    name = _table().kinds.get(f"{group}/{version}/{kind}")
    return None if name is None else definition(name)


@cache
def kinds() -> Mapping[str, tuple[str, str, str]]:
    """The group, version and kind of each definition that has them."""
    collected: dict[str, tuple[str, str, str]] = {}
    for code, name in _table().kinds.items():
        group, version, kind = code.split("/")
        collected[name] = (group, version, kind)
    return collected


# The same few hundred codes describe all fields, and a Field is immutable.
@cache
def parse_field(code: str) -> Field:
    """A field from its code in the table."""
    shape, *treatments = code.split(" ")
    strategies: tuple[str, ...] = ()
    merge_key = topology = ""
    keys: tuple[str, ...] = ()
    for treatment in treatments:
        word, _, argument = treatment.partition("=")
        if word in ("atomic", "set", "map", "granular"):
            topology, keys = word, tuple(argument.split(",")) if argument else ()
        else:
            strategies, merge_key = tuple(word.split(",")), argument
    type_ = Type(shape[0])
    return Field(
        type_,
        definition=shape[1:] if type_ is Type.DEFINED else "",
        element=parse_field(shape[1:]) if type_ in (Type.LIST, Type.MAP) else None,
        strategies=strategies,
        merge_key=merge_key,
        topology=topology,
        keys=keys,
    )
