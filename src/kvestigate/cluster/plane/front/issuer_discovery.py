"""How others check the tokens of service accounts: OpenID discovery, and the public key. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.model import plane_paths
from kvestigate.cluster.plane.response import answer
from kvestigate.http.message import Request, Response

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
PATHS = (CONFIGURATION, KEYS)
_CACHE = ("cache-control", "public, max-age=3600")


def respond(path: str, plane: str, issuer: TokenIssuer, incoming: Request) -> Response:
    """One of PATHS."""
    if path == KEYS:
        return _cacheable({"keys": [issuer.key.public]}, "application/jwk-set+json")
    # Where the asker reached us: the issuer's own name is known inside clusters only.
    host = incoming.headers.get("host") or "kubernetes.default.svc"
    return _cacheable(
        {
            "issuer": issuer.issuer(plane),
            "jwks_uri": f"https://{host}{plane_paths.root_path(plane)}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        },
        "application/json",
    )


def _cacheable(value: object, media: str) -> Response:
    return Response(200, [("content-type", media), _CACHE], answer.encode(value))
