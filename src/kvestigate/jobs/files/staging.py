"""Pieces of uploaded files in the cluster: Secrets that go with the tasks that use them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from kvestigate.client.api import Api, PatchType
from kvestigate.client.call import Selection
from kvestigate.client.typed import decoded
from kvestigate.errors import AlreadyExists, Conflict, NotFound
from kvestigate.jobs.answers import MissingPieces
from kvestigate.jobs.interface import Digests
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.pieces import Files, check_digest, check_piece, piece_name
from kvestigate.jobs.users import User
from kvestigate.kube import builtins
from kvestigate.kube.decode import ListPage
from kvestigate.kube.views.meta import PartialObject

SECRETS = builtins.resource("secrets")
KEY = "piece"
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_UNUSED_FOR = timedelta(days=1)


async def missing(api: Api, user: User, request: Digests) -> MissingPieces:
    """The pieces that the cluster does not have. Pieces unused for a day are removed."""
    wanted = dict.fromkeys(check_digest(digest) for digest in request.digests)
    names = {piece_name(user, digest): digest for digest in wanted}
    for piece in await held(api, user.digest):
        meta = piece.metadata
        old = meta.creation_timestamp is not None and (
            datetime.now(UTC) - meta.creation_timestamp > _UNUSED_FOR
        )
        if meta.name in names:
            wanted.pop(names[meta.name], None)
        elif old and not meta.owner_references:
            await _remove(api, meta.name, meta.uid)
    return MissingPieces(tuple(wanted))


async def put(api: Api, user: User, digest: str, content: bytes) -> None:
    """Store a piece; a piece that exists is left as it is."""
    check_piece(digest, content)
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": piece_name(user, digest),
            "labels": {labels.PIECE: "true", **labels.of_user(user)},
        },
        "immutable": True,
        "data": {KEY: base64.b64encode(content).decode()},
    }
    try:
        await api.create(SECRETS, body, namespace=api.namespace, type=PartialObject)
    except AlreadyExists:
        pass


async def adopt(api: Api, user: User, files: Files, owner: Mapping[str, Any]) -> None:
    """Keep the pieces for as long as the task's first job is there."""
    change = {"metadata": {"ownerReferences": [dict(owner)]}}
    for digest in dict.fromkeys(files.pieces):
        name = piece_name(user, digest)
        try:
            await api.patch(
                SECRETS,
                name,
                change,
                PatchType.STRATEGIC,
                namespace=api.namespace,
                type=PartialObject,
            )
        except NotFound:
            raise Conflict(
                "the uploaded files do not exist in the cluster, or were removed",
                hint="submit the task again",
            ) from None


async def held(api: Api, owner: str) -> Sequence[PartialObject]:
    """A user's pieces without their content, which may be tens of megabytes."""
    selector = f"{labels.PIECE}=true,{labels.OWNER}={owner}"
    selection = Selection(api.namespace, labels=selector)
    path = SECRETS.path(namespace=api.namespace)
    query = urlencode(selection.query())
    body = await api.request("GET", path, query=query, accept=_METADATA)
    return decoded(body, ListPage[PartialObject], where="list secrets").items


async def _remove(api: Api, name: str, uid: str) -> None:
    try:
        await api.delete(SECRETS, name, namespace=api.namespace, uid=uid, type=bytes)
    except (NotFound, Conflict):
        pass
