"""From texts to manifests that can be applied. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvestigate.errors import InputError
from kvestigate.kube.yaml_documents import Document, complaint, flattened, load
from kvestigate.manifests.model import Manifest, Source


def parse(sources: Iterable[Source]) -> tuple[Manifest, ...]:
    """All objects, lists opened. InputError says which document is no manifest, and why."""
    manifests = tuple(
        _manifest(document) for source in sources for document in flattened(_documents(source))
    )
    if not manifests:
        raise InputError("the input has no objects", hint="check the files")
    _unique(manifests)
    return manifests


def _documents(source: Source) -> list[Document]:
    try:
        return load(source.text, source.name)
    except InputError as error:
        if "Secret" not in source.text or error.where is None:
            raise
        # The message quotes the line, which may be a secret.
        reason = complaint(error).partition(": ")[2].rpartition(": ")[2]
        raise InputError(f"not YAML: {reason}", where=error.where) from None


def _manifest(document: Document) -> Manifest:
    body = document.value
    if not isinstance(body, dict):
        raise InputError("not a manifest: a mapping was expected", where=document.where)
    for key in ("apiVersion", "kind"):
        if not isinstance(body.get(key), str) or not body[key]:
            raise InputError(f"{key} is missing", where=document.where)
    _check_metadata(body, document.where)
    manifest = Manifest(body, document.where)
    if manifest.is_secret:
        _check_secret(manifest)
    return manifest


def _check_metadata(body: dict[str, Any], where: str) -> None:
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        raise InputError(f"the {body['kind']} has no metadata", where=where)
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not name and metadata.get("generateName"):
        raise InputError(
            f"the {body['kind']} has generateName, but applied objects need a name",
            where=where,
            hint="set metadata.name, or run: kubectl create -f FILE",
        )
    if not isinstance(name, str) or not name:
        raise InputError(f"the {body['kind']} has no metadata.name", where=where)
    if namespace is not None and not isinstance(namespace, str):
        raise InputError(f"metadata.namespace of {name!r} is not text", where=where)


def _check_secret(manifest: Manifest) -> None:
    """The server would refuse what is no text, too, and quote it."""
    for field in ("data", "stringData"):
        values = manifest.body.get(field)
        if values is not None and not isinstance(values, dict):
            raise InputError(
                f"{field} of Secret {manifest.name!r} is not a mapping", where=manifest.where
            )
        for key, value in (values or {}).items():
            if value is not None and not isinstance(value, str):
                raise InputError(
                    f"{field}.{key} of Secret {manifest.name!r} is not text",
                    where=manifest.where,
                    hint="put it in quotes",
                )


def _unique(manifests: Iterable[Manifest]) -> None:
    seen: dict[tuple[str, str, str, str], Manifest] = {}
    for manifest in manifests:
        first = seen.setdefault(
            (manifest.group, manifest.kind, manifest.namespace, manifest.name), manifest
        )
        if first is not manifest:
            raise InputError(
                f"{manifest.kind} {manifest.name!r} is also at {first.where}",
                where=manifest.where,
                hint="remove one of the two: the last one applied would win",
            )
