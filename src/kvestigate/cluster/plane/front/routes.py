"""Everything a plane answers that is not a resource: discovery, schemas, health, version."""

from __future__ import annotations

from kvestigate import errors
from kvestigate.cluster.plane.front import discovery, health, issuer_discovery, metrics
from kvestigate.cluster.plane.front.aggregation import Aggregation
from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.kinds.types import Types
from kvestigate.cluster.plane.model import plane_paths
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.plane import Breathe, Plane
from kvestigate.http.message import Request, Response
from kvestigate.kube import facts

_OPENAPI = "/openapi/"


async def respond(
    plane: Plane, aggregation: Aggregation, info: RequestInfo, incoming: Request, breathe: Breathe
) -> Response:
    found = health.respond(info.path, info.params)
    if found is not None:
        return found
    known = aggregation.types(plane)
    path = info.path.rstrip("/") or "/"
    if path == "/":
        return answer.json_value({"paths": _paths(plane, known)})
    if "//" in path:
        return _nowhere(path, known)
    if path == "/version":
        found = answer.json_value(_version())
    elif path.startswith(_OPENAPI):
        # Nobody has told us the schemas of what others make up.
        found = await _openapi(path, types.of(plane.state), info, incoming, breathe)
    else:
        found = discovery.of(known).respond(path, incoming)
    if found is None:
        return answer.plain("404 page not found\n", 404)
    if info.method not in ("GET", "HEAD"):
        raise errors.MethodNotAllowed(
            "the server does not allow this method on the requested resource", details={}
        )
    return found


def _nowhere(path: str, known: Types) -> Response:
    """The answer at a path with an empty segment, which those who serve a group give."""
    if "/namespaces//" in path:
        raise errors.BadRequest("Namespace parameter required.")
    served = {kind.resource.group for kind in known if kind.type is not None} - {""}
    match path.split("/")[1:]:
        case ["api", *_]:
            pass
        case ["apis", group, *_] if group in served:
            pass
        case _:
            return answer.plain("404 page not found\n", 404)
    raise errors.NotFound("the server could not find the requested resource", details={})


async def _openapi(
    path: str, known: Types, info: RequestInfo, incoming: Request, breathe: Breathe
) -> Response | None:
    from kvestigate.cluster.plane.front.openapi import v2, v3

    if path == v2.PATH:
        return await v2.of(known).respond(incoming, breathe)
    if path.startswith(v3.ROOT):
        digest = info.params.get("hash", "")
        found = await v3.of(known).respond(path, incoming, digest, breathe)
        return found or Response(404)
    return None


def _paths(plane: Plane, known: Types) -> list[str]:
    others = [metrics.PATH] if plane.name == plane_paths.ROOT else []
    others += ["/openapi/v2", "/openapi/v3", "/openapi/v3/", "/version"]
    others += issuer_discovery.PATHS
    return sorted([*discovery.of(known).paths, *health.paths(), *others])


def _version() -> dict[str, str]:
    major, minor = facts.release().split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": facts.version(),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }
