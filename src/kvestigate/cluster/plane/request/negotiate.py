"""Which representation the client wants: the object, a Table, or metadata only. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from kvestigate.errors import NotAcceptable


class Form(enum.Enum):
    OBJECT = "object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


@dataclass(frozen=True, slots=True)
class Representation:
    form: Form = Form.OBJECT
    api_version: str = ""
    """`meta.k8s.io/v1` for a transformed form."""
    yaml: bool = False


JSON = frozenset({"application/json", "application/*", "*/*"})
YAML = "application/yaml"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_REPRESENTATIONS = ("application/json", YAML, _PROTOBUF)
_STREAMS = ("application/json;stream=watch", f"{_PROTOBUF};stream=watch")
_FORMS = {form.value: form for form in Form if form is not Form.OBJECT}


def alternatives(accept: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The media types of an Accept header with their parameters, the most wanted first."""
    for alternative in accept.split(","):
        media, *parameters = (part.strip() for part in alternative.split(";"))
        yield media, dict(part.split("=", 1) for part in parameters if "=" in part)


@lru_cache(maxsize=256)
def negotiate(accept: str, collective: bool = False, tabular: bool = True) -> Representation:
    """The first alternative of an Accept header that we can serve.

    `collective` when a list is asked for: the refusal then names the forms of watches, too.
    `tabular` unless the resource has no Table, as reviews have none.
    """
    if not accept:
        return Representation()
    wanted = list(alternatives(accept))
    if not any(media in _REPRESENTATIONS or media == "*/*" for media, _ in wanted):
        listed = ", ".join(_REPRESENTATIONS + (_STREAMS if collective else ()))
        raise NotAcceptable(
            f"406: Not Acceptable\n\nAvailable representations: {listed}", details={}
        )
    for media, options in wanted:
        yaml = media == YAML
        if media not in JSON and not yaml:
            continue
        if "as" not in options:
            return Representation(yaml=yaml)
        form = _FORMS.get(options["as"])
        version = options.get("v", "")
        if form is Form.TABLE and not tabular:
            continue
        if form and options.get("g") == "meta.k8s.io" and version in ("v1", "v1beta1"):
            return Representation(form, f"meta.k8s.io/{version}", yaml)
    raise unwanted()


def unwanted() -> NotAcceptable:
    """The 406 for a representation that the server does not have."""
    return NotAcceptable(
        f"only the following media types are accepted: {', '.join(_REPRESENTATIONS)}"
    )
