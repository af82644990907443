"""Keys and values in etcd. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import intern
from typing import Any

import msgspec
from msgspec import Struct, msgpack

from kvestigate.cluster.plane.store.model import Change, ChangeType, Item, intern_labels

Json = dict[str, Any]


class Record(Struct, omit_defaults=True, frozen=True):
    """What a plane is, but for its objects."""

    id: str
    lineage: tuple[tuple[str, int], ...] = ()
    """What it starts from, nearest last: each ancestor's id and the revision to read it at."""
    compacted: int = 0
    """Its history up to here is not needed."""
    cleaned: int = 0
    """Its history up to here has been removed, but for what somebody can see."""
    checkpoints: dict[str, int] = {}


class _Entry(Struct, array_like=True, gc=False):
    """A Change on its way through etcd."""

    revision: int
    type: int
    group: str
    plural: str
    namespace: str
    name: str
    uid: str
    created: int
    previous: int
    time: float
    actor: str
    labels: dict[str, str]
    owners: tuple[str, ...]
    fields: tuple[str, ...]
    data: bytes


class Row(Struct, array_like=True):
    """The value of a key in a log."""

    token: str
    """Of the one write that it came with: by it a server knows its own."""
    entries: list[_Entry]
    parts: int = 0
    """The entries are elsewhere, in this many pieces."""


_records = msgspec.json.Decoder(Record)
_rows = msgpack.Decoder(Row)
_entries = msgpack.Decoder(list[_Entry])


def encode_record(record: Record) -> bytes:
    return msgspec.json.encode(record)


def decode_record(value: bytes) -> Record:
    return _records.decode(value)


def encode_row(token: str, changes: Sequence[Change]) -> bytes:
    return msgpack.encode(Row(token, [_entry(change) for change in changes]))


def encode_reference(token: str, parts: int) -> bytes:
    return msgpack.encode(Row(token, [], parts))


def encode_entries(changes: Sequence[Change]) -> bytes:
    return msgpack.encode([_entry(change) for change in changes])


def decode_row(value: bytes) -> Row:
    return _rows.decode(value)


def decode_entries(value: bytes) -> list[_Entry]:
    return _entries.decode(value)


def changes_of(entries: Iterable[_Entry]) -> list[Change]:
    """As they were written, but without `previous`: that is for whoever has the state."""
    return [_change(entry) for entry in entries]


def _entry(change: Change) -> _Entry:
    item = change.item
    return _Entry(
        change.revision,
        int(change.type),
        *change.resource,
        item.namespace,
        item.name,
        item.uid,
        item.created_revision,
        0 if change.previous is None else change.previous.revision,
        change.time,
        change.actor,
        item.labels,
        item.owners,
        item.fields,
        item.data,
    )


def _change(entry: _Entry) -> Change:
    item = Item(
        intern(entry.namespace),
        entry.name,
        entry.uid,
        entry.revision,
        entry.created,
        entry.data,
        intern_labels(entry.labels),
        entry.owners,
        entry.fields,
    )
    resource = intern(entry.group), intern(entry.plural)
    kind = ChangeType(entry.type)
    return Change(entry.revision, kind, resource, item, None, entry.actor, entry.time)


class Keys:
    """Where things are under a prefix."""

    def __init__(self, prefix: str) -> None:
        self.root = f"{prefix.rstrip('/')}/".encode()
        self.planes = self.root + b"plane/"
        self.deads = self.root + b"dead/"
        self.logs = self.root + b"log/"
        self.wants = self.root + b"want/"
        self.pulse = self.root + b"pulse"

    def plane(self, name: str) -> bytes:
        return self.planes + name.encode()

    def dead(self, ident: str) -> bytes:
        return self.deads + ident.encode()

    def head(self, ident: str) -> bytes:
        return self.root + b"head/" + ident.encode()

    def want(self, ident: str) -> bytes:
        return self.wants + ident.encode()

    def refs(self, ident: str) -> bytes:
        return self.root + b"ref/%s/" % ident.encode()

    def ref(self, ident: str, fork: str) -> bytes:
        return self.refs(ident) + fork.encode()

    def log(self, ident: str) -> bytes:
        return self.logs + b"%s/" % ident.encode()

    def change(self, ident: str, revision: int) -> bytes:
        return self.log(ident) + b"%016d" % revision

    def bundle(self, ident: str, revision: int) -> bytes:
        return self.change(ident, revision) + b"+"

    def parts(self, ident: str, token: str = "") -> bytes:
        """Of one bundle, or of all of a plane."""
        return self.root + b"part/%s/" % ident.encode() + (f"{token}/".encode() if token else b"")

    def logged(self, key: bytes) -> tuple[str, int]:
        """The id and revision in a key of a log."""
        ident, _, revision = key[len(self.logs) :].decode().partition("/")
        return ident, int(revision.removesuffix("+"))


def put(key: bytes, value: bytes) -> Json:
    return {"request_put": {"key": key, "value": value}}


def delete(key: bytes, end: bytes = b"") -> Json:
    return {"request_delete_range": {"key": key, **({"range_end": end} if end else {})}}


def get(key: bytes, end: bytes = b"", **options: Any) -> Json:
    return {"request_range": {"key": key, **({"range_end": end} if end else {}), **options}}


def has_value(key: bytes, value: bytes) -> Json:
    return {"key": key, "target": "VALUE", "result": "EQUAL", "value": value}


def absent(key: bytes, end: bytes = b"") -> Json:
    condition = {"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": 0}
    return {**condition, "range_end": end} if end else condition


def present(key: bytes) -> Json:
    return {"key": key, "target": "CREATE", "result": "GREATER", "create_revision": 0}


def unchanged(key: bytes, revision: int) -> Json:
    return {"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": revision}
