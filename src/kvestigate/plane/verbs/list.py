"""list: a page of the objects that are selected."""

from __future__ import annotations

from kvestigate.plane import forms, paging
from kvestigate.plane.call import Call
from kvestigate.wire.message import Response


async def list_(call: Call) -> Response:
    wanted = paging.terms(call)
    try:
        page = await paging.page(call, wanted)
    except paging.Stale as stale:
        return stale.answer()
    await call.breathe()
    return await forms.many(call, page.items, page.metadata)
