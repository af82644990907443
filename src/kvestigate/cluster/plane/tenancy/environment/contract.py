"""GET /openapi/kplane.yaml and .json: the contract of all this, for everyone to read."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.response.answer import Document
from kvestigate.http.message import Request, Response

YAML, JSON = "/openapi/kplane.yaml", "/openapi/kplane.json"
_SOURCE = "kplane.v1.yaml"


def owns(info: RequestInfo) -> bool:
    """Of the root plane; no credentials are asked for."""
    return info.path in (YAML, JSON) and info.method in ("GET", "HEAD")


def respond(info: RequestInfo, incoming: Request) -> Response:
    return _document(info.path).answer(incoming, "public, max-age=300")


@cache
def _document(path: str) -> Document:
    source = files(__package__).joinpath(_SOURCE).read_bytes()
    if path == YAML:
        return Document(source, "application/yaml")
    import yaml

    return Document(answer.encode(yaml.safe_load(source)))
