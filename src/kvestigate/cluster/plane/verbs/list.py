"""list: a page of the objects that are selected."""

from __future__ import annotations

from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.response import forms
from kvestigate.cluster.plane.verbs import paging
from kvestigate.http.message import Response


async def list_(call: Call) -> Response:
    wanted = paging.terms(call)
    try:
        page = await paging.page(call, wanted)
    except paging.Stale as stale:
        return stale.answer()
    await call.breathe()
    return await forms.many(call, page.items, page.metadata)
