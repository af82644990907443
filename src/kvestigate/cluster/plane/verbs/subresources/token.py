"""serviceaccounts/token: a TokenRequest answered with a signed token."""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from kvestigate.cluster.plane.access.authn.service_accounts import Bound, identify, identity_of
from kvestigate.cluster.plane.access.authz.reach import bound_to
from kvestigate.cluster.plane.kinds.podspec.volumes import MOUNTED_TOKEN_SECONDS
from kvestigate.cluster.plane.model import metadata
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.request import body
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.errors import Exists
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.verbs import writing
from kvestigate.errors import BadRequest, Conflict, NotFound
from kvestigate.http.message import Response
from kvestigate.kube import causes
from kvestigate.kube.resources import Resource

_GROUP = "authentication.k8s.io"
TOKEN_REQUEST = Kind(Resource(_GROUP, "v1", "tokenrequests", "TokenRequest"))
_EMPTY_STATUS: Object = {"token": "", "expirationTimestamp": None}
_MIN_SECONDS, _MAX_SECONDS, _DEFAULT_SECONDS = 600, 1 << 32, 3600
_BINDABLE = {"Pod": ("pods", "pod"), "Secret": ("secrets", "secret"), "Node": ("nodes", "node")}
_EXTENDED_SECONDS = 365 * 24 * 3600
"""The real lifetime of the tokens that pods get: some programs read their token only once."""
_ACCOUNT_OF_POD = 4
"""The index of the service account's name in the indexed fields of a pod."""


async def create_token(call: Call) -> Response:
    request = await body.decode(replace(call, served=TOKEN_REQUEST))
    writing.check_namespace(call, request)
    admitted, account = await _admitted(call, request)
    spec = admitted["spec"]
    bound = _bound(call, account, spec["boundObjectRef"])
    now, seconds = call.clock.now(), spec["expirationSeconds"]
    token = call.issuer.issue(
        call.plane.name,
        account,
        audiences=spec["audiences"],
        now=now,
        seconds=seconds,
        bound=bound,
        random=call.random,
        identity=await _identity(call),
        good_for=_EXTENDED_SECONDS if _is_extended(call, spec) else 0,
    )
    identity = {"uid": account.uid, "creationTimestamp": metadata.timestamp(now)}
    expires = metadata.timestamp(int(now) + seconds)
    response = {
        "kind": "TokenRequest",
        "apiVersion": TOKEN_REQUEST.resource.api_version,
        "metadata": {**admitted["metadata"], **identity},
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": expires},
    }
    return answer.made(call, response)


async def _identity(call: Call) -> str:
    """The identity of the plane, which it gets now if it has none."""
    while not (identity := identity_of(call.plane.state)) and not call.dry_run:
        with suppress(Exists):  # somebody else's request was faster
            await call.plane.write(identify(call.random), call.user.name)
    return identity


async def _admitted(call: Call, request: Object) -> tuple[Object, Item]:
    """The TokenRequest after admission, and its service account."""
    submitted: Object = request.get("spec") or {}
    seconds = submitted.get("expirationSeconds")
    defaulted: Object = {
        "audiences": submitted.get("audiences") or [],
        "expirationSeconds": _DEFAULT_SECONDS if seconds is None else seconds,
        "boundObjectRef": submitted.get("boundObjectRef"),
    }
    token_request: Object = {
        "kind": TOKEN_REQUEST.resource.kind,
        "apiVersion": TOKEN_REQUEST.resource.api_version,
        "metadata": {"name": call.info.name, "namespace": call.namespace, **request["metadata"]},
        "spec": dict(defaulted),
        "status": _EMPTY_STATUS,
    }
    write = writing.subresource_write(call, TOKEN_REQUEST, token_request, dry_run=call.dry_run)
    accounts: list[Item] = []

    def check() -> None:
        accounts.append(_account(call, write.new["metadata"]))
        spec = write.new["spec"] = {**defaulted, **(write.new.get("spec") or {})}
        spec["audiences"] = spec["audiences"] or [call.issuer.issuer(call.plane.name)]
        if problems := _problems(spec["expirationSeconds"]):
            raise causes.reject("TokenRequest", _GROUP, "", problems)

    await writing.pass_admission(call, write, check)
    return write.new, accounts[0]


def _is_extended(call: Call, spec: Object) -> bool:
    """Whether this is the token that admission mounts into pods, for this server only."""
    return (
        spec["expirationSeconds"] == MOUNTED_TOKEN_SECONDS
        and (spec["boundObjectRef"] or {}).get("kind") == "Pod"
        and set(spec["audiences"]) == {call.issuer.issuer(call.plane.name)}
    )


def _account(call: Call, meta: Object) -> Item:
    """The service account that the path names; Invalid or Conflict if the request differs."""
    name = call.info.name
    if meta.get("name", name) != name:
        why = "must match the service account name if specified"
        problem = causes.invalid("metadata.name", meta["name"], why)
        raise causes.reject("TokenRequest", _GROUP, name, [problem])
    account = call.find(call.plane.state)
    if meta.get("uid", account.uid) != account.uid:
        raise Conflict(
            f'Operation cannot be fulfilled on TokenRequest.{_GROUP} "{name}": the UID in the '
            f"token request ({meta['uid']}) does not match the UID of the service account "
            f"({account.uid})",
            details={"name": name, "group": _GROUP, "kind": "TokenRequest"},
        )
    return account


def _problems(seconds: int) -> list[causes.Cause]:
    field = "spec.expirationSeconds"
    if seconds < _MIN_SECONDS:
        return [causes.invalid(field, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _MAX_SECONDS:
        return [
            causes.invalid(field, seconds, "may not specify a duration larger than 2^32 seconds")
        ]
    return []


def _bound(call: Call, account: Item, reference: dict[str, str] | None) -> list[Bound]:
    """The objects that the token is bound to; a pod's token also names its node."""
    if reference is None:
        return []
    kind, name = reference.get("kind", ""), reference.get("name", "")
    group, version = _group_version(reference.get("apiVersion", ""))
    if group or kind not in _BINDABLE:
        raise BadRequest(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    if not name:
        raise BadRequest("Name parameter required.")
    plural, claim = _BINDABLE[kind]
    state = call.plane.state
    item = state.get(("", plural), "" if plural == "nodes" else account.namespace, name)
    if item is None:
        details = {"name": name, "kind": plural}
        raise NotFound(f'{plural} "{name}" not found', details=details)
    if kind == "Pod" and item.fields[_ACCOUNT_OF_POD] != account.name:
        raise BadRequest(
            f'cannot bind token for serviceaccount "{account.name}" to pod running with different '
            "serviceaccount name."
        )
    if reference.get("uid") and reference["uid"] != item.uid:
        raise Conflict(
            f'Operation cannot be fulfilled on {kind} "{name}": the UID in the bound object '
            f"reference ({reference['uid']}) does not match the UID in record. The object might "
            "have been deleted and then recreated",
            details={"name": name, "kind": kind},
        )
    bound = [Bound(plural, claim, name, item.uid)]
    if kind == "Pod" and (node := bound_to(item)):
        node_item = state.get(("", "nodes"), "", node)
        bound.append(Bound("nodes", "node", node, node_item.uid if node_item is not None else ""))
    return bound


def _group_version(api_version: str) -> tuple[str, str]:
    """Group and version; both empty if the apiVersion is malformed."""
    group, slash, version = api_version.partition("/")
    if "/" in version:
        return "", ""
    return (group, version) if slash else ("", api_version)
