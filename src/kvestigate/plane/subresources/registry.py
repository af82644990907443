"""Which subresources answer which verbs. One list, no import side effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kvestigate.plane.call import Call
from kvestigate.plane.verbs.update import update
from kvestigate.wire.message import Response, Upgrade

Verb = Callable[[Call], Awaitable[Response | Upgrade]]

SUBRESOURCES: dict[tuple[str, str, str], dict[str, Verb]] = {
    ("", "namespaces", "finalize"): {"update": update},
}
