"""Changes that the server itself makes: read, alter, commit, past the rules for users' writes."""

from __future__ import annotations

from collections.abc import Callable

from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.store.errors import Mismatch, Missing
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.verbs import writing


async def amend(call: Call, alter: Callable[[Object, Item], None]) -> None:
    """Let `alter` change the object that the path names, in place; it raises to refuse.

    Tried anew when another writer was faster. Nothing is stored in a dry run.
    """
    for _ in range(writing.CONFLICT_RETRIES):
        item = call.find(call.plane.tip)
        obj = objects.read(item)
        alter(obj, item)
        if call.dry_run:
            return
        try:
            await call.plane.write(objects.put(obj, call.kind, item.revision), call.user.name)
        except Mismatch:
            continue
        except Missing:
            raise call.not_found() from None
        return
    raise call.modified()
