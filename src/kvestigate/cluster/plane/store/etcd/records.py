"""Which planes there are, as far as this server knows; the feed learns what is new."""

from __future__ import annotations

from kvestigate.cluster.plane.store.errors import NoPlane
from kvestigate.cluster.plane.store.etcd.layout import Record
from kvestigate.cluster.plane.store.interface import Feed


class Records:
    """The record of each name at the etcd revision it was last seen at.

    News comes from answers and from the watch, in either order: the newer one counts.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Record | None, int]] = {}
        """None: it was deleted; kept until the watch has passed that revision."""
        self._gone: dict[str, int] = {}
        """Those, with that revision."""
        self._names: dict[str, str] = {}

    def names(self) -> list[str]:
        return list(self._names.values())

    def name_of(self, ident: str) -> str | None:
        return self._names.get(ident)

    def get(self, name: str) -> tuple[Record, int]:
        """The record and the etcd revision it was written at; NoPlane if there is none."""
        record, revision = self._known.get(name, (None, 0))
        if record is None:
            raise NoPlane(name)
        return record, revision

    def note(self, name: str, record: Record | None, revision: int) -> Record | None:
        """Something that this server did, or old news; what was known before."""
        before, known = self._known.get(name, (None, 0))
        if revision > known:
            if before is not None:
                self._names.pop(before.id, None)
            self._known[name] = record, revision
            if record is None:
                self._gone[name] = revision
            else:
                self._names[record.id] = name
        return before

    def learn(self, feed: Feed, name: str, record: Record | None, revision: int) -> None:
        """Something that another server may have done."""
        if revision <= self._known.get(name, (None, 0))[1]:
            return
        before = self.note(name, record, revision)
        if before is not None and record is not None and before.id == record.id:
            if before.checkpoints != record.checkpoints:
                feed.pinned(name, record.checkpoints)
            return
        if before is not None:
            feed.vanished(name)
        if record is not None:
            feed.appeared(name)

    def passed(self, revision: int) -> None:
        """Nothing older can come any more: forget who was deleted until then."""
        for name, at in list(self._gone.items()):
            if at <= revision:
                del self._gone[name]
                if self._known.get(name) == (None, at):
                    del self._known[name]
