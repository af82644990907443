"""serviceaccounts/token: a TokenRequest answered with a signed token."""

from __future__ import annotations

from kvestigate.errors import Conflict, NotFound
from kvestigate.kube import causes
from kvestigate.kube.resources import Resource
from kvestigate.plane import answer, metadata, writing
from kvestigate.plane.authn.service_accounts import Bound
from kvestigate.plane.body import parse
from kvestigate.plane.call import Call
from kvestigate.plane.kinds.kind import Kind, Object
from kvestigate.plane.store.model import Item
from kvestigate.wire.message import Response

TOKEN_REQUEST = Kind(Resource("authentication.k8s.io", "v1", "tokenrequests", "TokenRequest"))
_UNANSWERED: Object = {"token": "", "expirationTimestamp": None}
_SHORTEST, _LONGEST, _USUAL = 600, 1 << 32, 3600
_BINDABLE = {"Pod": ("pods", "pod"), "Secret": ("secrets", "secret"), "Node": ("nodes", "node")}


async def create_token(call: Call) -> Response:
    request = parse(call.request.body, call.request.headers.get("content-type"), call.kind)
    account = call.find(call.plane.state)
    spec = await _admitted(call, request)
    seconds = spec["expirationSeconds"]
    if problems := _problems(seconds):
        raise causes.reject("TokenRequest", "authentication.k8s.io", "", problems)
    bound = _bound(call, account, spec.get("boundObjectRef"))
    now = call.clock.now()
    audiences = spec["audiences"]
    token = call.issuer.issue(
        call.plane.name,
        account,
        audiences=audiences,
        now=now,
        seconds=seconds,
        bound=bound,
        random=call.random,
    )
    return answer.json_value(
        {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": account.name,
                "namespace": account.namespace,
                "uid": account.uid,
                "creationTimestamp": metadata.timestamp(now),
            },
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {
                "token": token,
                "expirationTimestamp": metadata.timestamp(int(now) + seconds),
            },
        },
        201,
    )


async def _admitted(call: Call, request: Object) -> Object:
    """The spec of a request, as policies and webhooks leave it."""
    told: Object = request.get("spec") or {}
    seconds = told.get("expirationSeconds")
    spec = {
        "audiences": told.get("audiences") or [],
        "expirationSeconds": _USUAL if seconds is None else seconds,
        "boundObjectRef": told.get("boundObjectRef"),
    }
    head = {"kind": TOKEN_REQUEST.resource.kind, "apiVersion": TOKEN_REQUEST.resource.api_version}
    meta = {"name": call.asked.name, "namespace": call.namespace}
    made = {**head, "metadata": meta, "spec": spec, "status": _UNANSWERED}
    write = writing.part(call, TOKEN_REQUEST, made, dry_run=call.dry_run)
    admitted = {**spec}

    def complete() -> None:
        admitted.update(write.new.get("spec") or {})
        admitted["audiences"] = admitted["audiences"] or [call.issuer.issuer(call.plane.name)]
        write.new["spec"] = admitted

    await writing.pass_admission(call, write, complete)
    return admitted


def _problems(seconds: int) -> list[causes.Cause]:
    field = "spec.expirationSeconds"
    if seconds < _SHORTEST:
        return [causes.invalid(field, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _LONGEST:
        return [
            causes.invalid(field, seconds, "may not specify a duration larger than 2^32 seconds")
        ]
    return []


def _bound(call: Call, account: Item, reference: dict[str, str] | None) -> list[Bound]:
    if not reference:
        return []
    plural, claim = _BINDABLE.get(reference.get("kind", ""), ("", ""))
    name = reference.get("name", "")
    namespace = "" if plural == "nodes" else account.namespace
    item = call.plane.state.get(("", plural), namespace, name) if plural else None
    if item is None:
        raise NotFound(
            f'{plural or reference.get("kind")} "{name}" not found',
            details={"name": name, "kind": plural},
        )
    if reference.get("uid") and reference["uid"] != item.uid:
        raise Conflict(
            f'Operation cannot be fulfilled on {plural} "{name}": the UID in the bound object '
            f"reference ({reference['uid']}) does not match the UID in record. The object might "
            "have been deleted and then recreated",
            details={"name": name, "kind": plural},
        )
    return [Bound(plural, claim, name, item.uid)]
