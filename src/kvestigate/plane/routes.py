"""Everything a plane answers that is not a resource: discovery, schemas, health, version."""

from __future__ import annotations

from kvestigate import errors
from kvestigate.kube import facts
from kvestigate.plane import answer, discovery, types
from kvestigate.plane.request import Asked
from kvestigate.plane.store.plane import Plane
from kvestigate.wire.message import Request, Response

_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})


async def respond(plane: Plane, asked: Asked, incoming: Request) -> Response:
    path = asked.path.rstrip("/") or "/"
    if asked.method not in ("GET", "HEAD"):
        raise errors.MethodNotAllowed(
            "the server does not allow this method on the requested resource"
        )
    if path == "/version":
        return answer.json_value(_version())
    if path in _HEALTH:
        return answer.plain("ok")
    document = discovery.of(types.of(plane.state)).respond(path, incoming)
    if document is None:
        return answer.plain("404 page not found\n", 404)
    return document


def _version() -> dict[str, str]:
    major, minor = facts.release().split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{major}.{minor}.0+kvestigate",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }
