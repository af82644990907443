"""Every path of a plane that is not a resource: discovery, OpenAPI, health, version, token keys."""

from __future__ import annotations

from collections.abc import Mapping

from kvestigate import errors
from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.front import discovery, metrics
from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.kinds.types import Types
from kvestigate.cluster.plane.model.request_info import ROOT, RequestInfo, root_path
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.plane import Breathe, Plane
from kvestigate.cluster.plane.verbs.lookup import Aggregation
from kvestigate.http.message import Request, Response
from kvestigate.kube import facts

_OPENAPI = "/openapi/"

_ISSUER_CONFIGURATION = "/.well-known/openid-configuration"
_ISSUER_KEYS = "/openid/v1/jwks"
_CACHE_ONE_HOUR = ("cache-control", "public, max-age=3600")

_HEALTH_ENDPOINTS = ("healthz", "livez", "readyz")
# Both pass: a request gets here only after its plane was opened from the store.
_HEALTH_CHECKS = ("ping", "store")

PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/version/")
"""What the role `system:public-info-viewer` allows to clients without credentials."""


def public(info: RequestInfo) -> Response:
    """The answer at one of the PUBLIC paths, which is the same in every plane."""
    return _health(info.path, info.params) or answer.json_value(_version())


async def respond(
    plane: Plane,
    aggregation: Aggregation,
    issuer: TokenIssuer,
    info: RequestInfo,
    incoming: Request,
    breathe: Breathe,
) -> Response:
    if info.method == "GET" and info.path in (_ISSUER_CONFIGURATION, _ISSUER_KEYS):
        return _issuer_discovery(info.path, plane.name, issuer, incoming)
    response = _health(info.path, info.params)
    if response is not None:
        return response
    served = aggregation.types(plane)
    path = info.path.rstrip("/") or "/"
    if path == "/":
        return answer.json_value({"paths": _paths(plane, served)})
    if "//" in path:
        return _empty_segment(path, served)
    if path == "/version":
        response = answer.json_value(_version())
    elif path.startswith(_OPENAPI):
        # Without aggregated kinds: their schemas are unknown here.
        response = await _openapi(path, types.of(plane.state), info, incoming, breathe)
    else:
        response = discovery.of(served).respond(path, incoming)
    if response is None:
        return answer.plain("404 page not found\n", 404)
    if info.method not in ("GET", "HEAD"):
        raise errors.MethodNotAllowed(
            "the server does not allow this method on the requested resource", details={}
        )
    return response


def _empty_segment(path: str, served: Types) -> Response:
    """The answer at a path with an empty segment (`//`), below a group that is served or not."""
    if "/namespaces//" in path:
        raise errors.BadRequest("Namespace parameter required.")
    groups = {kind.resource.group for kind in served if kind.type is not None} - {""}
    match path.split("/")[1:]:
        case ["api", *_]:
            pass
        case ["apis", group, *_] if group in groups:
            pass
        case _:
            return answer.plain("404 page not found\n", 404)
    raise errors.NotFound("the server could not find the requested resource", details={})


async def _openapi(
    path: str, served: Types, info: RequestInfo, incoming: Request, breathe: Breathe
) -> Response | None:
    from kvestigate.cluster.plane.front.openapi import v2, v3

    if path == v2.PATH:
        return await v2.of(served).respond(incoming, breathe)
    if path.startswith(v3.ROOT):
        digest = info.params.get("hash", "")
        response = await v3.of(served).respond(path, incoming, digest, breathe)
        return response or Response(404)
    return None


def _issuer_discovery(path: str, plane: str, issuer: TokenIssuer, incoming: Request) -> Response:
    """OpenID discovery: how others verify the tokens of service accounts."""
    if path == _ISSUER_KEYS:
        keys = answer.encode({"keys": [issuer.key.public]})
        media = ("content-type", "application/jwk-set+json")
        return Response(200, [media, _CACHE_ONE_HOUR], keys)
    # The host that the client used: the issuer's own host name resolves inside clusters only.
    host = incoming.headers.get("host") or "kubernetes.default.svc"
    configuration = {
        "issuer": issuer.issuer(plane),
        "jwks_uri": f"https://{host}{root_path(plane)}{_ISSUER_KEYS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    media = ("content-type", "application/json")
    return Response(200, [media, _CACHE_ONE_HOUR], answer.encode(configuration))


def _health(path: str, params: Mapping[str, str]) -> Response | None:
    """/healthz, /livez or /readyz, whole or one check; None if the path is another one."""
    endpoint, slash, check = path.removeprefix("/").partition("/")
    if endpoint not in _HEALTH_ENDPOINTS or (slash and check not in _HEALTH_CHECKS):
        return None
    if check or "verbose" not in params:
        return answer.plain("ok")
    excluded = params.get("exclude", "")
    lines = [
        f"[+]{name} {'excluded: ok' if name == excluded else 'ok'}\n" for name in _HEALTH_CHECKS
    ]
    if excluded and excluded not in _HEALTH_CHECKS:
        lines.append(f'warn: some health checks cannot be excluded: no matches for "{excluded}"\n')
    return answer.plain("".join([*lines, f"{endpoint} check passed\n"]))


def _paths(plane: Plane, served: Types) -> list[str]:
    paths = [*discovery.of(served).paths, _ISSUER_CONFIGURATION, _ISSUER_KEYS]
    paths += ["/openapi/v2", "/openapi/v3", "/openapi/v3/", "/version"]
    if plane.name == ROOT:
        paths.append(metrics.PATH)
    for endpoint in _HEALTH_ENDPOINTS:
        paths += [f"/{endpoint}", *(f"/{endpoint}/{check}" for check in _HEALTH_CHECKS)]
    return sorted(paths)


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
