"""GET /openapi/kplane.yaml and .json: the contract of all this, for everyone to read."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from kvestigate.plane import answer
from kvestigate.plane.documents import Document
from kvestigate.plane.request import Asked
from kvestigate.wire.message import Request, Response

YAML, JSON = "/openapi/kplane.yaml", "/openapi/kplane.json"
_SOURCE = "api/openapi/kplane.v1.yaml"


def owns(asked: Asked) -> bool:
    """Of the root plane; no credentials are asked for."""
    return asked.path in (YAML, JSON) and asked.method in ("GET", "HEAD")


def respond(asked: Asked, incoming: Request) -> Response:
    return _document(asked.path).answer(incoming, "public, max-age=300")


@cache
def _document(path: str) -> Document:
    source = files("kvestigate").joinpath(_SOURCE).read_bytes()
    if path == YAML:
        return Document(source, "application/yaml")
    import yaml

    return Document(answer.encode(yaml.safe_load(source)))
